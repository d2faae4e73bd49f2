"""CoCoA: the answer's surprise times how little the samples agree with it."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers.cocoa import cocoa_msp, cocoa_ppl

logprobs = st.lists(st.floats(-1e4, 0), min_size=1, max_size=10)
similarities = st.lists(st.floats(0, 1), min_size=1, max_size=10)


def test_known_values() -> None:
    tokens, similarity = [-0.2, -0.8, -2.0], [1.0, 0.25, 0.5]

    assert cocoa_msp(tokens, similarity) == pytest.approx(3.0 * 1.25 / 3, abs=1e-12)
    assert cocoa_ppl(tokens, similarity) == pytest.approx(1.0 * 1.25 / 3, abs=1e-12)


@given(logprobs, similarities)
def test_they_are_their_definitions(
    tokens: list[float], similarity: list[float]
) -> None:
    apart = sum(1 - value for value in similarity) / len(similarity)

    msp, ppl = cocoa_msp(tokens, similarity), cocoa_ppl(tokens, similarity)

    assert msp == pytest.approx(-sum(tokens) * apart, rel=1e-9, abs=1e-9)
    assert ppl == pytest.approx(msp / len(tokens), rel=1e-9, abs=1e-9)
    assert msp >= 0
    assert ppl >= 0


@given(logprobs, similarities, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(
    tokens: list[float], similarity: list[float], random: Any
) -> None:
    mixed, other = tokens.copy(), similarity.copy()
    random.shuffle(mixed)
    random.shuffle(other)

    assert cocoa_msp(mixed, other) == cocoa_msp(tokens, similarity)
    assert cocoa_ppl(mixed, other) == cocoa_ppl(tokens, similarity)


@given(logprobs, st.integers(1, 9))
def test_samples_that_are_all_like_the_answer_leave_nothing(
    tokens: list[float], m: int
) -> None:
    assert cocoa_msp(tokens, [1.0] * m) == 0.0
    assert cocoa_msp(tokens, [0.5] * m) == cocoa_msp(tokens, [0.5])


def test_an_answer_without_probability() -> None:
    assert cocoa_msp([-math.inf, -1.0], [0.5]) == math.inf
    assert cocoa_msp([-math.inf, -1.0], [1.0]) == 0.0


@pytest.mark.parametrize(
    ("tokens", "similarity", "message"),
    [
        ([], [0.5], "at least one main_logprobs, got shape"),
        ([0.5], [0.5], "main_logprobs of at most 0, got 0.5"),
        ([-1.0], [], "at least one main_similarity, got shape"),
        ([-1.0], [0.5, 1.1], r"main_similarity in \[0, 1\], got 1.1"),
        ([-1.0], [0.5, -0.2], r"main_similarity in \[0, 1\], got -0.2"),
        ([-1.0], [math.nan], "main_similarity without NaN"),
    ],
)
def test_bad_input(tokens: Any, similarity: Any, message: str) -> None:
    for method in (cocoa_msp, cocoa_ppl):
        with pytest.raises(InputError, match=message):
            method(tokens, similarity)
