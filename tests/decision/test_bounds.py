"""The exact binomial bounds, against scipy and against tables."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from snne_guard.decision.bounds import (
    critical_counts,
    interval,
    least_trials,
    upper_bound,
)

SHARES = st.floats(0.001, 0.9)


@pytest.mark.parametrize(
    ("delta", "counts"),
    [(0.1, [11, 22, 45, 114, 230]), (0.05, [14, 29, 59, 149, 299])],
)
def test_the_least_trials_are_those_of_the_table(
    delta: float, counts: list[int]
) -> None:
    levels = (0.2, 0.1, 0.05, 0.02, 0.01)
    assert [least_trials(level, delta) for level in levels] == counts


@given(level=SHARES, delta=SHARES)
def test_one_trial_less_shows_nothing(level: float, delta: float) -> None:
    least = least_trials(level, delta)
    assert binom.cdf(0, least, level) <= delta * (1 + 1e-12)
    assert least == 1 or binom.cdf(0, least - 1, level) > delta * (1 - 1e-12)


@settings(max_examples=40)
@given(n=st.integers(0, 400), level=SHARES, delta=SHARES)
def test_critical_counts_are_the_largest_that_reject(
    n: int, level: float, delta: float
) -> None:
    counts = critical_counts(n, level, delta)
    trials = np.arange(n + 1)
    assert counts.shape == (n + 1,)
    assert (binom.cdf(counts, trials, level) <= delta * (1 + 1e-9)).all()
    assert (binom.cdf(counts + 1, trials, level) > delta * (1 - 1e-9)).all()


def test_a_p_value_of_delta_rejects() -> None:
    # 4 of 4 without an error at a rate of one half: exactly 1 in 16.
    assert critical_counts(4, 0.5, 0.0625).tolist() == [-1, -1, -1, -1, 0]
    assert critical_counts(4, 0.5, math.nextafter(0.0625, 0)).tolist()[4] == -1


def test_critical_counts_stay_exact_for_many_trials() -> None:
    counts = critical_counts(20_000, 0.07, 0.1)
    exact = binom.ppf(0.1, [20_000, 19_999, 12_345], 0.07)
    assert (exact - counts[[20_000, 19_999, 12_345]]).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        counts[0] = 1


@settings(max_examples=40)
@given(errors=st.integers(0, 60), right=st.integers(1, 200), delta=SHARES)
def test_the_upper_bound_is_clopper_and_pearsons(
    errors: int, right: int, delta: float
) -> None:
    found = upper_bound(errors, errors + right, delta)
    assert found == pytest.approx(beta.ppf(1 - delta, errors + 1, right), abs=1e-9)


def test_nothing_is_known_of_what_was_never_seen_right() -> None:
    assert upper_bound(0, 0, 0.1) == 1.0
    assert upper_bound(3, 3, 0.1) == 1.0


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (7, 20), (20, 20)])
def test_the_interval_has_equal_tails(successes: int, trials: int) -> None:
    low, high = interval(successes, trials, 0.9)
    expected = (
        beta.ppf(0.05, successes, trials - successes + 1) if successes else 0.0,
        beta.ppf(0.95, successes + 1, trials - successes) if successes < trials else 1,
    )
    assert (low, high) == pytest.approx(expected, abs=1e-9)
