"""Figures over several sets: their mean, and how far the sets are from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import NamedTuple

from snne_guard.evaluation.results import EvaluatedSet, Metric

__all__ = ["Kind", "Mean", "MethodMeans", "comparable", "method_means"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over sets.

    Attributes:
        value: The mean, each set counting once.
        deviation: Standard deviation between the sets (n - 1 in the denominator), None
            for one set.
    """

    value: float
    deviation: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodMeans:
    """What one method reaches over several sets.

    Attributes:
        name: What ran.
        white_box: Whether it needs what only the model's owner can see.
        n_sets: Sets that it was evaluated on, with a figure for AUROC, or for PRR where
            the answers are graded.
        auroc: Mean AUROC.
        auarc: Mean AUARC.
        prr: Mean of the paper's PRR.
        prr_normalised: Mean PRR between random and oracle.
    """

    name: str
    white_box: bool
    n_sets: int
    auroc: Mean
    auarc: Mean
    prr: Mean
    prr_normalised: Mean


class Kind(NamedTuple):
    """What sets have in common whose figures may be averaged.

    Attributes:
        protocol: How their answers came about, None where nobody says.
        grader: Who graded them.
        graded: Whether they are better or worse, so that PRR alone ranks them.
    """

    protocol: str | None = None
    grader: str = ""
    graded: bool = False


def comparable(sets: Sequence[EvaluatedSet], /) -> dict[Kind, list[EvaluatedSet]]:
    """Return the sets with labels or grades that may be averaged, by their kind.

    Over answers that came about in other ways, or that were graded otherwise, a mean
    is a mean of nothing.

    Example:
        >>> comparable([])
        {}
    """
    found: dict[Kind, list[EvaluatedSet]] = {}
    for one in sets:
        if one.accuracy is not None or one.graded:
            kind = Kind(one.protocol, one.grader, one.graded)
            found.setdefault(kind, []).append(one)
    return found


def method_means(sets: Sequence[EvaluatedSet], /) -> tuple[MethodMeans, ...]:
    """Return what each method reaches over sets, best AUROC first.

    Where the answers of the sets are graded, and neither right nor wrong, there is no
    AUROC, and the best PRR comes first.

    Over data sets that is what the paper's tables hold, over repeated runs its figures
    after the plus-minus sign. A method that is missing on some of the sets is compared
    with no other: those on the most sets come first.

    Args:
        sets: The sets, all of one kind; one without labels or grades counts for no
            method.

    Example:
        >>> method_means([])
        ()
    """
    found: dict[tuple[str, bool], list[list[Metric | None]]] = {}
    for one in sets:
        for row in one.methods:
            ranks = row.prr if one.graded else row.auroc
            if ranks is not None and ranks.value is not None:
                figures = [row.auroc, row.auarc, row.prr, row.prr_normalised]
                found.setdefault((row.name, row.white_box), []).append(figures)
    means = [
        _means(name, rows, white_box=white_box)
        for (name, white_box), rows in found.items()
    ]
    return tuple(sorted(means, key=lambda one: (-one.n_sets, -_first(one))))


def _first(means: MethodMeans) -> float:
    """Return what a method is ranked by."""
    auroc = means.auroc.value
    return means.prr.value if math.isnan(auroc) else auroc


def _means(
    name: str, rows: Sequence[Sequence[Metric | None]], *, white_box: bool
) -> MethodMeans:
    auroc, auarc, prr, prr_normalised = (
        _mean(column) for column in zip(*rows, strict=True)
    )
    return MethodMeans(
        name=name,
        white_box=white_box,
        n_sets=len(rows),
        auroc=auroc,
        auarc=auarc,
        prr=prr,
        prr_normalised=prr_normalised,
    )


def _mean(column: Sequence[Metric | None]) -> Mean:
    values = [one.value for one in column if one is not None and one.value is not None]
    if len(values) < len(column):
        return Mean(value=math.nan, deviation=None)
    return Mean(
        value=fmean(values), deviation=stdev(values) if len(values) > 1 else None
    )
