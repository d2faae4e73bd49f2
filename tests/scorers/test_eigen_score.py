"""EigenScore against literal numbers, the formula as it is written, and properties."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.eigen_score import Reading, eigen_score
from snne_guard.types import FloatArray

STATES = [[0.5, -1.0, 0.25, 2.0], [0.4, -1.1, 0.3, 1.9], [-2.0, 0.5, 1.0, 0.0]]

states = st.tuples(st.integers(1, 6), st.integers(2, 9)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.floats(-10, 10))
)


def slow_eigen_score(states: Any, alpha: float, *, official: bool = False) -> float:
    """With the centring matrix and the covariance, as both repositories have it."""
    array = np.array(states, dtype=np.float64)
    n, d = array.shape
    centring = np.eye(d) - np.ones((d, d)) / d
    covariance = array @ centring @ array.T
    if official:
        covariance = covariance / (d - 1)
    values = np.linalg.eigvalsh(covariance + alpha * np.eye(n))
    logs = [math.log(value if value > 0 else 1e-10) for value in values.tolist()]
    base = math.log(10) if official else 1.0
    return sum(logs) / len(logs) / base


@pytest.mark.parametrize(
    ("reading", "alpha", "expected"),
    [
        ("code", 1e-3, -0.3996159526920344),
        ("code", 1.0, 1.368847120767797),
        ("official", 1e-3, -0.6126439589736455),
    ],
)
def test_known_scores(reading: Reading, alpha: float, expected: float) -> None:
    slow = slow_eigen_score(STATES, alpha, official=reading == "official")

    got = eigen_score(STATES, alpha=alpha, reading=reading)

    assert got == pytest.approx(expected, abs=1e-9)
    assert got == pytest.approx(slow, abs=1e-9)


@given(states, st.floats(1e-2, 10), st.booleans())
def test_it_is_the_formula(drawn: FloatArray, alpha: float, official: bool) -> None:
    slow = slow_eigen_score(drawn, alpha, official=official)

    got = eigen_score(drawn, alpha=alpha, reading="official" if official else "code")

    assert got == pytest.approx(slow, abs=1e-9)


@given(states, st.randoms(use_true_random=False))
def test_neither_the_order_nor_a_shift_matters(drawn: FloatArray, random: Any) -> None:
    order = list(range(len(drawn)))
    random.shuffle(order)

    got = eigen_score(drawn)

    assert eigen_score(drawn[order]) == pytest.approx(got, abs=1e-6)
    assert eigen_score(drawn + 3.0) == pytest.approx(got, abs=1e-6)
    assert got >= math.log(1e-3) - 1e-9


@given(states)
def test_a_copy_adds_no_dimension(drawn: FloatArray) -> None:
    """It doubles one direction's share and brings one more logarithm of alpha."""
    doubled = np.vstack([drawn, drawn])
    n = len(drawn)
    centred = drawn - drawn.mean(axis=1, keepdims=True)
    values = np.linalg.svd(centred, compute_uv=False) ** 2
    values = np.concatenate([2 * values, np.zeros(2 * n - len(values))]) + 1e-3

    assert eigen_score(doubled) == pytest.approx(np.log(values).mean(), abs=1e-6)


def test_one_answer_and_two() -> None:
    assert eigen_score([[1.0, -1.0]]) == pytest.approx(math.log(2.001))
    alike = eigen_score([[1.0, -1.0], [1.0, -1.0]])
    assert alike == pytest.approx((math.log(4.001) + math.log(0.001)) / 2)
    assert eigen_score([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) == pytest.approx(
        (math.log(2.001) + math.log(6.001)) / 2
    )


def test_directions_far_below_the_largest_one_are_kept() -> None:
    """A product of the states with themselves would lose them in its rounding."""
    large = np.array([1.0, -1.0, 0.0, 0.0]) * 1e6
    small = np.array([0.0, 0.0, 1.0, -1.0]) * 1e-2
    expected = (math.log(2e12 + 1e-3) + math.log(2e-4 + 1e-3)) / 2

    assert eigen_score([large, small]) == pytest.approx(expected, abs=1e-9)
    both = [large + small, large - small]
    turned = (math.log(4e12 + 1e-3) + math.log(4e-4 + 1e-3)) / 2
    assert eigen_score(both) == pytest.approx(turned, abs=1e-6)


def test_without_alpha_an_empty_direction_counts_as_a_small_one() -> None:
    assert eigen_score([[2.0, 2.0]], alpha=0) == pytest.approx(math.log(1e-10))


@pytest.mark.parametrize(
    ("hidden_states", "message"),
    [
        ([1.0, 2.0], r"expected \(n, d\) hidden_states, got shape \(2,\)"),
        ([], r"got shape \(0,\)"),
        ([[], []], r"got shape \(2, 0\)"),
        ([[1.0, math.nan]], "hidden_states without NaN"),
        ([[1.0, -math.inf]], "hidden_states of finite numbers, got -inf"),
        ([[1.0], [1.0, 2.0]], "hidden_states to be numbers, got list"),
    ],
)
def test_states_that_are_none(hidden_states: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        eigen_score(hidden_states)


def test_options_that_make_no_sense() -> None:
    with pytest.raises(ConfigurationError, match="alpha of at least 0, got -1"):
        eigen_score(STATES, alpha=-1)
    with pytest.raises(ConfigurationError, match=r"\('code', 'official'\), got 'mine'"):
        eigen_score(STATES, reading="mine")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two numbers each, got one"):
        eigen_score([[1.0]], reading="official")
