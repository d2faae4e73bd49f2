"""The certificate: no completion leaves its limits, and both limits are reached."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import (
    METHODS,
    FunctionMethod,
    PartlyBounded,
    snne,
    snne_partial_bounds,
    uncertainty,
    uncertainty_range,
    wsnne,
    wsnne_partial_bounds,
)
from snne_guard.types import FloatArray, MethodInputs

TAUS = st.sampled_from([0.05, 0.5, 1.0, 3.0, 100.0])
# Mostly the corners, which is where limits are broken.
VALUES = st.sampled_from([0.0, 1.0]) | st.floats(0, 1)


@st.composite
def matrices(draw: Any, *, most: int = 9, least: int = 2) -> FloatArray:
    """Similarities in [0, 1], diagonal 1; not all of them symmetric."""
    n = draw(st.integers(least, most))
    values = draw(st.lists(VALUES, min_size=n * n, max_size=n * n))
    matrix = np.array(values).reshape(n, n)
    if draw(st.booleans()):
        matrix = np.maximum(matrix, matrix.T)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def completed(matrix: FloatArray, missing: int, value: float) -> FloatArray:
    """The set in which every missing member has one similarity to all others."""
    n = len(matrix) + missing
    whole = np.full((n, n), value)
    whole[: len(matrix), : len(matrix)] = matrix
    np.fill_diagonal(whole, 1.0)
    return whole


def literal_bounds(matrix: FloatArray, missing: int, tau: float) -> tuple[float, ...]:
    """The formula as it is printed, without a thought for overflow."""
    m, r, b = len(matrix), missing, math.exp(1 / tau)
    n = m + r
    sums = [sum(math.exp(f / tau) for f in row) for row in matrix]
    low = sum(math.log(R + r * b) for R in sums) + r * math.log(n * b)
    high = sum(math.log(R + r) for R in sums) + r * math.log(b + n - 1)
    return -low / n, -high / n


@given(matrix=matrices(), missing=st.integers(0, 6), tau=TAUS)
def test_it_is_the_formula_as_printed(
    matrix: FloatArray, missing: int, tau: float
) -> None:
    found = snne_partial_bounds(matrix, missing, tau=tau)
    assert found == pytest.approx(literal_bounds(matrix, missing, tau), abs=1e-12)


@given(matrix=matrices(), missing=st.integers(0, 6), tau=TAUS)
def test_both_limits_are_reached(matrix: FloatArray, missing: int, tau: float) -> None:
    low, high = snne_partial_bounds(matrix, missing, tau=tau)
    assert low == pytest.approx(snne(completed(matrix, missing, 1.0), tau=tau))
    assert high == pytest.approx(snne(completed(matrix, missing, 0.0), tau=tau))


@given(
    whole=matrices(most=10, least=3),
    seen=st.integers(2, 10),
    tau=TAUS,
    data=st.data(),
)
def test_no_completion_leaves_the_limits(
    whole: FloatArray, seen: int, tau: float, data: st.DataObject
) -> None:
    seen = min(seen, len(whole))
    missing = len(whole) - seen
    part = whole[:seen, :seen]
    low, high = snne_partial_bounds(part, missing, tau=tau)
    assert low - 1e-9 <= snne(whole, tau=tau) <= high + 1e-9
    logprobs = data.draw(
        st.lists(
            st.floats(-30, 0) | st.sampled_from([0.0, -math.inf, -1000.0]),
            min_size=len(whole),
            max_size=len(whole),
        )
    )
    value = wsnne(whole, logprobs, tau=tau)
    low, high = wsnne_partial_bounds(part, logprobs[:seen], missing, tau=tau)
    assert low - 1e-9 <= value <= high + 1e-9


@given(matrix=matrices(), missing=st.integers(1, 6), tau=TAUS, data=st.data())
def test_the_limits_of_wsnne_are_reached_by_certain_members(
    matrix: FloatArray, missing: int, tau: float, data: st.DataObject
) -> None:
    known = data.draw(
        st.lists(st.floats(-5, 0), min_size=len(matrix), max_size=len(matrix))
    )
    logprobs = [*known, *[0.0] * missing]
    low, high = wsnne_partial_bounds(matrix, known, missing, tau=tau)
    alike, unlike = (completed(matrix, missing, value) for value in (1.0, 0.0))
    assert low == pytest.approx(wsnne(alike, logprobs, tau=tau))
    assert high == pytest.approx(wsnne(unlike, logprobs, tau=tau))


@given(matrix=matrices(), missing=st.integers(1, 6), tau=TAUS)
def test_with_equal_weights_wsnne_has_the_limits_of_snne_or_wider(
    matrix: FloatArray, missing: int, tau: float
) -> None:
    low, high = wsnne_partial_bounds(matrix, np.zeros(len(matrix)), missing, tau=tau)
    narrow = snne_partial_bounds(matrix, missing, tau=tau)
    assert low <= narrow[0] + 1e-12
    assert high >= narrow[1] - 1e-12


def test_with_nothing_missing_both_limits_are_the_value() -> None:
    matrix = np.array([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]])
    value = snne(matrix, tau=0.7)
    assert snne_partial_bounds(matrix, 0, tau=0.7) == pytest.approx((value, value))
    logprobs = [-0.2, -900.0, -math.inf]
    value = wsnne(matrix, logprobs)
    found = wsnne_partial_bounds(matrix, logprobs, 0)
    assert found == pytest.approx((value, value))


def test_a_small_tau_overflows_nothing() -> None:
    low, high = snne_partial_bounds(np.eye(3), 2, tau=1e-3)
    assert (low, high) == pytest.approx(
        (-(1000 + (3 * math.log(3) + 2 * math.log(5)) / 5), -1000.0)
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (([[1, 0]], 1), "square|shape"),
        (([[1, math.nan], [0, 1]], 1), "NaN"),
        (([[1]], -1), "0 or more missing members, got -1"),
    ],
)
def test_what_is_no_partial_set(arguments: tuple[Any, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        snne_partial_bounds(*arguments)


@pytest.mark.parametrize("logprobs", [[-1.0], [-1.0, math.nan], "no"])
def test_what_are_no_log_probabilities(logprobs: Any) -> None:
    with pytest.raises(InputError):
        wsnne_partial_bounds(np.eye(2), logprobs, 1)


# --- the range of u ------------------------------------------------------------------


@given(whole=matrices(most=9, least=3), seen=st.integers(2, 8), tau=TAUS)
def test_u_stays_in_its_range_however_many_join(
    whole: FloatArray, seen: int, tau: float
) -> None:
    seen = min(seen, len(whole) - 1)
    inputs = MethodInputs(similarity=whole[:seen, :seen], tau=tau)
    found = uncertainty_range(METHODS["snne"], inputs, len(whole) - seen)
    assert found is not None
    for n in range(seen, len(whole) + 1):
        u = uncertainty(snne(whole[:n, :n], tau=tau), n, tau=tau)
        assert u is not None
        # Without a tolerance: a decision hangs on it.
        assert found[0] <= u <= found[1]


@given(matrix=matrices(most=8), missing=st.integers(0, 4), tau=TAUS)
def test_the_range_of_u_is_not_wider_than_it_must_be(
    matrix: FloatArray, missing: int, tau: float
) -> None:
    inputs = MethodInputs(similarity=matrix, tau=tau)
    found = uncertainty_range(METHODS["snne"], inputs, missing)
    reached = [
        uncertainty(snne(whole, tau=tau), len(whole), tau=tau)
        for joining in range(missing + 1)
        for whole in (completed(matrix, joining, value) for value in (0.0, 1.0))
    ]
    known = [u for u in reached if u is not None]
    assert found == pytest.approx((min(known), max(known)), abs=1e-9)


def test_a_method_that_knows_no_limits_has_no_range() -> None:
    def spread(inputs: MethodInputs) -> float:
        return float(1 - inputs.similarity.mean())

    def limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        del tau
        return 0.0, 1 - 1 / n

    plain = FunctionMethod(name="spread", source="", function=spread, limits=limits)
    inputs = MethodInputs(similarity=np.eye(3))
    assert isinstance(plain, PartlyBounded)
    assert uncertainty_range(plain, inputs, 2) is None
    knowing = FunctionMethod(
        name="spread",
        source="",
        function=spread,
        limits=limits,
        partial=lambda inputs, missing: [
            (0.0, 1 - 1 / (len(inputs.similarity) + joined))
            for joined in range(missing + 1)
        ],
    )
    assert uncertainty_range(knowing, inputs, 2) == (0.0, 1.0)
    with pytest.raises(InputError, match="mean_logprobs"):
        METHODS["wsnne"].partial_bounds(inputs, 1)  # more than a Method must have


def test_a_method_of_a_users_own_needs_to_know_nothing() -> None:
    class Own:
        name, needs, white_box, source = "own", frozenset[str](), False, ""

        def compute(self, inputs: MethodInputs, /) -> float:
            return float(len(inputs.similarity))

        def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
            return n * tau, n * tau

        def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float:
            return value / n / tau

    assert uncertainty_range(Own(), MethodInputs(similarity=np.eye(2)), 1) is None


def test_no_range_where_tau_tells_nothing_apart() -> None:
    inputs = MethodInputs(similarity=np.eye(2), tau=1e15)
    assert uncertainty_range(METHODS["snne"], inputs, 1) is None
