"""SNNE and WSNNE: literal numbers, a slow oracle, limits, the mapping to u."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import bounds, snne, uncertainty, wsnne
from snne_guard.types import FloatArray
from tests.scorers.support import logprob_lists, similarities

TOY = [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]
taus = st.sampled_from([0.05, 0.1, 1.0, 10.0, 100.0])
anchors = st.sampled_from([0.0, 0.3, 0.7, 1.0])


def slow_wsnne(
    f: FloatArray,
    logprobs: list[float],
    *,
    tau: float,
    include_self: bool,
    anchor: float,
) -> float:
    """Return the formula, word by word."""
    n = len(f)
    likely = [math.exp(one) for one in logprobs]
    total = 0.0
    for i in range(n):
        weight = (1 - anchor) * likely[i] / sum(likely) + (anchor if i == 0 else 0)
        inner = sum(math.exp(f[i, j] / tau) for j in range(n) if include_self or j != i)
        if weight:
            total -= weight * (math.log(inner) if inner else -math.inf)
    return total


@given(similarities(), taus, st.booleans(), anchors)
def test_snne_is_its_formula(
    f: FloatArray, tau: float, include_self: bool, anchor: float
) -> None:
    options = {"tau": tau, "include_self": include_self, "anchor": anchor}
    expected = slow_wsnne(f, [0.0] * len(f), **options)  # type: ignore[arg-type]  # one dict of two types
    assert snne(f, **options) == pytest.approx(expected, abs=1e-9)  # type: ignore[arg-type]  # likewise


@given(similarities(), taus, st.data(), anchors)
def test_wsnne_is_its_formula(
    f: FloatArray, tau: float, data: st.DataObject, anchor: float
) -> None:
    logprobs = data.draw(logprob_lists(len(f)))
    expected = slow_wsnne(f, logprobs, tau=tau, include_self=True, anchor=anchor)
    got = wsnne(f, logprobs, tau=tau, anchor=anchor)
    assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("tau", "include_self", "value", "weighted"),
    [
        (0.1, True, -10.00453722761057, -10.005793104183912),
        (1.0, True, -1.6373280184051735, -1.6615854079721784),
        (1.0, False, -0.8804337163067196, -0.9333320355567207),
    ],
)
def test_numbers_of_the_authors_code(
    tau: float, include_self: bool, value: float, weighted: float
) -> None:
    got = snne(TOY, tau=tau, include_self=include_self)
    assert got == pytest.approx(value, abs=1e-12)
    got = wsnne(TOY, [-0.2, -0.7, -1.5], tau=tau, include_self=include_self)
    assert got == pytest.approx(weighted, abs=1e-12)


def test_ten_equal_answers_of_the_paper() -> None:
    assert snne(np.ones((10, 10))) == pytest.approx(-(1 + math.log(10)))
    assert snne([[1]]) == -1
    assert snne([[1]], include_self=False) == math.inf


@given(similarities(), taus)
def test_equal_log_probabilities_make_wsnne_snne(f: FloatArray, tau: float) -> None:
    assert wsnne(f, [-2.5] * len(f), tau=tau) == snne(f, tau=tau)


def test_weights_of_log_probabilities_as_small_as_they_may_be() -> None:
    far = wsnne(TOY, [-1000.0, -1000.5, -1001.3])
    assert far == pytest.approx(wsnne(TOY, [-0.2, -0.7, -1.5]), abs=1e-12)
    assert wsnne(TOY, [0.0, -math.inf, -math.inf]) == pytest.approx(
        -math.log(math.e + math.exp(0.5) + 1)
    )
    assert wsnne(TOY, [-math.inf] * 3) == snne(TOY)
    assert wsnne(TOY, [1e-4, 0.0, 0.0]) == snne(TOY)  # a provider's rounding


def test_minus_infinity_of_a_similarity() -> None:
    inf = math.inf
    alone = [[0.0, -inf], [-inf, 0.0]]
    assert snne(alone) == 0
    assert snne(alone, include_self=False) == inf
    # A weight of 0 takes its row out.
    assert wsnne([[0.0, 0.0], [-inf, -inf]], [0.0, -inf]) == -math.log(2)


@given(similarities(), taus, anchors)
def test_u_is_in_0_to_1_and_rises_with_snne(
    f: FloatArray, tau: float, anchor: float
) -> None:
    n = len(f)
    u = uncertainty(snne(f, tau=tau, anchor=anchor), n, tau=tau)
    if n == 1:
        assert u is None
        return
    assert u is not None
    assert 0 <= u <= 1
    nearer = f + 0.5 * (1 - f)
    closer = uncertainty(snne(nearer, tau=tau, anchor=anchor), n, tau=tau)
    assert closer is not None
    assert closer <= u


@pytest.mark.parametrize("n", [2, 3, 10, 100])
@pytest.mark.parametrize("tau", [0.01, 0.1, 1.0, 10.0, 1000.0])
def test_both_ends_of_u(n: int, tau: float) -> None:
    low, high = bounds(n, tau=tau)
    for anchor in (0.0, 0.7):
        alike = snne(np.ones((n, n)), tau=tau, anchor=anchor)
        different = snne(np.eye(n), tau=tau, anchor=anchor)
        assert alike == pytest.approx(low, abs=1e-12)
        assert different == pytest.approx(high, abs=1e-12)
        assert uncertainty(alike, n, tau=tau) == pytest.approx(0, abs=1e-9)
        assert uncertainty(different, n, tau=tau) == pytest.approx(1, abs=1e-9)


def test_u_by_its_definition() -> None:
    value = snne(TOY)
    v = (math.exp(-value) - math.e) / 2
    assert uncertainty(value, 3) == pytest.approx((math.e - v) / (math.e - 1))


def test_u_where_there_is_none() -> None:
    assert uncertainty(-1.0, 1) is None
    for value in (-2.2, -1.5, math.nan):
        with pytest.raises(InputError, match="expected SNNE in"):
            uncertainty(value, 3)
