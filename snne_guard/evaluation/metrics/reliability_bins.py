"""Answers in bins of their probability of being wrong: the reliability diagram."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.metrics.checks import (
    checked_correct,
    checked_pair,
    checked_probability,
)
from snne_guard.evaluation.metrics.ties import IntArray
from snne_guard.types import FloatArray

__all__ = ["Bins", "Reliability", "binned", "reliability", "sorted_by_probability"]

Bins = Literal["equal_mass", "equal_width"]
"""``equal_mass``: about as many answers in each. ``equal_width``: (0, 1/m], (1/m, 2/m]
and so on, 0 itself in the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reliability:
    """Answers in bins of their probability of being wrong; empty bins are left out.

    Attributes:
        predicted: ``(m,)`` mean probability in each bin, rising.
        observed: ``(m,)`` share of answers in it that are wrong.
        low: ``(m,)`` lower ends of 95 % intervals of that share (Wilson's).
        high: ``(m,)`` upper ends.
        counts: ``(m,)`` answers in it.
    """

    predicted: FloatArray = field(repr=False)
    observed: FloatArray = field(repr=False)
    low: FloatArray = field(repr=False)
    high: FloatArray = field(repr=False)
    counts: IntArray


def reliability(
    probability: ArrayLike,
    correct: ArrayLike,
    *,
    n_bins: int = 10,
    bins: Bins = "equal_mass",
) -> Reliability:
    """Return what a reliability diagram draws.

    Answers of equal probability are never parted, so that the order of the input does
    not matter: with ``equal_mass`` they go to the bin that their middle is in, and
    there may be fewer bins than asked for.

    Args:
        probability: ``(n,)`` of being **wrong**, in [0, 1].
        correct: ``(n,)`` of 0 and 1, 1 for a right answer.
        n_bins: At most so many.
        bins: How they are cut.

    Raises:
        InputError: Not equally many numbers, or not of those kinds.
        ConfigurationError: Less than one bin, or bins of another kind.

    Example:
        >>> found = reliability([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 1], n_bins=2)
        >>> found.predicted.round(4).tolist(), found.observed.tolist(), found.counts
        ([0.15, 0.85], [0.0, 0.5], array([2, 2]))
    """
    sums, wrong, counts = binned(probability, correct, n_bins=n_bins, bins=bins)
    low, high = _wilson(wrong, counts)
    return Reliability(
        predicted=sums / counts,
        observed=wrong / counts,
        low=low,
        high=high,
        counts=counts,
    )


def sorted_by_probability(
    probability: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return probabilities and ones for wrong answers, in an order of their own."""
    chances, wrong = checked_probability(probability), 1 - checked_correct(correct)
    checked_pair(chances, wrong)
    # Sums of floats depend on the order; it shall not be that of the input.
    order = np.lexsort((wrong, chances))
    return chances[order], wrong[order]


def binned(
    probability: ArrayLike, correct: ArrayLike, *, n_bins: int, bins: Bins
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return sums of probabilities and of wrong answers, and counts, for each bin."""
    if bins not in {"equal_mass", "equal_width"} or n_bins < 1:
        msg = (
            'expected n_bins >= 1 and bins of "equal_mass" or "equal_width", '
            f"got {n_bins} and {bins!r}"
        )
        raise ConfigurationError(msg)
    chances, wrong = sorted_by_probability(probability, correct)
    place = (
        _equal_mass(chances, n_bins)
        if bins == "equal_mass"
        else _equal_width(chances, n_bins)
    )
    counts = np.bincount(place, minlength=n_bins)
    there = counts > 0
    sums, n_wrong = (
        np.bincount(place, weights=values, minlength=n_bins).astype(np.float64)[there]
        for values in (chances, wrong)
    )
    return sums, n_wrong, counts[there]


def _equal_width(chances: FloatArray, n_bins: int) -> IntArray:
    inner = np.linspace(0, 1, n_bins + 1)[1:-1]
    return np.searchsorted(inner, chances).astype(np.int64)


def _equal_mass(chances: FloatArray, n_bins: int) -> IntArray:
    _, group, sizes = np.unique(chances, return_inverse=True, return_counts=True)
    twice_middle = 2 * sizes.cumsum() - sizes
    place: IntArray = (twice_middle * n_bins // max(1, 2 * len(chances)))[group]
    return place


def _wilson(successes: FloatArray, trials: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return 95 % intervals of shares.

    Source: Wilson 1927, Journal of the American Statistical Association 22.
    """
    z = NormalDist().inv_cdf(0.975)
    share = successes / trials
    middle = share + z**2 / (2 * trials)
    half = z * np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    scale = 1 + z**2 / trials
    return np.maximum((middle - half) / scale, 0), np.minimum(
        (middle + half) / scale, 1
    )
