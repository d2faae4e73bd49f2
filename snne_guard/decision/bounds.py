"""Exact binomial bounds: how many errors a test allows, and intervals for a share."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from snne_guard.decision.isotonic import binomial_cdf

__all__ = ["critical_counts", "interval", "least_trials", "upper_bound"]

_CLOSE = 1e-9
"""Distance from delta below which the running sum is not trusted."""


def least_trials(level: float, delta: float) -> int:
    """Return how many trials without one error show that errors are rarer than that.

    Args:
        level: The error rate in question, in (0, 1).
        delta: Largest p-value at which it counts as shown, in (0, 1).

    Returns:
        The least ``n`` with ``(1 - level) ** n <= delta``.

    Example:
        >>> [least_trials(level, 0.1) for level in (0.2, 0.1, 0.05, 0.01)]
        [11, 22, 45, 230]
    """
    guess = max(1, math.floor(math.log(delta) / math.log1p(-level)))
    while binomial_cdf(0, guess, level) > delta:
        guess += 1
    return guess


@lru_cache(maxsize=256)
def critical_counts(n: int, level: float, delta: float) -> NDArray[np.int64]:
    """Return how many errors among 0 to ``n`` trials still reject a rate of ``level``.

    Args:
        n: Largest number of trials.
        level: The error rate that is to be rejected, in (0, 1).
        delta: Largest p-value that rejects, in (0, 1).

    Returns:
        ``(n + 1,)`` for each number of trials the largest count of errors with an
        exact binomial p-value of at most ``delta``; -1 where none has one. Read-only.

    Example:
        >>> critical_counts(40, 0.1, 0.1)[[21, 22, 37, 38]]
        array([-1,  0,  0,  1])
    """
    counts = np.empty(n + 1, dtype=np.int64)
    count, term, total = 0, 1.0, 1.0  # the next count to allow: its pmf and its cdf
    for trials in range(n + 1):
        if trials:
            total -= level * term
            term *= trials / (trials - count) * (1 - level)
        if abs(total - delta) < _CLOSE:
            total = binomial_cdf(count, trials, level)
        if total <= delta:
            term *= (trials - count) / (count + 1) * level / (1 - level)
            total += term
            count += 1
        counts[trials] = count - 1
    counts.setflags(write=False)
    return counts


def upper_bound(errors: int, trials: int, delta: float) -> float:
    """Return the Clopper-Pearson bound that a rate exceeds with probability ``delta``.

    Args:
        errors: Errors that were seen.
        trials: Trials in which they were seen; none bound nothing.
        delta: Probability that the bound fails, in (0, 1).

    Returns:
        The bound in [0, 1] (Clopper and Pearson 1934, Biometrika 26).

    Example:
        >>> round(upper_bound(0, 22, 0.1), 4)
        0.0994
    """
    if errors >= trials:
        return 1.0
    return _solve(lambda rate: binomial_cdf(errors, trials, rate) - delta)


def interval(successes: int, trials: int, confidence: float) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval for a share.

    Args:
        successes: Successes that were seen.
        trials: Trials in which they were seen.
        confidence: Probability that the share lies in it, in (0, 1).

    Returns:
        The lower and the upper end, in [0, 1].

    Example:
        >>> tuple(round(end, 3) for end in interval(80, 100, 0.9))
        (0.723, 0.863)
    """
    tail = (1 - confidence) / 2
    low = 1 - upper_bound(trials - successes, trials, tail)
    return low, upper_bound(successes, trials, tail)


def _solve(falling: Callable[[float], float]) -> float:
    """Return where a falling function of a rate crosses zero, from the safe side."""
    low, high = 0.0, 1.0
    while True:
        middle = (low + high) / 2
        if middle in {low, high}:
            return high
        if falling(middle) > 0:
            low = middle
        else:
            high = middle
