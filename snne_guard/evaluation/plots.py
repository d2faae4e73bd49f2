"""Five plots of an evaluation, for notebooks and for the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from snne_guard.errors import InputError, MissingExtraError
from snne_guard.evaluation.accepting import predicted_errors
from snne_guard.evaluation.metrics import Interval, risk_coverage
from snne_guard.evaluation.ranking import BASELINE, TITLES, Evaluation
from snne_guard.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from snne_guard.decision import Threshold

RIGHT, WRONG, LINE = "#2f7d5b", "#c2372f", "#2b6cb0"
OTHERS, QUIET = "#8a94a6", "#596273"
"""Colours, which the report replaces by those of its light or dark page."""

_BINS = 20
_CURVES = 4
_LEAST_COVERAGE = 0.05  # below it the risk hangs on a few answers
_GROUPS = 8  # of answers whose p_wrong is compared with their errors
_LONGEST_NAME = 32
_MOST_ROWS = 14


def plot_uncertainty(evaluation: Evaluation, *, ax: Axes | None = None) -> Axes:
    """Draw how many right and wrong answers have which ``u``.

    Args:
        evaluation: What ``evaluate`` returned.
        ax: Where to draw; None makes a figure with pyplot.

    Raises:
        InputError: The evaluation lacks what is drawn: right and wrong answers, or
            ``u`` of the first method.
        MissingExtraError: matplotlib is not installed.
    """
    u, correct = judged(evaluation)
    ax = _axes(ax, x="u", y="answers")
    known = np.isfinite(u)
    groups = [("right", RIGHT, correct == 1), ("wrong", WRONG, correct == 0)]
    ax.hist(
        [u[known & chosen] for _, _, chosen in groups],
        bins=np.linspace(0, 1, _BINS + 1).tolist(),
        color=[colour for _, colour, _ in groups],
        label=[f"{name} ({chosen.sum()})" for name, _, chosen in groups],
    )
    ax.set_xlim(0, 1)
    _legend(ax)
    return ax


def plot_risk_coverage(
    evaluation: Evaluation,
    *,
    threshold: Threshold | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the error rate among accepted answers over the share that is accepted.

    The curves are those of the first method, of the best others and of the length of
    the answer. A ``threshold`` is marked on the first. The rest is as in
    ``plot_uncertainty``.
    """
    u, correct = judged(evaluation)
    ax = _axes(ax, x="share of answers accepted", y="share wrong among them")
    first, ranked = evaluation.rows[0].name, evaluation.ranked
    best = [row.name for row in ranked if row.name not in {first, BASELINE}]
    shown = [(first, u, LINE, "-")]
    for name, style in zip(best[: _CURVES - 2], ("--", "-."), strict=False):
        shown.append((name, evaluation.uncertainties[name], OTHERS, style))
    if first != BASELINE:
        shown.append((BASELINE, evaluation.uncertainties[BASELINE], OTHERS, ":"))
    for name, raw, colour, style in shown:
        values = np.where(np.isfinite(u), raw, np.inf)  # whatever the method
        coverage, risk = risk_coverage(values, correct)
        kept = (coverage >= _LEAST_COVERAGE) & np.isfinite(np.sort(values))
        ax.plot(coverage[kept], risk[kept], style, color=colour, label=_short(name))
    if threshold is not None and threshold.alpha is not None:
        ax.axhline(threshold.alpha, color=WRONG, linestyle=":", linewidth=1)
    if threshold is not None and threshold.value >= 0:
        share = float((u <= threshold.value).mean())
        wrong = threshold.n_wrong / max(threshold.n_accepted, 1)
        ax.plot([share], [wrong], "o", color=WRONG, label=f"u = {threshold.value:.2f}")
    ax.set_xlim(0, 1)
    ax.set_ylim(bottom=0)
    _legend(ax)
    return ax


