"""The baselines: probabilities of the sequence, perplexity, length."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers.likelihood import (
    answer_length,
    mean_sequence_probability,
    perplexity,
    sequence_probability,
)

logprobs = st.lists(st.floats(-1e6, 0), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        (sequence_probability, 0.9502129316321360),
        (perplexity, 2.7182818284590451),
        (mean_sequence_probability, 0.5322016665227279),
    ],
)
def test_known_values(method: Callable[[Any], float], expected: float) -> None:
    assert method([-0.2, -0.8, -2.0]) == pytest.approx(expected, abs=1e-12)


@given(logprobs)
def test_probabilities_lie_in_the_unit_interval(drawn: list[float]) -> None:
    assert 0 <= sequence_probability(drawn) <= 1
    assert 0 <= mean_sequence_probability(drawn) <= 1
    assert perplexity(drawn) >= 1


@given(st.lists(st.floats(-20, 0), min_size=1, max_size=30))
def test_they_are_their_definitions(drawn: list[float]) -> None:
    product = 1.0
    for logprob in drawn:
        product *= math.exp(logprob)
    mean = sum(math.exp(logprob) for logprob in drawn) / len(drawn)

    assert sequence_probability(drawn) == pytest.approx(1 - product, abs=1e-12)
    assert mean_sequence_probability(drawn) == pytest.approx(1 - mean, abs=1e-12)
    assert perplexity(drawn) == pytest.approx(product ** (-1 / len(drawn)), rel=1e-9)


@given(logprobs, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(drawn: list[float], random: Any) -> None:
    shuffled = drawn.copy()
    random.shuffle(shuffled)

    for method in (sequence_probability, mean_sequence_probability, perplexity):
        assert method(shuffled) == method(drawn)


@given(logprobs)
def test_a_set_of_copies_has_the_value_of_one(drawn: list[float]) -> None:
    one = drawn[0]

    assert mean_sequence_probability([one] * 7) == pytest.approx(-math.expm1(one))
    assert perplexity([one] * 3) == pytest.approx(perplexity([one]))


def test_certain_and_impossible() -> None:
    assert sequence_probability([0.0, 0.0]) == 0.0
    assert mean_sequence_probability([0.0]) == 0.0
    assert perplexity([0.0]) == 1.0
    assert sequence_probability([-math.inf, -1.0]) == 1.0
    assert mean_sequence_probability([-math.inf, 0.0]) == 0.5
    assert perplexity([-math.inf]) == math.inf
    assert perplexity([-1e5]) == math.inf


def test_a_probability_close_to_1_is_not_lost() -> None:
    assert sequence_probability([-1e-20]) == 1e-20
    assert mean_sequence_probability([-1e-20]) == 1e-20


def test_rounding_above_0_is_evened_out() -> None:
    assert sequence_probability([1e-9]) == 0.0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        (" \n", 0),
        ("Paris", 1),
        ("It was Neil Armstrong, in 1969.", 6),
        ("東京", 2),
        ("don't", 2),
    ],
)
def test_length_counts_words_of_any_script(text: str, expected: int) -> None:
    assert answer_length(text) == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"at least one main_logprobs, got shape \(0,\)"),
        ([[-1.0]], r"at least one main_logprobs, got shape \(1, 1\)"),
        ([-1.0, 0.5], "main_logprobs of at most 0, got 0.5"),
        ([math.nan], "main_logprobs without NaN"),
        ("no", "main_logprobs to be numbers, got str"),
    ],
)
def test_bad_log_probabilities(values: Any, message: str) -> None:
    for method in (sequence_probability, perplexity):
        with pytest.raises(InputError, match=message):
            method(values)
    with pytest.raises(InputError, match=message.replace("main", "mean")):
        mean_sequence_probability(values)
