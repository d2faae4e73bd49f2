"""When agreement is no chance: literal numbers, an exact oracle, what never counts."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.sampling.agreement import agreement_logprob, suspect
from snne_guard.types import Sample

SLACK = math.log(10 / 9)
"""What truncated sampling may add to a token's log-probability."""


def drawn(text: str, *logprobs: float) -> Sample:
    return Sample(text=text, token_logprobs=logprobs or None)


@pytest.mark.parametrize(
    ("logprobs", "alike", "found"),
    [
        # 3 x 2 x (-2.4 + 0.10536) = -13.77, not below ln 1e-6 = -13.8155
        ((-2.4, -2.4), 4, False),
        # 3 x 2 x (-2.41 + 0.10536) = -13.83
        ((-2.41, -2.41), 4, True),
        # (-13.92 + 0.10536) = -13.81
        ((-13.92,), 2, False),
        ((-13.93,), 2, True),
        # 9 x (ln 0.2 + 0.10536) = -13.54: one token, drawn ten times at p = 0.2
        ((math.log(0.2),), 10, False),
        # 9 x (ln 0.19 + 0.10536) = -14.00
        ((math.log(0.19),), 10, True),
        # 40 tokens of p = 0.8, as greedy decoding writes them: 3 x -4.71 = -14.13
        ((math.log(0.8),) * 40, 4, True),
        ((math.log(0.8),) * 39, 4, False),
        ((-90.0,), 1, False),
        ((-math.inf,), 2, True),
    ],
)
def test_agreement_is_suspect_below_one_in_a_million(
    logprobs: tuple[float, ...], alike: int, *, found: bool
) -> None:
    assert suspect([drawn("Paris", *logprobs)] * alike) is found


@pytest.mark.parametrize("alike", [2, 4, 10, 100])
@pytest.mark.parametrize("length", [1, 3, 500])
def test_certain_answers_may_agree_as_often_as_they_like(
    alike: int, length: int
) -> None:
    assert not suspect([drawn("Paris", *[math.log(0.91)] * length)] * alike)


def test_a_short_answer_that_is_likely_may_agree() -> None:
    # p = 0.55, ten of ten: once in 200 calls by chance.
    assert not suspect([drawn("4", math.log(0.55))] * 10)


def test_two_of_several_may_give_a_cache_away() -> None:
    one, other = drawn("one", -20.0), drawn("other", -20.0)
    assert suspect([one, other, one, other])
    assert suspect([one, other, one])
    assert not suspect([one, other, drawn("third", -20.0)])
    # ln C(4, 2) + (-15.7 + 0.10536) = -13.80: six pairs could have been the alike ones
    assert not suspect([drawn("a", -15.7)] * 2 + [one, other])
    assert suspect([drawn("a", -15.72)] * 2 + [one, other])


def test_nothing_is_suspect_without_evidence() -> None:
    assert not suspect([])
    assert not suspect([drawn("Paris")] * 9)
    assert not suspect([drawn("Paris", -90.0), drawn("Lyon", -90.0)])


def test_what_is_compared_are_the_calls_where_there_are_any() -> None:
    call = Sample(text="", tool_calls='[{"a":1}]', token_logprobs=(-90.0,))
    assert not suspect([call, replace(call, tool_calls='[{"a":2}]')])
    assert suspect([call, replace(call, text="I call it", token_logprobs=None)])


def test_the_kindest_of_several_log_probabilities_counts() -> None:
    assert not suspect([drawn("Paris", -90.0), drawn("Paris", -0.1)])
    assert suspect([drawn("Paris", -90.0), drawn("Paris", -80.0)])


@pytest.mark.parametrize(
    ("temperature", "found"), [(1.0, True), (1.5, True), (0.99, False), (0.0, False)]
)
def test_below_temperature_one_the_log_probabilities_prove_nothing(
    temperature: float, *, found: bool
) -> None:
    assert suspect([drawn("Paris", -90.0)] * 4, temperature=temperature) is found


@given(
    st.lists(st.floats(0.01, 1.0), min_size=2, max_size=4), st.integers(2, 4), st.data()
)
def test_the_bound_is_never_below_the_exact_probability(
    weights: list[float], draws: int, data: st.DataObject
) -> None:
    total = sum(weights)
    chances = [weight / total for weight in weights]
    alike = data.draw(st.integers(2, draws))
    limit = data.draw(st.sampled_from(chances))
    exact = sum(
        math.prod(chances[text] for text in outcome)
        for outcome in itertools.product(range(len(chances)), repeat=draws)
        if any(
            outcome.count(text) >= alike and chances[text] <= limit for text in outcome
        )
    )
    bound = agreement_logprob([math.log(limit)], alike=alike, drawn=draws)
    assert exact <= math.exp(bound) * (1 + 1e-9)
    if limit < 0.9:  # the same without the slack is still a bound
        assert exact <= math.exp(bound - (alike - 1) * SLACK) * (1 + 1e-9)
