"""The bounds of SNNE, and the map to [0, 1]."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import bounds, snne, uncertainty, wsnne
from snne_guard.types import FloatArray

similarities = st.integers(2, 8).flatmap(
    lambda n: arrays(np.float64, (n, n), elements=st.floats(0, 1))
)


def with_ones(similarity: FloatArray) -> FloatArray:
    matrix = similarity.copy()
    np.fill_diagonal(matrix, 1.0)
    return matrix


def slow_uncertainty(value: float, n: int, tau: float) -> float:
    """The formula as it is written, where nothing overflows."""
    b = math.exp(1 / tau)
    v = (math.exp(-value) - b) / (n - 1)
    return (b - v) / (b - 1)


def toward(low: float, high: float, share: float) -> float:
    return low + share * (high - low)


@pytest.mark.parametrize(
    ("n", "tau", "low", "high"),
    [
        (1, 1.0, -1.0, -1.0),
        (2, 1.0, -1.6931471805599454, -1.3132616875182228),
        (10, 1.0, -3.302585092994046, -2.4611501717344746),
        (10, 0.1, -12.302585092994047, -10.000408515913874),
        (5, 0.1, -11.6094379124341, -10.000181583231816),
        (2, 1e-6, -1000000.6931471806, -1000000.0),
    ],
)
def test_known_bounds(n: int, tau: float, low: float, high: float) -> None:
    assert bounds(n, tau=tau) == pytest.approx((low, high), abs=1e-9)


@given(similarities, st.floats(0.01, 1000), st.data())
def test_both_entropies_lie_within(
    similarity: FloatArray, tau: float, data: st.DataObject
) -> None:
    matrix = with_ones(similarity)
    n = len(matrix)
    logprobs = data.draw(st.lists(st.floats(-9, 0), min_size=n, max_size=n))
    low, high = bounds(n, tau=tau)
    slack = 1e-12 * max(1, abs(low))

    assert low - slack <= snne(matrix, tau=tau) <= high + slack
    assert low - slack <= wsnne(matrix, logprobs, tau=tau) <= high + slack


@pytest.mark.parametrize(
    ("value", "n", "tau", "expected"),
    [
        (-1.6373280184051735, 3, 1.0, 0.8768736464058385),
        (-1.6931471805599454, 2, 1.0, 0.0),
        (-1.3132616875182228, 2, 1.0, 1.0),
        (-math.log(math.e + math.exp(0.5)), 2, 1.0, 0.6224593312018545),
        (-2.75069792531828, 10, 1.0, 0.7455293104726152),
    ],
)
def test_known_uncertainties(value: float, n: int, tau: float, expected: float) -> None:
    assert slow_uncertainty(value, n, tau) == pytest.approx(expected, abs=1e-9)
    assert uncertainty(value, n, tau=tau) == pytest.approx(expected, abs=1e-9)


@given(st.integers(2, 50), st.floats(0.05, 50), st.floats(0, 1))
def test_it_equals_the_formula_as_written(n: int, tau: float, share: float) -> None:
    value = toward(*bounds(n, tau=tau), share)

    got = uncertainty(value, n, tau=tau)

    assert got == pytest.approx(slow_uncertainty(value, n, tau), abs=1e-9)


@given(st.integers(2, 50), st.floats(1e-4, 1e4), st.floats(0, 1), st.floats(0, 1))
def test_it_rises_strictly_with_the_entropy(
    n: int, tau: float, one: float, other: float
) -> None:
    low, high = bounds(n, tau=tau)
    smaller, larger = sorted((toward(low, high, one), toward(low, high, other)))
    u_smaller = uncertainty(smaller, n, tau=tau)
    u_larger = uncertainty(larger, n, tau=tau)
    assert u_smaller is not None
    assert u_larger is not None

    assert 0 <= u_smaller <= u_larger <= 1
    # Where a float can tell: the map is steep enough for a thousandth of the range.
    if larger - smaller > 1e-3 * (high - low):
        assert u_smaller < u_larger


@given(st.integers(2, 60), st.floats(1e-6, 1e6), st.data())
def test_all_alike_is_exactly_0_and_all_different_is_1(
    n: int, tau: float, data: st.DataObject
) -> None:
    alike, different = np.ones((n, n)), np.eye(n)
    logprobs = data.draw(st.lists(st.floats(-9, 0), min_size=n, max_size=n))

    assert uncertainty(snne(alike, tau=tau), n, tau=tau) == 0
    assert uncertainty(wsnne(alike, logprobs, tau=tau), n, tau=tau) == 0
    assert uncertainty(snne(different, tau=tau), n, tau=tau) == pytest.approx(
        1, abs=1e-8
    )


@pytest.mark.parametrize(
    ("tau", "expected"),
    # The limits of (b - exp(f / tau)) / (b - 1): for tau -> inf it is 1 - f.
    [(1e-6, 1.0), (1e6, 0.5)],
)
def test_extreme_tau_does_not_overflow(tau: float, expected: float) -> None:
    half = with_ones(np.full((4, 4), 0.5))

    got = uncertainty(snne(half, tau=tau), 4, tau=tau)

    assert got == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("tau", [1e-300, 1e-14, 1e14, 1e300])
def test_a_tau_at_which_floats_cannot_tell_is_not_taken_for_confidence(
    tau: float,
) -> None:
    assert uncertainty(snne(np.ones((5, 5)), tau=tau), 5, tau=tau) is None


@pytest.mark.parametrize("n", [1, 0, -3])
def test_fewer_than_two_answers_have_no_uncertainty(n: int) -> None:
    assert uncertainty(-1.0, n) is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.8, -1.2])
def test_a_value_that_cannot_be_is_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"expected SNNE in \[-1\.69.*, -1\.31.*\]"):
        uncertainty(value, 2)


def test_rounding_beyond_the_bounds_is_clipped() -> None:
    low, high = bounds(3)

    assert uncertainty(low - 1e-10, 3) == 0.0
    assert uncertainty(high + 1e-10, 3) == 1.0


def test_a_cosine_below_0_has_no_place_in_the_unit_interval() -> None:
    opposed = snne([[1, -1], [-1, 1]])

    with pytest.raises(InputError, match="expected SNNE in"):
        uncertainty(opposed, 2)


@pytest.mark.parametrize("n", [1.5, "2", None])
def test_n_must_be_whole(n: int) -> None:
    with pytest.raises(InputError, match="whole number"):
        bounds(n)
    with pytest.raises(InputError, match="whole number"):
        uncertainty(-1.5, n)


def test_a_numpy_integer_is_whole() -> None:
    count = np.int64(2)

    assert bounds(count) == bounds(2)  # type: ignore[arg-type]


def test_bounds_need_an_answer() -> None:
    with pytest.raises(InputError, match="at least 1, got 0"):
        bounds(0)


@pytest.mark.parametrize("tau", [0, -1, math.nan, math.inf, None, "1", False])
def test_tau_must_be_a_finite_number_above_0(tau: float) -> None:
    with pytest.raises(ConfigurationError, match="tau"):
        bounds(3, tau=tau)
    with pytest.raises(ConfigurationError, match="tau"):
        uncertainty(-1.5, 2, tau=tau)


def test_a_tau_whose_inverse_overflows_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="1/tau"):
        bounds(3, tau=1e-320)
