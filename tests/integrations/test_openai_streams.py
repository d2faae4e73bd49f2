"""Streams of the guarded ``openai`` client: what flows, and what is held."""

from __future__ import annotations

import traceback
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from snne_guard import ConfigurationError, UncertainAnswerError
from snne_guard_integrations.openai import assessment
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    ToolCall,
    Usage,
    error,
)
from tests.support.guarded_openai import APART, REQUEST, content, guarding
from tests.support.guarding import Witness, is_sample, split
from tests.support.handlers import find_text
from tests.support.openai_clients import BOTH

both = pytest.mark.parametrize("way", BOTH)
NO = "I am not certain enough of the answer to give one."
USAGE = {"stream_options": {"include_usage": True}}


def held_samples(gate: Gate, answer: Reply) -> Any:
    """Answer at once, the samples only once the gate opens."""
    return lambda request: (
        Reply(texts=("Paris",), gate=gate) if is_sample(request) else answer
    )


# --- what flows -----------------------------------------------------------------------


@both
def test_an_answer_that_cannot_be_withheld_flows_as_it_comes(way: str) -> None:
    gate = Gate()
    with (
        ChatServer(held_samples(gate, Reply(texts=("It is Paris",)))) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        stream = ask(**REQUEST, stream=True)
        kinds = (openai.Stream, openai.AsyncStream)
        assert issubclass(type(stream), kinds)
        # All of the text is there while no sample has come.
        shown = [ask.first(stream) for _ in range(4)]
        assert content(shown) == "It is Paris"
        assert stream.snne_guard is None
        assert stream.response.status_code == 200
        gate.open()
        rest = ask.parts(stream)
    assert [chunk.choices[0].finish_reason for chunk in rest] == ["stop"]
    assert assessment(rest[-1]) == assessment(stream)
    assert assessment(stream)["decision"] == "accept"
    assert all(chunk.choices[0].logprobs is None for chunk in shown)
    assert not any(hasattr(chunk, "snne_guard") for chunk in shown)


@both
def test_log_probabilities_and_usage_flow_where_they_were_asked_for(way: str) -> None:
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(server, way, threshold=0.4) as ask,
    ):
        plain = ask.parts(ask(on=ask.own, **REQUEST, stream=True, logprobs=True))
        chunks, stream = ask.stream(**REQUEST, logprobs=True, **USAGE)
    assert [c.choices[0] for c in chunks[:-1]] == [c.choices[0] for c in plain]
    assert chunks[-1].usage.completion_tokens == 3
    assert assessment(chunks[-1]) == assessment(stream)
    assert not assessment(stream)["cost"]["lower_bound"]


@both
def test_an_accepted_answer_comes_after_the_decision_as_it_was_sent(way: str) -> None:
    gate = Gate()
    reply = Reply(texts=("Paris",), usage=Usage(prompt=7, completion=1))
    with ChatServer(held_samples(gate, reply)) as server:
        with guarding(server, way) as ask:
            gate.open()
            plain = ask.parts(ask(on=ask.own, **REQUEST, stream=True, **USAGE))
        with guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask:
            chunks, stream = ask.stream(**REQUEST, **USAGE)
    assert [c.choices for c in chunks] == [c.choices for c in plain]
    assert assessment(chunks[-1])["decision"] == "accept"
    assert assessment(stream)["cost"]["prompt_tokens"] > 7


@both
def test_a_refused_answer_is_never_in_the_stream(way: str) -> None:
    witness = Witness()
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(
            server, way, threshold=0.4, on_uncertain="refuse", observers=[witness]
        ) as ask,
    ):
        chunks, stream = ask.stream(**REQUEST, **USAGE)
        without, _ = ask.stream()
    assert content(chunks) == NO
    assert chunks[0].choices[0].delta.refusal == NO
    assert [c.choices[0].finish_reason for c in chunks[:2]] == [None, "stop"]
    assert chunks[-1].usage.completion_tokens == 3
    assert len(without) == 2
    assert assessment(chunks[-1]) == assessment(stream)
    assert not any("Paris" in chunk.to_json() for chunk in chunks)
    assert witness.assessments[0].answer is not None
    assert witness.assessments[0].answer.text == "It is Paris"


