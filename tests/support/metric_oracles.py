"""The metrics as their definitions read, one question at a time, in fractions."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise, permutations

__all__ = [
    "auarc",
    "auroc",
    "mean_over_orders",
    "normalised_prr",
    "prefix_means",
    "raw_prr",
]

Numbers = Sequence[float]


def auroc(uncertainty: Numbers, correct: Numbers) -> Fraction | None:
    """Every pair of a wrong and a right answer, looked at."""
    pairs = [
        (wrong, right)
        for wrong, is_right in zip(uncertainty, correct, strict=True)
        if not is_right
        for right, also in zip(uncertainty, correct, strict=True)
        if also
    ]
    if not pairs:
        return None
    wins = sum((Fraction(2 * (a > b) + (a == b), 2) for a, b in pairs), Fraction(0))
    return wins / len(pairs)


def prefix_means(uncertainty: Numbers, quality: Numbers) -> list[Fraction]:
    """A_1 ... A_n, each quality replaced by the mean of those with its uncertainty."""
    levelled: list[Fraction] = []
    for score in sorted(uncertainty):
        alike = [
            Fraction(q) for u, q in zip(uncertainty, quality, strict=True) if u == score
        ]
        levelled.append(sum(alike, Fraction(0)) / len(alike))
    return [sum(levelled[:k], Fraction(0)) / k for k in range(1, len(levelled) + 1)]


def auarc(uncertainty: Numbers, quality: Numbers) -> Fraction:
    means = prefix_means(uncertainty, quality)
    steps = [(a + b) / 2 for a, b in pairwise(means)]
    return sum(steps, Fraction(0)) / len(steps)


def raw_prr(
    uncertainty: Numbers, quality: Numbers, max_rejection: float = 1.0
) -> Fraction:
    low, high = Fraction(min(quality)), Fraction(max(quality))
    if low == high:
        return Fraction(1, 2)
    means = prefix_means(uncertainty, quality)
    kept = means[len(means) - max(1, int(max_rejection * len(means))) :]
    return (sum(kept, Fraction(0)) / len(kept) - low) / (high - low)


def normalised_prr(
    uncertainty: Numbers, quality: Numbers, max_rejection: float = 1.0
) -> Fraction | None:
    low, high = Fraction(min(quality)), Fraction(max(quality))
    if low == high:
        return None
    values = [Fraction(q) for q in quality]
    random = (sum(values, Fraction(0)) / len(values) - low) / (high - low)
    oracle = raw_prr([-q for q in quality], quality, max_rejection)
    if oracle == random:
        return None
    return (raw_prr(uncertainty, quality, max_rejection) - random) / (oracle - random)


def mean_over_orders(uncertainty: Numbers, quality: Numbers) -> list[Fraction]:
    """A_1 ... A_n averaged over every order that the uncertainty allows."""
    n = len(uncertainty)
    orders = [
        order
        for order in permutations(range(n))
        if all(uncertainty[a] <= uncertainty[b] for a, b in pairwise(order))
    ]
    means = []
    for k in range(1, n + 1):
        sums = [sum((Fraction(quality[i]) for i in o[:k]), Fraction(0)) for o in orders]
        means.append(sum(sums, Fraction(0)) / k / len(orders))
    return means
