"""SAR, tokenSAR and sentSAR: literal numbers, a slow oracle and their properties."""

import math
from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.sar import sar, sent_sar, token_sar

LOGPROBS = [[-0.1, -2.0], [-1.0], [-0.5, -0.25, -3.0]]
IMPORTANCE = [[0.25, 0.75], [0.3], [0.0, 0.1, 0.4]]
SIMILARITY = [[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]]

Drawn = tuple[list[list[float]], list[list[float]], list[list[float]]]


def slow_token_entropies(
    logprobs: Sequence[Sequence[float]],
    importance: Sequence[Sequence[float]],
    *,
    authors_bug: bool = False,
) -> list[float]:
    entropies: list[float] = []
    for tokens, relevance in zip(logprobs, importance, strict=True):
        weights = [1 - one if authors_bug else one for one in relevance]
        if sum(weights) == 0:
            weights = [1.0] * len(tokens)
        total = 0.0
        for logprob, weight in zip(tokens, weights, strict=True):
            total += -logprob * weight / sum(weights)
        entropies.append(total)
    return entropies


def slow_shared(
    entropies: Sequence[float], similarity: Sequence[Sequence[float]], t: float
) -> float:
    """As it is written, in numbers of which none is too small."""
    with localcontext(Context(prec=40)):
        total = Decimal(0)
        likely = [Decimal(-entropy).exp() for entropy in entropies]
        for i, own in enumerate(likely):
            shared = own
            for j, other in enumerate(likely):
                if j != i:
                    shared += Decimal(similarity[i][j]) * other / Decimal(t)
            total -= shared.ln()
        return float(total / len(likely))


@st.composite
def answers(draw: st.DrawFn, deepest: float = -30.0) -> Drawn:
    n = draw(st.integers(1, 5))
    lengths = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))

    def numbers(size: int, least: float, most: float) -> list[float]:
        return draw(st.lists(st.floats(least, most), min_size=size, max_size=size))

    return (
        [numbers(size, deepest, 0) for size in lengths],
        [numbers(size, 0, 1) for size in lengths],
        [numbers(n, 0, 1) for _ in range(n)],
    )


@pytest.mark.parametrize(
    ("authors_bug", "expected"),
    [(False, 1.6583333333333334), (True, 0.8616666666666667)],
)
def test_known_token_sar(authors_bug: bool, expected: float) -> None:
    got = token_sar(LOGPROBS, IMPORTANCE, authors_bug=authors_bug)

    assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("t", "expected"), [(0.001, -4.624899389589934), (1.0, 1.4078918559319133)]
)
def test_known_sent_sar(t: float, expected: float) -> None:
    assert sent_sar(LOGPROBS, SIMILARITY, t=t) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("authors_bug", "t", "expected"),
    [
        (False, 0.001, -4.886554226799966),
        (True, 0.001, -5.379287494798812),
        (False, 1.0, 1.100744348996231),
    ],
)
def test_known_sar(authors_bug: bool, t: float, expected: float) -> None:
    got = sar(LOGPROBS, IMPORTANCE, SIMILARITY, t=t, authors_bug=authors_bug)

    assert got == pytest.approx(expected, abs=1e-9)


@given(answers(), st.floats(1e-4, 10), st.booleans())
def test_they_are_their_definitions(drawn: Drawn, t: float, authors_bug: bool) -> None:
    logprobs, importance, similarity = drawn
    slow = slow_token_entropies(logprobs, importance, authors_bug=authors_bug)
    sums = [-math.fsum(tokens) for tokens in logprobs]

    assert token_sar(logprobs, importance, authors_bug=authors_bug) == pytest.approx(
        sum(slow) / len(slow), abs=1e-9
    )
    assert sent_sar(logprobs, similarity, t=t) == pytest.approx(
        slow_shared(sums, similarity, t), rel=1e-9, abs=1e-9
    )
    got = sar(logprobs, importance, similarity, t=t, authors_bug=authors_bug)
    assert got == pytest.approx(slow_shared(slow, similarity, t), rel=1e-9, abs=1e-9)


@given(answers(deepest=-1e5))
def test_probabilities_far_below_what_a_float_holds(drawn: Drawn) -> None:
    logprobs, importance, similarity = drawn
    slow = slow_token_entropies(logprobs, importance)

    got = sar(logprobs, importance, similarity)

    assert got == pytest.approx(slow_shared(slow, similarity, 0.001), rel=1e-9)


@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_the_answers_does_not_matter(drawn: Drawn, random: Any) -> None:
    logprobs, importance, similarity = drawn
    order = list(range(len(logprobs)))
    random.shuffle(order)
    shuffled = (
        [logprobs[place] for place in order],
        [importance[place] for place in order],
        np.array(similarity)[np.ix_(order, order)],
    )

    assert sar(*shuffled) == pytest.approx(sar(logprobs, importance, similarity))
    assert sent_sar(shuffled[0], shuffled[2]) == pytest.approx(
        sent_sar(logprobs, similarity)
    )
    assert token_sar(*shuffled[:2]) == pytest.approx(token_sar(logprobs, importance))


