"""An evaluation as one page of HTML that needs nothing else."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from snne_guard.decision import Threshold
from snne_guard.errors import InputError, MissingExtraError
from snne_guard.evaluation import plots
from snne_guard.evaluation.accepting import error_at, in_words
from snne_guard.evaluation.conclusions import advice, findings, skipped_by_reason
from snne_guard.evaluation.ranking import TITLES, Evaluation
from snne_guard.evaluation.recordings import Recording
from snne_guard.text import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#1b2230"
_COLOURS = {
    plots.RIGHT: "var(--right)",
    plots.WRONG: "var(--wrong)",
    plots.LINE: "var(--line)",
    plots.OTHERS: "var(--others)",
    plots.QUIET: "var(--quiet)",
    _INK: "var(--text)",
}
_STYLE: dict[Any, Any] = {
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor"), _INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), _INK),
    "svg.fonttype": "none",
    "svg.hashsalt": "snne-guard",
    "font.size": 9,
}
_COVERAGES = [tenth / 10 for tenth in range(10, 0, -1)]
_EXAMPLES = 5  # answers of each kind that are shown


def html_report(
    evaluations: Iterable[Evaluation],
    /,
    *,
    max_error: float = 0.1,
    texts: Callable[[str], Iterable[Recording]] | None = None,
) -> str:
    """Return a page of HTML on evaluations, with a section for each.

    It loads nothing, and has no text of a question or an answer unless these are given,
    only the paths of fields of JSON answers.

    Args:
        evaluations: What ``evaluate`` returned.
        max_error: The error rate among accepted answers whose threshold is shown.
        texts: Takes the name of a set and returns its recordings, of which those are
            shown that fooled the guard, and those that it held back wrongly.

    Raises:
        MissingExtraError: jinja2, matplotlib, scipy or scikit-learn is not installed.
    """
    try:
        import jinja2
        import matplotlib.figure  # noqa: F401 - before anything is drawn
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "jinja2", extra="eval") from error
    page = Path(__file__).with_suffix(".html").read_text(encoding="utf-8")
    # What is on the page is shown as it is: no control character, and no tag.
    environment = jinja2.Environment(
        autoescape=True, finalize=_shown, trim_blocks=True, lstrip_blocks=True
    )
    sections = [_section(each, max_error, texts) for each in evaluations]
    return environment.from_string(page).render(sections=sections, titles=TITLES)


def _shown(value: Any) -> Any:  # noqa: ANN401 - what the template prints
    plain = isinstance(value, str) and not hasattr(value, "__html__")
    return printable(value, lines=True) if plain else value


def _section(
    evaluation: Evaluation,
    max_error: float,
    texts: Callable[[str], Iterable[Recording]] | None,
) -> dict[str, Any]:
    threshold, accepted, examples = None, [], None
    with suppress(InputError):
        u, correct = plots.judged(evaluation)
        if 0 < correct.sum() < len(correct):
            threshold = Threshold.for_error_rate(u, correct, alpha=max_error)
            accepted = [(c, c * len(u), error_at(u, correct, c)) for c in _COVERAGES]
            examples = _examples(evaluation, texts(evaluation.name)) if texts else None
    drawn: dict[str, Callable[..., Axes]] = {"methods": plots.plot_methods}
    if threshold is not None:
        drawn |= {
            "uncertainty": plots.plot_uncertainty,
            "risk": partial(plots.plot_risk_coverage, threshold=threshold),
            "calibration": plots.plot_calibration,
            "recipes": plots.plot_recipes,
        }
    never = evaluation.never_accepted
    return {
        "evaluation": evaluation,
        "findings": [*findings(evaluation)],
        "advice": next(advice(evaluation, threshold)),
        "skipped": skipped_by_reason(evaluation),
        "never": {in_words(code): count for code, count in never.items()},
        "plots": {name: _svg(plot, evaluation, name) for name, plot in drawn.items()},
        "accepted": accepted,
        "threshold": threshold,
        "max_error": max_error,
        "examples": examples,
    }


def _examples(
    evaluation: Evaluation, rows: Iterable[Recording]
) -> list[tuple[str, list[tuple[float, Recording]]]]:
    """Return the wrong answers of lowest ``u``, and the right ones of highest."""
    u, correct = plots.judged(evaluation)
    order = [at for at in np.argsort(u, kind="stable") if np.isfinite(u[at])]
    wrong = [at for at in order if not correct[at]][:_EXAMPLES]
    right = [at for at in reversed(order) if correct[at]][:_EXAMPLES]
    wanted = {evaluation.ids[at]: float(u[at]) for at in (*wrong, *right)}
    found = {row.id: (wanted[row.id], row) for row in rows if row.id in wanted}
    return [
        (title, [found[evaluation.ids[at]] for at in places])
        for title, places in (
            ("Wrong answers with the lowest u, which fooled the guard", wrong),
            ("Right answers with the highest u, held back first", right),
        )
    ]


def _svg(plot: Callable[..., Axes], evaluation: Evaluation, name: str) -> str | None:
    """Return a plot as SVG in the page's own colours and font, None without data."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = len(evaluation.rows) if name == "methods" else 10
    height = min(2.9, max(1.5, 0.22 * rows + 0.7))
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(4.4, height), layout="constrained")
        try:
            plot(evaluation, ax=figure.subplots())
        except InputError:
            return None
        stream = io.StringIO()
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    # The metadata and namespaces are addresses, which a page inside HTML does without.
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"| (?:width|height)="[\d.]+pt"', "", svg)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\1{name}-", svg)
    for colour, variable in _COLOURS.items():
        svg = svg.replace(colour, variable)
    return svg
