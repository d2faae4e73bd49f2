"""What a guard gives back: type, metadata, decision, in every way to call it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from snne_guard import (
    Assessment,
    GuardedChatModel,
    SNNEGuard,
    UncertainAnswerError,
)
from snne_guard.langchain import is_refusal
from tests.support.chat_server import (
    ChatServer,
    Reply,
    chat_openai,
)
from tests.support.guarding import (
    AGREE,
    DIFFER,
    WAYS,
    WHOLE,
    Witness,
    ask,
    record,
    split,
)

METADATA_KEYS = [
    "id",
    "method",
    "score",
    "uncertainty",
    "threshold",
    "certified",
    "p_wrong",
    "p_wrong_interval",
    "decision",
    "n_requested",
    "n_used",
    "reasons",
    "cost",
    "audit",
    "version",
]


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_an_accepted_answer_is_the_models_own_with_its_assessment(
    way: str, chat_model: bool
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert message.content == "Paris"
    found = record(message)
    assert list(found) == METADATA_KEYS
    assert json.loads(json.dumps(found)) == found
    assert found["decision"] == "accept"
    assert found["uncertainty"] == 0.0
    assert (found["method"], found["n_requested"], found["n_used"]) == ("wsnne", 5, 5)
    assert found["reasons"] == []
    assert "logprobs" not in message.response_metadata


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_flagged_answer_is_delivered_and_says_so(way: str, chat_model: bool) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4)
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert message.content == "Paris"
    assert record(message)["decision"] == "flag"
    assert record(message)["uncertainty"] == 1.0


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_refused_answer_is_replaced_by_a_refusal(way: str, chat_model: bool) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
            refusal="No idea.",
        )
        runnable = GuardedChatModel(guard) if chat_model else guard
        message = ask(runnable, "Capital of France?", way)
    assert isinstance(message, AIMessage)
    assert message.text == "No idea."
    assert message.additional_kwargs["refusal"] == "No idea."
    assert record(message)["decision"] == "refuse"
    assert is_refusal(message)
    assert not is_refusal(AIMessage("Paris"))


@pytest.mark.parametrize("way", WAYS)
def test_raise_withholds_by_an_error_without_the_text(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            ask(guard, "Capital of France?", way)
    error = caught.value
    assert (error.uncertainty, error.threshold) == (1.0, 0.4)
    assert error.assessment_id
    assert "Paris" not in f"{error!r}{error}{vars(error)}"


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("u_over", "decision"), [(0.0, "accept"), (0.1, "flag"), (0.9, "refuse")]
)
def test_a_pair_of_thresholds_makes_three_bands(
    way: str, u_over: float, decision: str
) -> None:
    samples = {0.0: AGREE, 0.1: ["Paris", "Paris", "Paris", "Lyon"], 0.9: DIFFER}
    with ChatServer(split("Paris", samples[u_over])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=(0.1, 0.9))
        assert record(ask(guard, "x", way))["decision"] == decision


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("given", "decision", "content"),
    [
        ("flag", "flag", "Paris"),
        ("refuse", "refuse", "No."),
        (AIMessage("Well, well."), "fallback", "Well, well."),
    ],
)
def test_a_callable_decides_with_the_assessment_before_it(
    way: str, given: Any, decision: str, content: str
) -> None:
    seen: list[Assessment] = []

    def decide(assessment: Assessment) -> Any:
        seen.append(assessment)
        return given

    witness = Witness()
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain=decide,
            refusal="No.",
            observers=[witness],
        )
        message = ask(guard, "x", way)
    assert (record(message)["decision"], message.content) == (decision, content)
    assert [assessment.uncertainty for assessment in seen] == [1.0]
    assert witness.last.decision == decision


async def test_an_async_callable_decides_in_async_calls() -> None:
    async def decide(_assessment: Assessment) -> str:
        return "refuse"

    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain=decide)
        assert record(await guard.ainvoke("x"))["decision"] == "refuse"


@pytest.mark.parametrize("way", WHOLE)
def test_without_a_threshold_it_measures_only(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        message = ask(SNNEGuard(chat_openai(server)), "x", way)
    found = record(message)
    assert (found["decision"], found["threshold"]) == (None, None)
    assert found["reasons"] == ["no_threshold"]
    assert found["uncertainty"] == 1.0


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_assess_returns_samples_and_matrix_and_delivers_nothing(way: str) -> None:
    with ChatServer(split("Paris", DIFFER)) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="raise")
        if way == "invoke":
            assessment = guard.assess("x")
        else:
            assessment = asyncio.run(guard.aassess("x"))
    assert assessment.answer is not None
    assert assessment.answer.text == "Paris"
    assert sorted(sample.text for sample in assessment.samples) == sorted(DIFFER)
    assert assessment.matrix is not None
    assert assessment.matrix.shape == (5, 5)
    assert (assessment.decision, assessment.uncertainty) == ("refuse", 1.0)
    assert assessment.question == "x"


@pytest.mark.parametrize("way", WHOLE)
def test_an_empty_answer_that_was_cut_off_is_never_accepted(way: str) -> None:
    cut = Reply(texts=["<think>let me"], finish_reasons=["length"])
    for include_answer in (True, False):
        with ChatServer(split(lambda _request: cut, AGREE)) as server:
            guard = SNNEGuard(
                chat_openai(server),
                threshold=1.0,
                on_uncertain="refuse",
                include_answer=include_answer,
            )
            found = record(ask(guard, "x", way))
        assert found["decision"] == "refuse"
        assert "answer_reasoning_only" in found["reasons"]


@pytest.mark.parametrize("way", WHOLE)
def test_agreement_that_the_log_probabilities_rule_out_is_no_confidence(
    way: str,
) -> None:
    unlikely = Reply(texts=["one two three four"], logprobs=[[-3.0] * 4])
    with ChatServer([unlikely]) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        found = record(ask(guard, "x", way))
    assert (found["decision"], found["uncertainty"]) == ("refuse", None)
    assert found["reasons"] == ["suspect_agreement"]
