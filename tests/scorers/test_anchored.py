"""Anchored SNNE: its formula by hand, its limits, and WSNNE on one answer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import METHODS, anchored_snne, anchored_wsnne, wsnne

UNIT = st.floats(0, 1)
SIMILARITIES = st.lists(UNIT, min_size=1, max_size=9)
TAUS = st.floats(0.05, 50)


@given(similarity=SIMILARITIES, tau=TAUS)
def test_it_is_the_formula(similarity: list[float], tau: float) -> None:
    total = sum(math.exp(one / tau) for one in similarity)
    expected = -tau * math.log(total / len(similarity))
    assert anchored_snne(similarity, tau=tau) == pytest.approx(expected, abs=1e-9)


@given(
    pairs=st.lists(st.tuples(UNIT, st.floats(-20, 0)), min_size=1, max_size=9),
    tau=TAUS,
)
def test_its_white_box_twin_is_the_formula(
    pairs: list[tuple[float, float]], tau: float
) -> None:
    similarity, logprobs = zip(*pairs, strict=True)
    weights = [math.exp(one) for one in logprobs]
    total = sum(w * math.exp(f / tau) for w, f in zip(weights, similarity, strict=True))
    expected = -tau * math.log(total / sum(weights))
    found = anchored_wsnne(similarity, logprobs, tau=tau)
    assert found == pytest.approx(expected, abs=1e-9)


@given(similarity=SIMILARITIES, tau=TAUS)
def test_equal_weights_are_none(similarity: list[float], tau: float) -> None:
    equal = [-0.7] * len(similarity)
    assert anchored_wsnne(similarity, equal, tau=tau) == anchored_snne(
        similarity, tau=tau
    )


@given(similarity=SIMILARITIES, tau=TAUS)
def test_it_orders_as_wsnne_with_all_the_weight_on_the_answer(
    similarity: list[float], tau: float
) -> None:
    n = len(similarity) + 1
    matrix = np.eye(n)
    matrix[0, 1:] = matrix[1:, 0] = similarity
    weighted = wsnne(matrix, [0.0] + [-math.inf] * (n - 1), tau=tau)
    # Without the term of the answer itself, and over the mean.
    rest = math.exp(-weighted) - math.exp(1 / tau)
    expected = -tau * math.log(rest / (n - 1))
    assert anchored_snne(similarity, tau=tau) == pytest.approx(expected, abs=1e-6)


@given(similarity=SIMILARITIES, tau=TAUS, data=st.data())
def test_order_is_nothing_and_more_alike_is_less_uncertain(
    similarity: list[float], tau: float, data: st.DataObject
) -> None:
    value = anchored_snne(similarity, tau=tau)
    shuffled = data.draw(st.permutations(similarity))
    assert anchored_snne(shuffled, tau=tau) == value
    place = data.draw(st.integers(0, len(similarity) - 1))
    nearer = [*similarity]
    nearer[place] = data.draw(st.floats(similarity[place], 1))
    assert anchored_snne(nearer, tau=tau) <= value + 1e-12
    assert -1 <= value <= 0


@pytest.mark.parametrize("name", ["anchored_snne", "anchored_wsnne"])
@given(similarity=SIMILARITIES, tau=TAUS)
def test_u_is_the_share_of_the_mean(
    name: str, similarity: list[float], tau: float
) -> None:
    value = anchored_snne(similarity, tau=tau)
    u = METHODS[name].uncertainty(value, len(similarity) + 1, tau=tau)
    b = math.exp(1 / tau)
    mean = sum(math.exp(one / tau) for one in similarity) / len(similarity)
    assert u == pytest.approx((b - mean) / (b - 1), abs=1e-9)


@pytest.mark.parametrize("tau", [1e-300, 1e-9, 1e-3, 1e3, 1e9, 1e300])
def test_no_temperature_overflows(tau: float) -> None:
    assert anchored_snne([1, 1, 1], tau=tau) == -1
    assert anchored_snne([0, 0], tau=tau) == 0
    value = anchored_snne([0.25, 0.75], tau=tau)
    assert -0.75 <= value <= -0.5
    u = METHODS["anchored_snne"].uncertainty(value, 3, tau=tau)
    assert u is not None
    assert 0.5 - 1e-9 <= u <= 1
    assert value == pytest.approx(-0.75 if tau < 1 else -0.5, abs=1e-3)


def test_samples_without_probability_count_for_nothing() -> None:
    assert anchored_wsnne([1, 0], [-1, -math.inf]) == -1
    assert anchored_wsnne([1, 0], [-math.inf, -1]) == 0
    assert anchored_wsnne([1, 0], [-math.inf, -math.inf]) == anchored_snne([1, 0])


@pytest.mark.parametrize(
    "wrong", [[], [1.5], [-0.5], [math.nan], [[1.0]], "ab", [None]]
)
def test_wrong_similarities(wrong: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        anchored_snne(wrong)


def test_rounding_leaves_no_similarity_outside() -> None:
    assert anchored_snne([1 + 5e-10, 0.5, -5e-10]) == anchored_snne([1, 0.5, 0])


@pytest.mark.parametrize("wrong", [[], [-1], [-1, 0.5], [math.nan, -1]])
def test_wrong_logprobs(wrong: list[float]) -> None:
    with pytest.raises(InputError, match="expected"):
        anchored_wsnne([1, 0], wrong)


@pytest.mark.parametrize("tau", [0, -1, math.inf, math.nan, "1"])
def test_wrong_temperatures(tau: Any) -> None:
    with pytest.raises(ConfigurationError, match="tau"):
        anchored_snne([1], tau=tau)
    with pytest.raises(ConfigurationError, match="tau"):
        METHODS["anchored_snne"].uncertainty(-0.5, 3, tau=tau)


@pytest.mark.parametrize("value", [-1.1, 0.1, math.nan])
def test_wrong_values(value: float) -> None:
    with pytest.raises(InputError, match=r"\[-1, 0\]"):
        METHODS["anchored_snne"].uncertainty(value, 3)


def test_by_name_it_looks_at_the_delivered_answer() -> None:
    odd, usual = ["Lyon", "Paris", "Paris"], ["Paris", "Lyon", "Paris"]
    assert score(odd, method="anchored_snne").uncertainty == 1
    found = score(usual, method="anchored_snne")
    assert found.similarity == "content_f1"
    assert found.uncertainty == pytest.approx(0.5)
    logprobs = [[-0.1], [-9.0], [-0.1]]
    likely = score(usual, token_logprobs=logprobs, method="anchored_wsnne")
    assert likely.uncertainty is not None
    assert likely.uncertainty < 0.01
    with pytest.raises(InputError, match="main_similarity"):
        score(usual, method="anchored_snne", include_answer=False)
