"""The fit that only falls, and the binomial test, each against a slow oracle."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision.isotonic import binomial_cdf, decreasing

POINTS = st.lists(
    st.tuples(st.integers(0, 6), st.sampled_from([0.0, 1.0])), min_size=1, max_size=25
)


def min_max(points: list[tuple[int, float]]) -> list[float]:
    """The fit by its min-max formula: no pooling, every interval looked at."""
    places = sorted({x for x, _ in points})

    def mean(low: int, high: int) -> float:
        values = [y for x, y in points if low <= x <= high]
        return sum(values) / len(values)

    return [
        max(
            min(mean(low, high) for low in places if low <= x)
            for high in places
            if high >= x
        )
        for x in places
    ]


@given(points=POINTS)
def test_it_is_the_min_max_formula(points: list[tuple[int, float]]) -> None:
    x, fitted = decreasing(*map(list, zip(*points, strict=True)))
    assert x.tolist() == sorted({x for x, _ in points})
    assert fitted == pytest.approx(min_max(points))
    assert all(one >= two for one, two in pairwise(fitted.tolist()))


@given(points=POINTS)
def test_pooling_keeps_the_mean(points: list[tuple[int, float]]) -> None:
    places, fitted = decreasing(*map(list, zip(*points, strict=True)))
    value = dict(zip(places.tolist(), fitted.tolist(), strict=True))
    total = sum(value[x] for x, _ in points)
    assert total == pytest.approx(sum(y for _, y in points))


def test_nothing_to_fit() -> None:
    x, fitted = decreasing([], [])
    assert (x.size, fitted.size) == (0, 0)


@given(
    successes=st.integers(0, 30),
    trials=st.integers(0, 30),
    probability=st.sampled_from([Fraction(1, 50), Fraction(1, 20), Fraction(1, 2)]),
)
def test_the_binomial_sum_is_the_exact_one(
    successes: int, trials: int, probability: Fraction
) -> None:
    exact = sum(
        math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k)
        for k in range(min(successes, trials) + 1)
    )
    found = binomial_cdf(successes, trials, float(probability))
    assert found == pytest.approx(float(exact), rel=1e-10)


@pytest.mark.parametrize(("epsilon", "needed"), [(0.02, 114), (0.05, 45), (0.1, 22)])
def test_how_many_without_one_wrong_show_that_few_are(
    epsilon: float, needed: int
) -> None:
    assert (
        binomial_cdf(0, needed, epsilon) <= 0.1 < binomial_cdf(0, needed - 1, epsilon)
    )


def test_many_trials_overflow_nothing() -> None:
    assert binomial_cdf(50_000, 1_000_000, 0.05) == pytest.approx(0.5, abs=0.01)
    assert np.isfinite(binomial_cdf(0, 1_000_000, 0.5))