def plot_calibration(evaluation: Evaluation, *, ax: Axes | None = None) -> Axes:
    """Draw how often answers are wrong over their ``p_wrong``.

    Each ``p_wrong`` is learnt from the other two thirds of the questions, for which
    scikit-learn is needed; each point stands for as many answers. The rest is as in
    ``plot_uncertainty``.
    """
    u, correct = judged(evaluation)
    p_wrong = predicted_errors(evaluation.ids, u, correct)
    if p_wrong is None:
        msg = "expected fifty right and wrong answers in two thirds of the questions"
        raise InputError(msg)
    ax = _axes(ax, x="p_wrong", y="share wrong")
    known = np.flatnonzero(np.isfinite(p_wrong))
    order = known[np.argsort(p_wrong[known], kind="stable")]
    groups = [each for each in np.array_split(order, _GROUPS) if len(each)]
    ax.plot([0, 1], [0, 1], color=QUIET, linestyle=":", label="as predicted")
    ax.plot(
        [p_wrong[each].mean() for each in groups],
        [1 - correct[each].mean() for each in groups],
        "o-",
        color=LINE,
        label=f"{len(order)} answers",
    )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1)
    _legend(ax)
    return ax


def plot_methods(evaluation: Evaluation, *, ax: Axes | None = None) -> Axes:
    """Draw the first metric of the best methods with its 90% interval.

    The rest is as in ``plot_uncertainty``, but answers need not be right or wrong.
    """
    metric, first = evaluation.metrics[0], evaluation.rows[0].name
    rows = [
        (row.name, row.metrics[metric])
        for place, row in enumerate(evaluation.ranked)
        if place < _MOST_ROWS or row.name in {first, BASELINE}
    ]
    ax = _axes(ax, x=TITLES[metric], y="")
    _intervals(ax, rows, colours={first: LINE})
    return ax


def plot_recipes(evaluation: Evaluation, *, ax: Axes | None = None) -> Axes:
    """Draw the AUROC of the recipes with as many calls as the plain one.

    It raises InputError where there are no recipes; the rest is as in
    ``plot_uncertainty``.
    """
    compared = evaluation.recipes
    rows = compared.recipes if compared else ()
    equal = [row for row in rows if compared and row.calls == compared.calls]
    if not equal:
        msg = "expected recipes: self-checks or views, and right and wrong answers"
        raise InputError(msg)
    ax = _axes(ax, x=f"AUROC at {equal[0].calls} calls", y="")
    ordered = sorted(equal, key=lambda row: -row.auroc.value)
    _intervals(ax, [(row.name, row.auroc) for row in ordered], colours={"plain": LINE})
    return ax


def judged(evaluation: Evaluation, /) -> tuple[FloatArray, FloatArray]:
    """Return ``u`` and verdicts of the answers; InputError if they are unknown."""
    u, correct = evaluation.u, evaluation.correct
    if u is None or correct is None or not np.isfinite(u).any():
        msg = "expected right and wrong answers and a first method that gives them u"
        raise InputError(msg)
    return u, correct


def _intervals(
    ax: Axes, rows: list[tuple[str, Interval]], *, colours: dict[str, str]
) -> None:
    places = range(len(rows), 0, -1)
    for place, (name, interval) in zip(places, rows, strict=True):
        colour = colours.get(name, OTHERS)
        ax.plot([interval.low, interval.high], [place] * 2, color=colour)
        ax.plot([interval.value], [place], "o", color=colour)
    ax.set_yticks(list(places), [_short(name) for name, _ in rows])
    ax.set_ylim(0.5, len(rows) + 0.5)
    for text in ax.get_yticklabels():
        text.set_parse_math(False)  # a name with a dollar sign is no formula


def _short(name: str) -> str:
    # Fonts have no glyph for control characters, nor for their pictures.
    shown = [char if char.isprintable() else "?" for char in name]
    cut = "..." if len(shown) > _LONGEST_NAME else ""
    return "".join(shown[: _LONGEST_NAME - len(cut)]) + cut


def _axes(ax: Axes | None, *, x: str, y: str) -> Axes:
    if ax is None:
        try:
            from matplotlib import pyplot as plt
        except ModuleNotFoundError as error:
            raise MissingExtraError(error.name or "matplotlib", extra="eval") from error
        _, ax = plt.subplots(layout="constrained")
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _legend(ax: Axes) -> None:
    for text in ax.legend(fontsize="small", frameon=False).get_texts():
        text.set_parse_math(False)  # a name with a dollar sign is no formula
