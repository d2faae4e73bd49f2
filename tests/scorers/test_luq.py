"""LUQ and LUQ-Pair in all readings, and the limit of SNNE that one of them is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import luq, luq_pair, luq_sentences, snne
from snne_guard.similarity.entailment import entailment_ratio
from snne_guard.types import FloatArray
from tests.support.graphs import supports
from tests.support.known_answers import NLI

READINGS = pytest.mark.parametrize("reading", ["code", "premise", "hypothesis"])


def slow_pair(ratio: FloatArray, reading: str) -> float:
    n = len(ratio)
    total = 0.0
    for i in range(n):
        best = 0.0
        for j in range(n):
            if i == j:
                continue
            first, second = {
                "code": (min(i, j), max(i, j)),
                "premise": (i, j),
                "hypothesis": (j, i),
            }[reading]
            best = max(best, ratio[first, second])
        total += best
    return 1 - total / n


def slow_sentences(ratio: FloatArray, answer_of: list[int]) -> float:
    answers = sorted(set(answer_of))
    scores = []
    for answer in answers:
        means = []
        for s, owner in enumerate(answer_of):
            if owner != answer:
                continue
            bests = [
                max(ratio[t, s] for t, whose in enumerate(answer_of) if whose == other)
                for other in answers
                if other != answer
            ]
            means.append(sum(bests) / len(bests) if bests else 0.0)
        scores.append(sum(means) / len(means))
    return 1 - sum(scores) / len(scores)


def test_known_answers() -> None:
    ratio = entailment_ratio(NLI)

    for reading, expected in (
        ("code", 0.08524572642262458),
        ("premise", 0.023484242743322725),
        ("hypothesis", 0.08123428115568365),
    ):
        got = luq_pair(ratio, reading=reading)  # type: ignore[arg-type]
        assert got == pytest.approx(expected, abs=1e-12)
    assert luq_pair(ratio) == luq_pair(ratio, reading="code")
    assert luq(ratio) == pytest.approx(0.1950864389970528, abs=1e-12)


@READINGS
@given(ratio=supports())
def test_the_pair_is_its_literal_definition(reading: Any, ratio: FloatArray) -> None:
    assert luq_pair(ratio, reading=reading) == pytest.approx(
        slow_pair(ratio, reading), abs=1e-12
    )


@given(supports())
def test_the_mean_is_its_literal_definition(ratio: FloatArray) -> None:
    n = len(ratio)
    others = [ratio[i, j] for i in range(n) for j in range(n) if i != j]
    expected = 1 - sum(others) / len(others) if others else 1.0

    assert luq(ratio) == pytest.approx(expected, abs=1e-12)


@given(st.data(), supports())
def test_sentences_are_their_literal_definition(
    data: st.DataObject, ratio: FloatArray
) -> None:
    m = len(ratio)
    owners = data.draw(st.lists(st.integers(0, 3), min_size=m, max_size=m))

    assert luq_sentences(ratio, owners) == pytest.approx(
        slow_sentences(ratio, owners), abs=1e-12
    )


@given(supports())
def test_answers_of_one_sentence_are_luq(ratio: FloatArray) -> None:
    assert luq_sentences(ratio, range(len(ratio))) == pytest.approx(
        luq(ratio), abs=1e-12
    )


@given(supports(), st.sampled_from([1.0, 0.1, 1e-3, 1e-6]))
def test_snne_goes_to_the_pair_as_tau_goes_to_0(ratio: FloatArray, tau: float) -> None:
    """With f = S, no tau in it, and without the diagonal: 1 + tau SNNE.

    The log of a sum of n - 1 exponentials is above the largest exponent by at most
    ln(n - 1), so that the distance from the limit is known.
    """
    n = len(ratio)
    if n == 1:
        assert snne(ratio, tau=tau, include_self=False) == math.inf
        return
    near = 1 + tau * snne(ratio, tau=tau, include_self=False)

    limit = luq_pair(ratio, reading="premise")
    assert limit - tau * math.log(n - 1) - 1e-9 <= near <= limit + 1e-9


def test_with_the_diagonal_the_limit_is_0_whatever_the_answers() -> None:
    ratio = entailment_ratio(NLI)

    assert 1 + 1e-6 * snne(ratio, tau=1e-6) == pytest.approx(0.0, abs=1e-5)
    assert luq_pair(ratio, reading="premise") > 0.02


@given(supports(), st.data())
def test_the_order_matters_to_the_code_alone(
    ratio: FloatArray, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(ratio))))
    moved = ratio[np.ix_(order, order)]

    assert luq(moved) == luq(ratio)
    assert luq_pair(moved, reading="premise") == luq_pair(ratio, reading="premise")
    assert luq_pair(moved, reading="hypothesis") == luq_pair(
        ratio, reading="hypothesis"
    )
    assert luq_pair(moved.T, reading="hypothesis") == luq_pair(ratio, reading="premise")


def test_the_order_matters_to_the_code() -> None:
    ratio = np.array([[1.0, 0.75], [0.25, 1.0]])

    assert luq_pair(ratio) == 0.25
    assert luq_pair(ratio[::-1, ::-1]) == 0.75


@READINGS
def test_all_support_each_other_or_none_does(reading: Any) -> None:
    assert luq_pair(np.ones((4, 4)), reading=reading) == 0.0
    assert luq_pair(np.eye(4), reading=reading) == 1.0
    assert (luq(np.ones((4, 4))), luq(np.eye(4))) == (0.0, 1.0)


@READINGS
def test_one_answer_has_no_support(reading: Any) -> None:
    assert luq_pair([[1.0]], reading=reading) == 1.0
    assert luq([[1.0]]) == 1.0
    assert luq_sentences(np.ones((2, 2)), [0, 0]) == 1.0


@READINGS
def test_the_matrix_is_not_changed(reading: Any) -> None:
    ratio = entailment_ratio(NLI)
    before = ratio.copy()

    luq_pair(ratio, reading=reading)

    assert np.array_equal(ratio, before)


@pytest.mark.parametrize("function", [luq, luq_pair])
@pytest.mark.parametrize("wrong", [[], [[1, 2]], 0.5, [[math.nan]], "no"])
def test_what_is_no_matrix(function: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        function(wrong)


@pytest.mark.parametrize("owners", [[0], [0.0, 1.0], [[0, 1]], 0])
def test_what_are_no_answers_of_sentences(owners: Any) -> None:
    with pytest.raises(InputError, match="answers of 2 sentences as whole numbers"):
        luq_sentences(np.eye(2), owners)


def test_a_reading_that_there_is_not() -> None:
    with pytest.raises(
        ConfigurationError, match=r"\['code', 'premise', 'hypothesis'\]"
    ):
        luq_pair([[1.0]], reading="paper")  # type: ignore[arg-type]
