"""An evaluation as one HTML file that needs nothing else; it takes the extra eval."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable
from importlib import resources
from typing import Any

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.metrics import risk_coverage
from snne_guard.evaluation.results import BASELINE, TITLES, Evaluation
from snne_guard.text import printable

try:
    from jinja2 import Environment, StrictUndefined
    from matplotlib.figure import Figure
except ModuleNotFoundError as error:
    raise MissingExtraError(error.name or "jinja2", extra="eval") from error

__all__ = ["to_html"]

_CURVES = 5
_LONGEST_NAME = 40
_SMALLEST_COVERAGE = 0.05  # below it the risk hangs on a few answers


def to_html(evaluations: Iterable[Evaluation]) -> str:
    """Return evaluations as one page of tables and risk-coverage curves.

    It has no text of a question or an answer, no script, and loads nothing; its content
    security policy forbids it to. Names from outside are escaped.
    """
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    source = resources.files("snne_guard.evaluation").joinpath("report.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    sets = [(one, _risk_chart(one)) for one in evaluations]
    return template.render(sets=sets, titles=TITLES)


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the template
    return printable(value, lines=True) if isinstance(value, str) else value


def _risk_chart(evaluation: Evaluation) -> str | None:
    """Return the curves of the first method, the best others and the baseline.

    It is matplotlib's own SVG in a data URI; None where all answers are right, or all
    wrong, or neither.
    """
    correct = evaluation.correct
    if correct is None or not 0 < correct.mean() < 1:
        return None
    first = evaluation.first
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
    return f"data:image/svg+xml;base64,{b64encode(stream.getvalue()).decode()}"
