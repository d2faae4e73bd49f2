"""The metrics that depend on an order alone, for many data sets at once."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from snne_guard.evaluation.metrics.ties import TieGroups
from snne_guard.types import FloatArray

__all__ = [
    "auarc",
    "aurc",
    "average_precision",
    "excess_risk",
    "mean_prefix",
    "normalised_prr",
    "pair_share",
    "raw_prr",
    "share",
]


def share(part: FloatArray, whole: FloatArray) -> FloatArray:
    """Return part / whole, NaN where the whole is 0."""
    filled = np.full(np.broadcast_shapes(part.shape, whole.shape), np.nan)
    quotient: FloatArray = np.divide(part, whole, out=filled, where=whole != 0)
    return quotient


def pair_share(groups: TieGroups) -> FloatArray:
    """Return the ``(b,)`` shares of pairs (right, wrong) with the wrong one behind.

    A pair in one group counts half. All counts are whole numbers, so the share is
    exact up to its one division.
    """
    wrong = groups.sizes - groups.quality
    n_wrong = wrong.sum(axis=1)
    # Twice the rank of each wrong answer among all, less what is due to wrong ones.
    ranks = groups.ends[:, 1:] + groups.ends[:, :-1]
    twice = np.einsum("bg,bg->b", wrong, ranks) - n_wrong**2
    return share(twice, 2 * n_wrong * (groups.n - n_wrong))


def average_precision(groups: TieGroups) -> FloatArray:
    """Return the ``(b,)`` average precision of quality 1 from the first group on.

    Precision at the end of each group, weighted by the part of all questions of
    quality 1 that the group brings.
    """
    found = groups.quality.cumsum(axis=1)
    # A group of nobody brings nothing, wherever it stands.
    precision = found / np.maximum(groups.ends[:, 1:], 1)
    return share(np.einsum("bg,bg->b", groups.quality, precision), found[:, -1])


def auarc(groups: TieGroups) -> FloatArray:
    """Return the ``(b,)`` areas under the mean quality, by the trapezoid rule."""
    if groups.n == 1:
        return np.full(len(groups.sizes), np.nan)
    return _weighted(groups, _trapezoid_places(groups.n))


def mean_prefix(groups: TieGroups, *, max_rejection: float = 1.0) -> FloatArray:
    """Return the ``(b,)`` means of the mean quality of the k most certain, over k."""
    return _weighted(groups, _mean_places(groups.n, _taken(groups.n, max_rejection)))


def _weighted(groups: TieGroups, up_to: FloatArray) -> FloatArray:
    # Where k cuts a group, its questions count with their mean quality: the exact
    # expectation over all orders within the group.
    of_group = np.diff(up_to.take(groups.ends), axis=1)
    area: FloatArray = np.einsum("bg,bg->b", groups.means, of_group)
    return area


@lru_cache(maxsize=8)
def _trapezoid_places(n: int) -> FloatArray:
    weights = np.full(n, 1.0 / (n - 1))
    weights[[0, -1]] /= 2
    return _up_to(weights)


@lru_cache(maxsize=8)
def _mean_places(n: int, taken: int) -> FloatArray:
    weights = np.zeros(n)
    weights[n - taken :] = 1.0 / taken
    return _up_to(weights)


def _up_to(weights: FloatArray) -> FloatArray:
    """Return what the first 0 ... n places weigh in a weighted sum of prefix means.

    Args:
        weights: ``(n,)`` of the means of the k most certain, k = 1 ... n; their sum 1.
    """
    # The question at place j is in the means of all k >= j, with weight 1/k in each.
    of_place = (weights / np.arange(1, len(weights) + 1))[::-1].cumsum()[::-1]
    up_to = np.concatenate([[0.0], of_place.cumsum()])
    up_to /= up_to[-1]  # 1 but for rounding: now equal qualities give just that
    up_to.flags.writeable = False
    return up_to


def raw_prr(
    groups: TieGroups, best_first: TieGroups, *, max_rejection: float = 1.0
) -> FloatArray:
    """Return the ``(b,)`` means over k of quality that was stretched to [0, 1]."""
    low, high = _quality_range(best_first)
    area = mean_prefix(groups, max_rejection=max_rejection)
    stretched = share(area - low, high - low)
    return np.where(high > low, stretched, 0.5)


def normalised_prr(
    groups: TieGroups, best_first: TieGroups, *, max_rejection: float = 1.0
) -> FloatArray:
    """Return the ``(b,)`` parts of the way from a random order to the best one."""
    low, high = _quality_range(best_first)
    random = groups.quality.sum(axis=1) / groups.n
    gained = mean_prefix(groups, max_rejection=max_rejection) - random
    possible = mean_prefix(best_first, max_rejection=max_rejection) - random
    # With all questions kept, or all alike, every order is as good as the best.
    exists = (high > low) & (_taken(groups.n, max_rejection) > 1)
    return share(gained, np.where(exists, possible, 0.0))


def aurc(groups: TieGroups) -> FloatArray:
    """Return the ``(b,)`` mean shares of wrong answers among the k most certain."""
    # Not 1 - the share of right ones: where there is nothing wrong, 0 is meant.
    return mean_prefix(
        replace(groups, quality=groups.sizes - groups.quality, means=1 - groups.means)
    )


def excess_risk(groups: TieGroups, best_first: TieGroups) -> FloatArray:
    """Return the ``(b,)`` areas that the best order has more."""
    return np.maximum(aurc(groups) - aurc(best_first), 0.0)


def _taken(n: int, max_rejection: float) -> int:
    return max(1, int(max_rejection * n))


def _quality_range(best_first: TieGroups) -> tuple[FloatArray, FloatArray]:
    there = best_first.sizes > 0
    rows = np.arange(len(there))
    worst = there.shape[1] - 1 - there[:, ::-1].argmax(axis=1)
    means = best_first.means
    return means[rows, worst], means[rows, there.argmax(axis=1)]