@given(answers())
def test_token_sar_lies_between_the_extremes_of_the_tokens(drawn: Drawn) -> None:
    logprobs, importance, _ = drawn
    tokens = [-logprob for answer in logprobs for logprob in answer]

    got = token_sar(logprobs, importance)

    assert min(tokens) - 1e-9 <= got <= max(tokens) + 1e-9


def test_one_answer_has_nothing_to_share_with() -> None:
    assert sar([[-0.5, -1.0]], [[1, 0]], [[1]]) == pytest.approx(0.5)
    assert sent_sar([[-0.5, -1.0]], [[1]]) == pytest.approx(1.5)


def test_duplicates_lower_the_surprise() -> None:
    alike = sent_sar([[-1.0]] * 3, np.ones((3, 3)))
    apart = sent_sar([[-1.0]] * 3, np.eye(3))

    assert alike == pytest.approx(1 - math.log(1 + 2 / 0.001))
    assert apart == pytest.approx(1.0)


def test_tokens_weigh_the_same_where_none_matters() -> None:
    assert token_sar([[-1.0, -3.0]], [[0, 0]]) == 2.0
    assert token_sar([[-1.0, -3.0]], [[1, 1]], authors_bug=True) == 2.0
    assert token_sar([[-1.0, -3.0], [-5.0, -1.0]], [[0, 0], [1, 0]]) == 3.5


def test_the_least_relevant_token_does_not_weigh_most() -> None:
    """The authors' code has it the other way round; only by name does this one."""
    logprobs, importance = [[-0.01, -5.0]], [[0.05, 0.95]]

    assert token_sar(logprobs, importance) == pytest.approx(4.7505)
    assert token_sar(logprobs, importance, authors_bug=True) == pytest.approx(0.2595)


def test_an_impossible_token_that_does_not_matter_is_left_out() -> None:
    assert token_sar([[-math.inf, -3.0]], [[0, 0.5]]) == 3.0
    assert token_sar([[-math.inf, -3.0]], [[0.5, 0.5]]) == math.inf


def test_answers_that_are_impossible_altogether() -> None:
    impossible = [[-math.inf], [-math.inf]]

    assert sent_sar(impossible, np.ones((2, 2))) == math.inf
    assert sent_sar([[-math.inf], [-1.0]], np.ones((2, 2))) == pytest.approx(
        1 - math.log(1000) / 2
    )
    assert sent_sar([[-math.inf], [-1.0]], np.eye(2)) == math.inf


def test_rounding_is_evened_out() -> None:
    assert token_sar([[1e-9, -1.0]], [[1 + 1e-9, -1e-9]]) == 0.0


@pytest.mark.parametrize(
    ("importance", "message"),
    [
        (
            [[0.25, 0.75], [0.3]],
            r"token_importance of \[2, 1, 3\] tokens, got \[2, 1\]",
        ),
        ([[0.2], [0.3], [0, 0.1, 0.4]], r"\[2, 1, 3\] tokens, got \[1, 1, 3\]"),
        ([[0.2, 1.5], [0.3], [0, 0, 0.4]], r"token_importance in \[0, 1\], got 1.5"),
        ([[0.2, -1], [0.3], [0, 0, 0.4]], r"token_importance in \[0, 1\], got -1.0"),
        ([[0.2, math.nan], [0.3], [0, 0, 0.4]], "of answer 0 without NaN and"),
        ([[0.2, 0.1], [], [0, 0, 0.4]], "at least one token for answer 1, got shape"),
        ([], "token_importance of at least one answer, got none"),
    ],
)
def test_importance_that_does_not_fit(importance: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        token_sar(LOGPROBS, importance)
    with pytest.raises(InputError, match=message):
        sar(LOGPROBS, importance, SIMILARITY)


@pytest.mark.parametrize(
    ("logprobs", "message"),
    [
        ([], "token_logprobs of at least one answer, got none"),
        ([[-1.0], []], "at least one token for answer 1"),
        ([[-1.0], [0.5]], r"token_logprobs of at most 0, got 0.5"),
        ([[-1.0], "no"], "token_logprobs of answer 1 to be numbers, got str"),
        ([[-1.0], [[-1.0]]], r"for answer 1, got shape \(1, 1\)"),
    ],
)
def test_log_probabilities_that_are_none(logprobs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        sent_sar(logprobs, np.eye(2))


def test_a_similarity_that_does_not_fit() -> None:
    with pytest.raises(InputError, match="a similarity of 3 answers, got 2"):
        sent_sar(LOGPROBS, np.eye(2))
    with pytest.raises(InputError, match=r"similarities of at least 0, got -1\.0"):
        sent_sar(LOGPROBS, -np.eye(3))


@pytest.mark.parametrize("t", [0, -1, math.nan, math.inf])
def test_the_temperature_is_above_0(t: float) -> None:
    with pytest.raises(ConfigurationError, match="finite t above 0, got"):
        sent_sar(LOGPROBS, SIMILARITY, t=t)
