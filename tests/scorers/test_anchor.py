"""The share of SNNE's weight on the delivered answer: value, order, limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard import score
from snne_guard.errors import ConfigurationError
from snne_guard.scorers import (
    METHODS,
    anchored_snne,
    bounds,
    snne,
    uncertainty,
    uncertainty_range,
    wsnne,
)
from snne_guard.scorers.certificate import snne_limits, wsnne_limits
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import content_f1, rouge_l
from snne_guard.types import FloatArray, MethodInputs
from tests.scorers.test_certificate import TAUS, completed, matrices

ANCHORS = st.sampled_from([0.0, 0.3, 0.5, 1.0]) | st.floats(0, 1)
LOGPROBS = st.floats(-30, 0) | st.sampled_from([0.0, -math.inf, -1000.0])
TEXTS = ["Paris", "Paris", "Lyon", "Rome"]


def literal(
    matrix: FloatArray, weights: Sequence[float], tau: float, anchor: float
) -> float:
    """The formula as it is printed, without a thought for overflow."""
    rows = [math.log(sum(math.exp(f / tau) for f in row)) for row in matrix.tolist()]
    mean = sum(w * row for w, row in zip(weights, rows, strict=True)) / sum(weights)
    return -((1 - anchor) * mean + anchor * rows[0])


def logprobs_of(data: st.DataObject, n: int, values: Any = LOGPROBS) -> list[float]:
    drawn: list[float] = data.draw(st.lists(values, min_size=n, max_size=n))
    return drawn


# --- the value -----------------------------------------------------------------------


@given(matrix=matrices(), tau=TAUS, anchor=ANCHORS, data=st.data())
def test_it_is_the_formula(
    matrix: FloatArray, tau: float, anchor: float, data: st.DataObject
) -> None:
    n = len(matrix)
    found = snne(matrix, tau=tau, anchor=anchor)
    assert found == pytest.approx(literal(matrix, [1.0] * n, tau, anchor), abs=1e-12)
    logprobs = logprobs_of(data, n, st.floats(-30, 0))
    weights = [math.exp(one) for one in logprobs]
    found = wsnne(matrix, logprobs, tau=tau, anchor=anchor)
    assert found == pytest.approx(literal(matrix, weights, tau, anchor), abs=1e-9)


@given(matrix=matrices(), tau=TAUS, data=st.data())
def test_none_is_the_plain_function_to_the_last_bit(
    matrix: FloatArray, tau: float, data: st.DataObject
) -> None:
    logprobs = logprobs_of(data, len(matrix))
    missing = data.draw(st.integers(0, 5))
    assert snne(matrix, tau=tau, anchor=0) == snne(matrix, tau=tau)
    assert wsnne(matrix, logprobs, tau=tau, anchor=0) == wsnne(
        matrix, logprobs, tau=tau
    )
    plain = snne_limits(matrix, missing, tau=tau)
    assert snne_limits(matrix, missing, tau=tau, anchor=0).tolist() == plain.tolist()
    plain = wsnne_limits(matrix, logprobs, missing, tau=tau)
    found = wsnne_limits(matrix, logprobs, missing, tau=tau, anchor=0)
    assert found.tolist() == plain.tolist()


@given(matrix=matrices(), tau=TAUS, data=st.data())
def test_all_of_it_leaves_the_row_of_the_answer(
    matrix: FloatArray, tau: float, data: st.DataObject
) -> None:
    logprobs = logprobs_of(data, len(matrix))
    alone = literal(matrix, [1.0] * len(matrix), tau, 1.0)
    assert snne(matrix, tau=tau, anchor=1) == pytest.approx(alone, abs=1e-12)
    # Also where the model finds the answer impossible.
    found = wsnne(matrix, logprobs, tau=tau, anchor=1)
    assert found == pytest.approx(alone, abs=1e-12)


@given(
    rows=st.integers(1, 6).flatmap(
        lambda k: st.lists(
            st.lists(st.floats(0, 1), min_size=k, max_size=k), min_size=2, max_size=2
        )
    ),
    tau=st.floats(0.1, 10),
)
def test_all_of_it_orders_as_anchored_snne(rows: list[list[float]], tau: float) -> None:
    def whole(row: list[float]) -> FloatArray:
        matrix = np.eye(len(row) + 1)
        matrix[0, 1:] = matrix[1:, 0] = row
        return matrix

    one, other = (snne(whole(row), tau=tau, anchor=1) for row in rows)
    first, second = (anchored_snne(row, tau=tau) for row in rows)
    if abs(first - second) > 1e-9:
        assert (one < other) == (first < second)


@given(matrix=matrices(), tau=TAUS, anchor=ANCHORS, data=st.data())
def test_the_bounds_hold_for_every_share(
    matrix: FloatArray, tau: float, anchor: float, data: st.DataObject
) -> None:
    n = len(matrix)
    low, high = bounds(n, tau=tau)
    logprobs = logprobs_of(data, n)
    for value in (
        snne(matrix, tau=tau, anchor=anchor),
        wsnne(matrix, logprobs, tau=tau, anchor=anchor),
    ):
        assert low - 1e-9 <= value <= high + 1e-9
        u = uncertainty(value, n, tau=tau)
        assert u is not None
        assert 0 <= u <= 1


@given(n=st.integers(2, 12), tau=TAUS, anchor=ANCHORS)
def test_all_alike_is_0_and_all_different_is_1(
    n: int, tau: float, anchor: float
) -> None:
    alike = snne(np.ones((n, n)), tau=tau, anchor=anchor)
    assert uncertainty(alike, n, tau=tau) == pytest.approx(0, abs=1e-9)
    different = snne(np.eye(n), tau=tau, anchor=anchor)
    assert uncertainty(different, n, tau=tau) == pytest.approx(1, abs=1e-9)


def test_an_answer_that_no_sample_repeats_is_less_certain() -> None:
    outvoted, backed = np.eye(4), np.eye(4)
    outvoted[1:, 1:] = backed[:3, :3] = 1  # three of four agree, with or without it
    assert snne(outvoted) == pytest.approx(snne(backed), abs=1e-15)
    assert snne(outvoted, anchor=0.3) > snne(outvoted)
    assert snne(backed, anchor=0.3) < snne(backed)


@pytest.mark.parametrize("anchor", [-0.1, 1.1, math.nan, math.inf, True, "0.3", None])
def test_what_is_no_share_is_refused(anchor: Any) -> None:
    matrix, logprobs = np.eye(3), [-1.0, -2.0, -3.0]
    said = r"expected an anchor in \[0, 1\], got"
    with pytest.raises(ConfigurationError, match=said):
        snne(matrix, anchor=anchor)
    with pytest.raises(ConfigurationError, match=said):
        wsnne(matrix, logprobs, anchor=anchor)
    with pytest.raises(ConfigurationError, match=said):
        snne_limits(matrix, 1, tau=1, anchor=anchor)
    with pytest.raises(ConfigurationError, match=said):
        wsnne_limits(matrix, logprobs, 1, tau=1, anchor=anchor)


# --- the certificate -----------------------------------------------------------------


@given(
    whole=matrices(most=10, least=3),
    seen=st.integers(2, 9),
    tau=TAUS,
    anchor=ANCHORS,
    data=st.data(),
)
def test_no_completion_leaves_the_limits(
    whole: FloatArray, seen: int, tau: float, anchor: float, data: st.DataObject
) -> None:
    seen = min(seen, len(whole) - 1)
    part, missing = whole[:seen, :seen], len(whole) - seen
    logprobs = logprobs_of(data, len(whole))
    plain = snne_limits(part, missing, tau=tau, anchor=anchor)
    weighted = wsnne_limits(part, logprobs[:seen], missing, tau=tau, anchor=anchor)
    for joined in range(missing + 1):
        n = seen + joined
        value = snne(whole[:n, :n], tau=tau, anchor=anchor)
        assert plain[joined, 0] - 1e-9 <= value <= plain[joined, 1] + 1e-9
        value = wsnne(whole[:n, :n], logprobs[:n], tau=tau, anchor=anchor)
        assert weighted[joined, 0] - 1e-9 <= value <= weighted[joined, 1] + 1e-9


@given(matrix=matrices(), missing=st.integers(0, 5), tau=TAUS, anchor=ANCHORS)
def test_both_limits_are_reached(
    matrix: FloatArray, missing: int, tau: float, anchor: float
) -> None:
    limits = snne_limits(matrix, missing, tau=tau, anchor=anchor)
    reached = [
        [
            snne(completed(matrix, joined, value), tau=tau, anchor=anchor)
            for value in (1.0, 0.0)
        ]
        for joined in range(missing + 1)
    ]
    assert limits == pytest.approx(np.array(reached), abs=1e-9)


@given(
    matrix=matrices(),
    missing=st.integers(0, 5),
    tau=TAUS,
    anchor=ANCHORS,
    data=st.data(),
)
def test_certain_members_reach_the_limits_of_wsnne(
    matrix: FloatArray, missing: int, tau: float, anchor: float, data: st.DataObject
) -> None:
    known = logprobs_of(data, len(matrix), st.floats(-5, 0))
    limits = wsnne_limits(matrix, known, missing, tau=tau, anchor=anchor)
    reached = [
        [
            wsnne(
                completed(matrix, joined, value),
                [*known, *[0.0] * joined],
                tau=tau,
                anchor=anchor,
            )
            for value in (1.0, 0.0)
        ]
        for joined in range(missing + 1)
    ]
    assert limits == pytest.approx(np.array(reached), abs=1e-9)


@given(
    whole=matrices(most=9, least=3), seen=st.integers(2, 8), tau=TAUS, anchor=ANCHORS
)
def test_u_stays_in_its_range_however_many_join(
    whole: FloatArray, seen: int, tau: float, anchor: float
) -> None:
    seen = min(seen, len(whole) - 1)
    inputs = MethodInputs(similarity=whole[:seen, :seen], tau=tau, anchor=anchor)
    found = uncertainty_range(METHODS["snne"], inputs, len(whole) - seen)
    assert found is not None
    for n in range(seen, len(whole) + 1):
        u = uncertainty(snne(whole[:n, :n], tau=tau, anchor=anchor), n, tau=tau)
        assert u is not None
        # Without a tolerance: a decision hangs on it.
        assert found[0] <= u <= found[1]


# --- where it lies -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["snne", "wsnne"])
def test_it_lies_on_the_delivered_answer_where_that_is_a_member(method: str) -> None:
    relation = Relation.of("content_f1")
    options: dict[str, Any] = {"token_logprobs": [[-0.1]] * 4}

    def anchor(relation: Relation, **how: Any) -> float:
        materials = Materials(TEXTS, **options, **how)
        return materials.inputs(METHODS[method], relation).anchor

    assert anchor(relation) == 0.7
    assert anchor(relation, include_answer=False) == 0
    assert anchor(relation, delivered=False) == 0
    assert anchor(Relation.of(content_f1)) == 0.7
    for other in ("rouge_l", "exact", rouge_l):
        assert anchor(Relation.of(other)) == 0


@pytest.mark.parametrize("how", [{}, {"include_answer": False}, {"delivered": False}])
def test_the_first_members_have_the_same(how: dict[str, Any]) -> None:
    relation = Relation.of("content_f1")
    materials = Materials(TEXTS, **how)
    part = materials.first(2).inputs(METHODS["snne"], relation)
    whole = materials.inputs(METHODS["snne"], relation)
    assert part.anchor == whole.anchor
    first = 0 if how != {"include_answer": False} else 1
    assert materials.first(2).members == tuple(TEXTS[first : first + 2])


def test_a_score_says_where_its_weight_lay() -> None:
    assert score(TEXTS).anchor == 0.7
    assert score(TEXTS, include_answer=False).anchor == 0
    assert score(TEXTS, similarity="rouge_l").anchor == 0
    # An empty sample leaves; the answer is the first one all the same.
    found = score(["Lyon", " ", "Paris", "Paris"])
    matrix = [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert found.value == snne(matrix, anchor=0.7)