@both
def test_an_error_comes_in_its_place(way: str) -> None:
    with (
        ChatServer(split("It is Paris", APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain="raise") as ask,
    ):
        stream = ask(**REQUEST, stream=True)
        with pytest.raises(UncertainAnswerError) as caught:
            ask.parts(stream)
        assert find_text("It is Paris", caught.value) == []
        for frame, _ in traceback.walk_tb(caught.tb):
            if "snne_guard_integrations" in frame.f_code.co_filename:
                assert "It is Paris" not in repr(frame.f_locals)
        server.script = lambda _request: error(429)
        with pytest.raises(openai.RateLimitError):  # when it is opened, as ever
            ask(**REQUEST, stream=True)


@both
def test_tools_that_are_called_flow_and_pass_or_are_compared(way: str) -> None:
    def script(request: Request) -> Reply:
        city = "Rome" if is_sample(request) else "Paris"
        call = ToolCall(name="weather", arguments={"city": city})
        return Reply(tool_calls=[[call, call]])

    tools = [{"type": "function", "function": {"name": "weather", "parameters": {}}}]
    request = {**REQUEST, "tools": tools}
    with ChatServer(script) as server:
        with guarding(server, way, threshold=0.2, on_uncertain="refuse") as ask:
            chunks, stream = ask.stream(**request)
            assert assessment(stream)["reasons"] == ["tool_calls"]
            calls = [c for k in chunks for c in k.choices[0].delta.tool_calls or ()]
            assert {call.index for call in calls} == {0, 1}
        with guarding(
            server, way, threshold=0.2, on_uncertain="refuse", tool_calls="score"
        ) as ask:
            chunks, stream = ask.stream(**request)
            assert assessment(stream)["decision"] == "refuse"
            assert content(chunks) == NO


class City(BaseModel):
    name: str


@both
def test_the_package_s_own_helper_reads_a_guarded_stream(way: str) -> None:
    path = "chat.completions.stream"
    with ChatServer(split('{"name": "Paris"}', APART)) as server:
        with guarding(server, way, threshold=0.4) as ask:
            found = ask.helped(path, **REQUEST, response_format=City)
            assert found.choices[0].message.parsed == City(name="Paris")
        with guarding(server, way, threshold=0.4, on_uncertain="refuse") as ask:
            found = ask.helped(path, **REQUEST, response_format=City)
            assert found.choices[0].message.refusal == NO
            assert found.choices[0].message.parsed is None


# --- somebody else answers ------------------------------------------------------------


@both
@pytest.mark.parametrize("failing", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_somebody_else_answers_in_the_stream(
    way: str, *, failing: bool, named: bool
) -> None:
    def script(request: Request) -> Reply:
        if request.body["model"] == "careful":
            return Reply(texts=("It is Bern",))
        if failing and not is_sample(request):
            return error(500)
        return split("It is Paris", APART)(request)

    seen: list[dict[str, Any]] = []

    def other(request: dict[str, Any]) -> str:
        seen.append(request)
        return "It is Bern"

    with (
        ChatServer(script) as server,
        guarding(
            server,
            way,
            threshold=0.4,
            on_uncertain="fallback",
            fallback="careful" if named else other,
        ) as ask,
    ):
        chunks, stream = ask.stream(**REQUEST, **USAGE)
        assert content(chunks) == "It is Bern"
        assert assessment(stream)["decision"] == "fallback"
        assert assessment(chunks[-1]) == assessment(stream)
    if not named:
        assert seen == [REQUEST]
        assert not failing or stream.response._response is None


@both
def test_a_fallback_that_there_is_not_ends_the_stream(way: str) -> None:
    with (
        ChatServer(split("Paris", APART)) as server,
        guarding(server, way, threshold=0.4, on_uncertain=lambda _a: "fallback") as ask,
        pytest.raises(ConfigurationError, match="no fallback"),
    ):
        ask.stream()
