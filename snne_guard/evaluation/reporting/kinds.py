"""What the charts of lines are called, how to read them, and what to compare with."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from snne_guard.evaluation.reporting.charts import Lines
from snne_guard.evaluation.results import Curve

__all__ = ["CLUSTERS", "RELIABILITY", "RISK", "ROC", "SAMPLES", "with_chance"]

ROC = Lines(
    title="ROC curves",
    caption=(
        "How many wrong answers are found at the price of how many right ones. The "
        "further above the dotted line of chance, the better."
    ),
    x_label="right answers called uncertain",
    y_label="wrong answers found",
    reference=((0, 0), (1, 1)),
    square=True,
)
RISK = Lines(
    title="Risk and coverage",
    caption=(
        "The share of wrong answers among those that are kept when the most uncertain "
        "ones are withheld, from 5 % kept on. Lower is better; the dotted line is "
        "withholding at random."
    ),
    x_label="share of answers kept",
    y_label="wrong among them",
)
SAMPLES = Lines(
    title="AUROC by number of answers",
    caption="What more answers bring. The dotted line is chance.",
    x_label="scored answers",
    y_label="AUROC",
    few=True,
    whole=True,
)
CLUSTERS = Lines(
    title="AUROC by number of groups of equal answers",
    caption=(
        "Where the answers fall into as many groups, how well is the rest told apart? "
        "Below: how many questions there are of each kind."
    ),
    x_label="groups of equal answers",
    y_label="AUROC",
    few=True,
    whole=True,
)
RELIABILITY = Lines(
    title="Reliability",
    caption=(
        "How often answers are wrong that are said to be wrong with a given "
        "probability. On the dotted line the probability is right. Below: how many "
        "questions."
    ),
    x_label="predicted probability of a wrong answer",
    y_label="wrong answers",
    reference=((0, 0), (1, 1)),
    square=True,
    few=True,
)


def with_chance(about: Lines, curves: Iterable[Curve], *, chance: float = 0.5) -> Lines:
    """Return the same with a line where a method would be that knows nothing.

    Args:
        about: A chart.
        curves: What it shows.
        chance: Height of the line.
    """
    places = [x for curve in curves for x in curve.x if math.isfinite(x)]
    if not places:
        return about
    return replace(about, reference=((min(places), chance), (max(places), chance)))
