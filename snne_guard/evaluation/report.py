"""An evaluation as one HTML file that needs nothing else."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

import numpy as np

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.metrics import risk_coverage
from snne_guard.evaluation.plan import BASELINE
from snne_guard.evaluation.results import TITLES, Evaluation
from snne_guard.text import printable
from snne_guard.types import FloatArray

__all__ = ["check_report_packages", "to_html"]

_CURVES = 5
_LONGEST_NAME = 40
_SMALLEST_COVERAGE = 0.05  # below it the risk hangs on a few answers


def to_html(evaluations: Iterable[Evaluation]) -> str:
    """Return evaluations as one page of tables and curves.

    It has no text of a question or an answer, no script, and loads nothing; its content
    security policy forbids it to. Names from outside are escaped.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    check_report_packages()
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    source = resources.files("snne_guard.evaluation").joinpath("report.html.j2")
    template = environment.from_string(source.read_text(encoding="utf-8"))
    sets = [(one, _charts(one)) for one in evaluations]
    return template.render(sets=sets, titles=TITLES)


def check_report_packages() -> None:
    """Check that the packages of the report are there, before anything is computed.

    Raises:
        MissingExtraError: jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        import matplotlib.figure

        _ = jinja2, matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "jinja2", extra="eval") from error


def _shown(value: Any) -> Any:  # noqa: ANN401 - whatever stands in the template
    return printable(value, lines=True) if isinstance(value, str) else value


def _charts(evaluation: Evaluation) -> dict[str, str]:
    """Return pictures, as data URIs, by what they show."""
    charts: dict[str, str] = {}
    correct = evaluation.correct
    if correct is not None and correct.any() and not correct.all():
        plotted = _plotted(evaluation)
        first = evaluation.first
        charts = {
            "Risk and coverage: error rate among the most certain answers": _risk(
                plotted, correct
            ),
            f"Scores of {first}, right and wrong answers": _histogram(
                plotted[first], correct
            ),
        }
    if (found := evaluation.sentences) is not None:
        charts["Uncertainty of sentences, right and wrong ones"] = _histogram(
            found.uncertainty, found.correct, x="uncertainty", y="sentences"
        )
    return charts


def _plotted(evaluation: Evaluation) -> dict[str, FloatArray]:
    """Return the first method, the best others and the baseline."""
    first = evaluation.first
    best = [row.name for row in evaluation.ranked if row.name not in {first, BASELINE}]
    names = [first, *best[: _CURVES - 2], BASELINE]
    return {name: evaluation.uncertainties[name] for name in names}


def _risk(plotted: Mapping[str, FloatArray], correct: FloatArray) -> str:
    figure, axes = _figure("coverage", "selective risk")
    for name, values in plotted.items():
        coverage, risk = risk_coverage(values, correct)
        kept = coverage >= _SMALLEST_COVERAGE
        _line(axes, coverage[kept], risk[kept], name)
    return _picture(figure, axes)


def _histogram(
    values: FloatArray, correct: FloatArray, *, x: str = "score", y: str = "answers"
) -> str:
    figure, axes = _figure(x, y)
    finite = np.isfinite(values)
    groups = [values[finite & (correct == 1)], values[finite & (correct == 0)]]
    if finite.any():
        axes.hist(groups, bins=20, label=["right", "wrong"], hatch=["", "//"])
    return _picture(figure, axes)


def _figure(x_label: str, y_label: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 4), layout="constrained")
    axes = figure.subplots()
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    return figure, axes


def _line(axes: Any, x: FloatArray, y: FloatArray, name: str) -> None:  # noqa: ANN401 - matplotlib
    style = ":" if name == BASELINE else "-"
    axes.plot(x, y, style, label=printable(name[:_LONGEST_NAME]))


def _picture(figure: Any, axes: Any) -> str:  # noqa: ANN401 - matplotlib
    """Return a figure as matplotlib's own SVG in a data URI."""
    if axes.get_legend_handles_labels()[1]:
        for text in axes.legend(fontsize="small").get_texts():
            text.set_parse_math(False)  # a name with a dollar sign is no formula
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{b64encode(stream.getvalue()).decode()}"
