"""Two pieces of statistics: a fit that only falls, and the exact binomial test."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.types import FloatArray

__all__ = ["binomial_cdf", "decreasing"]


def decreasing(x: ArrayLike, y: ArrayLike, /) -> tuple[FloatArray, FloatArray]:
    """Fit values that never rise with x, by least squares.

    Neighbours that are out of order are pooled to their mean until none is (pool
    adjacent violators: Ayer and others 1955, Annals of Mathematical Statistics 26).

    Args:
        x: ``(n,)`` positions, in any order; equal ones get one value.
        y: ``(n,)`` values.

    Returns:
        The distinct positions, rising, and the fitted values, falling.

    Example:
        >>> decreasing([1, 2, 3, 4], [1.0, 0.0, 1.0, 0.0])
        (array([1., 2., 3., 4.]), array([1. , 0.5, 0.5, 0. ]))
    """
    positions, place, counts = np.unique(
        np.asarray(x, dtype=np.float64), return_inverse=True, return_counts=True
    )
    sums = np.bincount(place, weights=np.asarray(y, dtype=np.float64))
    blocks: list[tuple[float, int, int]] = []  # sum, values, positions
    for total, count in zip(sums.tolist(), counts.tolist(), strict=True):
        block = (total, count, 1)
        while blocks and blocks[-1][0] * block[1] <= block[0] * blocks[-1][1]:
            before = blocks.pop()
            block = (before[0] + block[0], before[1] + block[1], before[2] + block[2])
        blocks.append(block)
    means = [total / count for total, count, _ in blocks]
    return positions, np.repeat(means, [width for _, _, width in blocks])


def binomial_cdf(successes: int, trials: int, probability: float) -> float:
    """Return the probability of at most so many successes, summed exactly.

    Args:
        successes: 0 or more.
        trials: Independent trials.
        probability: Of success in one, in (0, 1).

    Example:
        >>> round(binomial_cdf(1, 2, 0.5), 12)
        0.75
    """
    yes, no = math.log(probability), math.log1p(-probability)
    terms = (
        math.lgamma(trials + 1)
        - math.lgamma(k + 1)
        - math.lgamma(trials - k + 1)
        + k * yes
        + (trials - k) * no
        for k in range(min(successes, trials) + 1)
    )
    return min(1.0, math.fsum(map(math.exp, terms)))
