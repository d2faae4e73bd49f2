"""pTrue: the prompt to the letter, the formula, and what is asked of the model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.p_true import (
    Shot,
    p_true,
    p_true_few_shot,
    p_true_logprob,
    p_true_prompt,
)

QUERY = (
    "Question: Who wrote Faust?\n"
    "Brainstormed Answers: Goethe\n"
    "Marlowe\n"
    "Goethe\n"
    "Possible answer: Goethe\n"
    "Is the possible answer:\n"
    "A) True\n"
    "B) False\n"
    "The possible answer is:"
)
SHOTS = [
    Shot(question="2 + 2?", answer="4", samples=["4", " 5 "], correct=True),
    Shot(question="3 + 3?", answer=" 7", samples=["6"], correct=False),
]
FEW_SHOT = (
    "Question: 2 + 2?\n"
    "Brainstormed Answers: 4 \n"
    "4 \n"
    "5 \n"
    "Possible answer: 4\n"
    "Is the possible answer:\n"
    "A) True\n"
    "B) False\n"
    "The possible answer is: A\n"
    "Question: 3 + 3?\n"
    "Brainstormed Answers: 7 \n"
    "6 \n"
    "Possible answer:  7\n"
    "Is the possible answer:\n"
    "A) True\n"
    "B) False\n"
    "The possible answer is: B"
)


def test_the_prompt_to_the_letter() -> None:
    got = p_true_prompt("Who wrote Faust?", "Goethe", [" Goethe ", "Marlowe\n"])

    assert got == QUERY


def test_the_examples_to_the_letter() -> None:
    assert p_true_few_shot(SHOTS) == FEW_SHOT
    assert p_true_few_shot([]) == ""


def test_the_question_stands_on_a_line_of_its_own_after_the_examples() -> None:
    got = p_true_prompt(
        "Who wrote Faust?", "Goethe", ["Goethe", "Marlowe"], few_shot=FEW_SHOT
    )

    assert got == f"{FEW_SHOT}\n{QUERY}"


def test_an_answer_without_samples_is_its_own_only_idea() -> None:
    got = p_true_prompt("Who?", "I", [])

    assert got.startswith("Question: Who?\nBrainstormed Answers: I\nPossible answer: I")


def test_what_is_asked_of_the_model() -> None:
    asked: list[tuple[str, str]] = []

    def likelihood(prompt: str, continuation: str, /) -> float:
        asked.append((prompt, continuation))
        return -0.7

    got = p_true_logprob(
        likelihood, "Who wrote Faust?", "Goethe", ["Goethe", "Marlowe"], shots=SHOTS
    )

    assert got == -0.7
    assert asked == [(f"{FEW_SHOT}\n{QUERY}", " A")]


@pytest.mark.parametrize("value", [0.5, math.nan, math.inf])
def test_a_likelihood_that_gives_no_log_probability(value: float) -> None:
    with pytest.raises(InputError, match="at most 0 from likelihood, got"):
        p_true_logprob(lambda _prompt, _continuation: value, "?", "a", [])
    with pytest.raises(InputError, match="log-probability of at most 0, got"):
        p_true(value)


def test_rounding_above_0_is_evened_out() -> None:
    assert p_true(1e-9) == 0.0
    assert p_true_logprob(lambda _prompt, _continuation: 1e-9, "?", "a", []) == 0.0


@pytest.mark.parametrize(
    ("logprob", "fixed", "code"),
    [
        (-1.1843, 0.6940397232503436, 2.1843),
        (-0.1223, 0.11511713618023, 1.1223),
        (0.0, 0.0, 1.0),
        (-math.inf, 1.0, math.inf),
    ],
)
def test_known_values(logprob: float, fixed: float, code: float) -> None:
    assert p_true(logprob) == pytest.approx(fixed, abs=1e-12)
    assert p_true(logprob, reading="code") == pytest.approx(code, abs=1e-12)


@given(st.floats(-1e4, 0), st.floats(-1e4, 0))
def test_both_readings_rank_alike(one: float, other: float) -> None:
    least, most = sorted((one, other))

    assert 0 <= p_true(most) <= p_true(least) <= 1
    assert p_true(most, reading="code") <= p_true(least, reading="code")


def test_an_unknown_reading() -> None:
    with pytest.raises(ConfigurationError, match="'fixed' or 'code', got 'paper'"):
        p_true(-1.0, reading="paper")  # type: ignore[arg-type]
