"""What is delivered after each decision, and what ``assess`` returns."""

from __future__ import annotations

import json
import threading
from typing import Any

import openai
import pytest
from langchain_core.exceptions import LangChainException
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from snne_guard import Assessment, SamplingError, SNNEGuard, UncertainAnswerError
from snne_guard.langchain import is_refusal
from tests.langchain.support import (
    CALLS,
    MODEL,
    REFUSAL,
    REFUSING,
    WHOLE,
    ask,
    guarded,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import APART, Answer, Asked, Server, always, split

# -- What is delivered -----------------------------------------------------------------

METADATA = {
    *("id", "method", "score", "uncertainty", "threshold", "certified", "p_wrong"),
    *("disagreement", "self_check"),
    *("decision", "n_requested", "n_used", "reasons", "cost", "version"),
}


@pytest.mark.parametrize("way", CALLS)
def test_an_accepted_answer_carries_its_assessment(way: str) -> None:
    with Server(always()) as server:
        message = ask(guarded(server, **REFUSING), way)
    record = metadata_of(message)
    assert message.content == "Paris"
    assert set(record) == METADATA
    assert "Paris" not in json.dumps(record, allow_nan=False)
    assert (record["decision"], record["uncertainty"]) == ("accept", 0.0)
    assert record["method"] == "wsnne"
    assert (record["n_requested"], record["n_used"], record["reasons"]) == (5, 5, [])
    assert (record["threshold"], record["certified"]) == (0.4, False)
    assert not is_refusal(message)
    assert message.response_metadata["finish_reason"] == "stop"


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.parametrize(
    ("options", "decision", "says"),
    [
        ({"on_uncertain": "flag"}, "flag", "Paris"),
        ({"on_uncertain": "refuse"}, "refuse", REFUSAL),
        ({"on_uncertain": "refuse", "refusal": "No."}, "refuse", "No."),
        ({"threshold": (0.1, 0.5)}, "refuse", REFUSAL),
        ({"threshold": (0.1, 1.0)}, "flag", "Paris"),
        ({"on_uncertain": lambda _: "refuse"}, "refuse", REFUSAL),
        ({"on_uncertain": lambda _: AIMessage("Hm.")}, "flag", "Hm."),
        (
            {"on_uncertain": "fallback", "fallback": RunnableLambda(lambda _: "Ask.")},
            "fallback",
            "Ask.",
        ),
        ({"threshold": None}, None, "Paris"),
    ],
)
def test_an_uncertain_answer_is_dealt_with_as_asked(
    way: str, options: Any, decision: str | None, says: str
) -> None:
    watcher = Watcher()
    with Server(split("Paris", *APART)) as server:
        settings = {"threshold": 0.4, "observers": [watcher], **options}
        message = ask(guarded(server, **settings), way)
    record = metadata_of(message)
    assert (record["decision"], message.text) == (decision, says)
    assert record["uncertainty"] == 1.0
    assert is_refusal(message) is (decision == "refuse")
    assert (watcher.only.id, watcher.only.decision) == (record["id"], decision)
    assert record["reasons"] == (["no_threshold"] if decision is None else [])


@pytest.mark.parametrize("way", CALLS)
def test_raise_raises_an_error_of_langchain_too(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        guard = guarded(server, threshold=0.4, on_uncertain="raise")
        with pytest.raises(UncertainAnswerError) as caught:
            ask(guard, way)
    error = caught.value
    assert isinstance(error, LangChainException)
    assert (error.uncertainty, error.threshold) == (1.0, 0.4)
    assert not error.is_retryable
    assert str(error) == "the answer has an uncertainty of 1.000, above 0.4"


def failing_samples(asked: Asked) -> Answer:
    return Answer(status=403) if asked.is_sample else Answer()


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize(
    ("options", "decision", "says"),
    [
        ({}, None, "Paris"),
        ({"threshold": 0.4}, "flag", "Paris"),
        ({"threshold": 0.4, "on_uncertain": "refuse"}, "refuse", REFUSAL),
        ({"threshold": (0.4, 0.9), "on_error": "accept"}, "unscored", "Paris"),
    ],
)
def test_an_answer_that_cannot_be_scored_is_dealt_with_as_asked(
    way: str, options: Any, decision: str | None, says: str
) -> None:
    with Server(failing_samples) as server:
        message = ask(guarded(server, **options), way)
    record = metadata_of(message)
    assert (record["decision"], message.text) == (decision, says)
    assert (record["uncertainty"], record["score"]) == (None, None)
    assert {"samples_failed", "too_few_samples"} <= set(record["reasons"])


@pytest.mark.parametrize("way", WHOLE)
def test_an_answer_that_cannot_be_scored_raises_if_asked(way: str) -> None:
    with Server(failing_samples) as server:
        guard = guarded(server, on_error="raise")
        with pytest.raises(SamplingError) as caught:
            ask(guard, way)
    assert (caught.value.n_used, caught.value.needed) == (1, 3)
    assert "PermissionDenied" in caught.value.causes[0]


@pytest.mark.parametrize("way", CALLS)
def test_a_fallback_steps_in_where_the_model_fails(way: str) -> None:
    def fallen(messages: Any) -> AIMessage:
        return AIMessage(f"Heard: {messages[-1].text}")

    with Server(always(status=403)) as server:
        guard = guarded(server, fallback=RunnableLambda(fallen))
        message = ask(guard, way)
    assert message.text == "Heard: Where?"
    record = metadata_of(message)
    assert (record["decision"], record["reasons"]) == ("fallback", ["answer_failed"])


@pytest.mark.parametrize("way", WHOLE)
def test_a_fallback_that_is_a_guard_may_refuse_too(way: str) -> None:
    with Server(split("Paris", *APART)) as server:
        second = guarded(server, threshold=0.1, on_uncertain="refuse", refusal="No.")
        guard = guarded(server, threshold=0.4, on_uncertain="fallback", fallback=second)
        message = ask(guard, way)
    assert message.text == "No."
    assert is_refusal(message)
    assert metadata_of(message)["fallback"]["decision"] == "refuse"


def test_the_refusal_of_a_guard_inside_is_no_answer_to_accept() -> None:
    with Server(split("Paris", *APART * 4)) as server:
        inner = guarded(server, n=2, **REFUSING)
        record = metadata_of(SNNEGuard(inner, n=2, threshold=0.4).invoke("Where?"))
    assert record["decision"] == "flag"
    assert "answer_refused" in record["reasons"]


def test_chunks_flow_where_nothing_can_be_withheld_else_there_is_one() -> None:
    script = always("one two three")
    with Server(script) as server:
        flowing = list(guarded(server, threshold=0.4).stream("Count."))
        held = list(guarded(server, **REFUSING).stream("x"))
    texts = [chunk.text for chunk in flowing if chunk.text]
    assert texts == ["one", " two", " three"]
    assert metadata_of(flowing[-1])["decision"] == "accept"
    assert {chunk.chunk_position for chunk in flowing[:-1]} == {None}
    assert [chunk.text for chunk in held if chunk.text] == ["one two three"]
    assert metadata_of(held[0])["decision"] == "accept"


def test_the_first_chunk_comes_before_the_samples() -> None:
    streaming = threading.Event()

    def script(asked: Asked) -> Answer:
        if asked.is_sample:
            assert streaming.wait(30)
        return Answer(texts=["one two"])

    with Server(script) as server:
        stream = guarded(server).stream("Count.")
        while not next(stream).text:
            pass
        streaming.set()
        assert metadata_of(list(stream)[-1])["n_used"] == 5


# -- assess ----------------------------------------------------------------------------


def assess(guard: SNNEGuard, way: str, answer: Any = None) -> Assessment:
    if way == "ainvoke":
        return in_loop(guard.aassess("Where?", answer))
    return guard.assess("Where?", answer)


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("policy", ["flag", "refuse", "raise"])
def test_assess_returns_everything_and_raises_nothing(way: str, policy: Any) -> None:
    with Server(split("Paris", *APART)) as server:
        assessment = assess(guarded(server, threshold=0.4, on_uncertain=policy), way)
    assert assessment.answer is not None
    assert assessment.answer.text == "Paris"
    assert sorted(sample.text for sample in assessment.samples) == sorted(APART)
    assert assessment.matrix is not None
    assert assessment.matrix.shape == (5, 5)
    assert assessment.reply_set[0] == "Paris"
    assert (assessment.uncertainty, assessment.question) == (1.0, "Where?")
    assert assessment.decision == ("flag" if policy == "flag" else "refuse")


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("answer", ["Paris", AIMessage("Paris")])
def test_assess_draws_only_samples_for_an_answer_that_exists(
    way: str, answer: Any
) -> None:
    with Server(split("never asked", "Paris")) as server:
        assessment = assess(guarded(server, threshold=0.4), way, answer)
        assert [asked.is_sample for asked in server.requests] == [True]
    assert (assessment.decision, assessment.n_used) == ("accept", 5)


def test_assess_raises_the_models_own_error() -> None:
    with Server(always(status=403)) as server, pytest.raises(openai.OpenAIError):
        guarded(server, fallback=MODEL).assess("Where?")
