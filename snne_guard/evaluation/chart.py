"""Risk against coverage as a picture; it takes the extra eval."""

from __future__ import annotations

import io
from base64 import b64encode

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.metrics import risk_coverage
from snne_guard.evaluation.results import BASELINE, Evaluation
from snne_guard.text import printable

try:
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name or "matplotlib", extra="eval") from error

__all__ = ["risk_chart"]

_CURVES = 5
_LONGEST_NAME = 40
_SMALLEST_COVERAGE = 0.05  # below it the risk hangs on a few answers


def risk_chart(evaluation: Evaluation, /) -> str:
    """Return the curves of the first method, the best others and the baseline.

    It is matplotlib's own SVG as an HTML image; empty where all answers are right, or
    all wrong, or neither.
    """
    correct = evaluation.correct
    if correct is None or not 0 < correct.mean() < 1:
        return ""
    first = evaluation.rows[0].name
    best = [row.name for row in evaluation.ranked if row.name not in {first, BASELINE}]
    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel("coverage")
    axes.set_ylabel("selective risk")
    for name in [first, *best[: _CURVES - 2], BASELINE]:
        coverage, risk = risk_coverage(evaluation.uncertainties[name], correct)
        kept = coverage >= _SMALLEST_COVERAGE
        style = ":" if name == BASELINE else "-"
        label = printable(name[:_LONGEST_NAME])
        axes.plot(coverage[kept], risk[kept], style, label=label)
    for text in axes.legend(fontsize="small").get_texts():
        text.set_parse_math(False)  # a name with a dollar sign is no formula
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    data = b64encode(stream.getvalue()).decode()
    return f'<img alt="Risk and coverage" src="data:image/svg+xml;base64,{data}">\n'
