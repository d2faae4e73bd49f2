"""Streams of the guarded ``openai`` client: what flows, is held, and ends them."""

from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletion
from pydantic import BaseModel

from snne_guard import ConfigurationError, SamplingError, UncertainAnswerError
from snne_guard_integrations._openai.parts import Whole, ends, parts_of
from snne_guard_integrations._openai.requests import Post
from snne_guard_integrations.openai import assessment, guard_client
from tests.support.chat_server import (
    ChatServer,
    Gate,
    Reply,
    Request,
    ToolCall,
    Usage,
    always,
    error,
)
from tests.support.guarded_openai import APART, REQUEST, content, guarding
from tests.support.guarding import Witness, is_sample, split, until
from tests.support.openai_clients import BOTH, async_client, client

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
        with pytest.raises(UncertainAnswerError):
            ask.parts(stream)
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


# --- what ends them -------------------------------------------------------------------


@both
@pytest.mark.parametrize("how", ["close", "response", "drop"])
def test_a_stream_that_is_abandoned_ends_its_samples(way: str, how: str) -> None:
    witness = Witness()

    def script(request: Request) -> Reply:
        if is_sample(request):
            return Reply(stall=True)
        return Reply(texts=("It is Paris",), chunk_delay=0.01)

    with (
        ChatServer(script) as server,
        guarding(server, way, threshold=0.4, n=2, observers=[witness]) as ask,
    ):
        stream = ask(**REQUEST, stream=True)
        server.wait_until(requests=2)
        ask.first(stream)
        if how == "close":
            ask.close(stream)
        elif how == "response":
            ask.close_response(stream)
        del stream
        gc.collect()
        ask.wait(until(lambda: witness.assessments))
        server.wait_until(abandoned=1)
    assert witness.last.reasons == ("cancelled",)
    assert witness.last.cost.lower_bound


def slowly(request: Request) -> Reply:
    """Let the answer begin and never end; the samples never come."""
    if is_sample(request):
        return Reply(stall=True)
    return Reply(texts=("It is Paris",), chunk_delay=0.2)


@pytest.mark.parametrize("policy", ["flag", "refuse"])
def test_a_stream_that_another_thread_closes_ends_what_is_read(policy: Any) -> None:
    witness, begun = Witness(), threading.Event()
    with ChatServer(slowly) as server, client(server, timeout=2) as own:
        guarded = guard_client(
            own, n=2, threshold=0.4, on_uncertain=policy, observers=[witness]
        )
        stream = guarded.chat.completions.create(**REQUEST, stream=True)

        def read() -> None:
            begun.set()
            with suppress(openai.APIConnectionError, httpx.HTTPError):
                list(stream)

        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(read)
            begun.wait()
            stream.close()
            reading.result()
        server.wait_until(abandoned=1)
    assert witness.last.reasons[-1] in {"answer_failed", "cancelled"}


@pytest.mark.parametrize("policy", ["flag", "refuse"])
async def test_a_stream_that_another_task_closes_ends_what_is_read(policy: Any) -> None:
    witness = Witness()
    with ChatServer(slowly) as server:
        async with async_client(server) as own:
            guarded = guard_client(
                own, n=2, threshold=0.4, on_uncertain=policy, observers=[witness]
            )
            stream = await guarded.chat.completions.create(**REQUEST, stream=True)
            begun = asyncio.Event()

            async def read() -> None:
                begun.set()
                with suppress(openai.APIConnectionError, httpx.HTTPError):
                    [chunk async for chunk in stream]

            reading = asyncio.ensure_future(read())
            await begun.wait()
            await asyncio.sleep(0)
            await stream.close()
            await reading
            await asyncio.to_thread(server.wait_until, abandoned=1)
    assert witness.last.reasons[-1] in {"answer_failed", "cancelled"}


async def test_a_task_that_is_cancelled_ends_everything() -> None:
    witness = Witness()
    with ChatServer([Reply(stall=True)]) as server:
        async with async_client(server) as own:
            guarded = guard_client(own, n=2, observers=[witness])
            asking = asyncio.ensure_future(guarded.chat.completions.create(**REQUEST))
            await asyncio.to_thread(server.wait_until, requests=2)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            await until(lambda: witness.assessments)
            await asyncio.to_thread(server.wait_until, abandoned=2)
    assert witness.last.reasons == ("cancelled",)


@both
def test_a_stream_that_breaks_off_raises_or_is_handed_over(way: str) -> None:
    def script(request: Request) -> Reply:
        if is_sample(request):
            return Reply(texts=("Paris",))
        if request.body["model"] == "careful":
            return Reply(texts=("Bern",))
        return Reply(texts=("a b c d",), drop=True)

    with ChatServer(script) as server:
        # Shown already: a second answer behind half of one would be worse.
        with guarding(server, way, threshold=0.4, fallback="careful") as ask:
            stream = ask(**REQUEST, stream=True)
            # The oldest versions of the package pass on what the HTTP client raises.
            with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
                ask.parts(stream)
        with guarding(
            server, way, threshold=0.4, on_uncertain="refuse", fallback="careful"
        ) as ask:
            chunks, stream = ask.stream()
            assert content(chunks) == "Bern"
            assert assessment(stream)["reasons"] == ["answer_failed"]


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


# --- the parts ------------------------------------------------------------------------


def post(**body: Any) -> Post:
    return Post(api="chat", path="/", body=body, given={"cast_to": ChatCompletion})


def test_a_whole_answer_and_its_parts_are_the_same() -> None:
    calls = [
        ToolCall(name="f", arguments={"a": "b c"}),
        ToolCall(name="g", arguments="{}"),
    ]
    with (
        ChatServer([Reply(texts=("Wait.",), tool_calls=[calls])]) as server,
        client(server) as own,
    ):
        whole = own.chat.completions.create(**REQUEST)
        streamed = Whole()
        for chunk in own.chat.completions.create(**REQUEST, stream=True):
            streamed.add(chunk)
    made = Whole()
    for chunk in parts_of(post(stream_options={"include_usage": True}), whole):
        made.add(chunk)
    fields: dict[str, Any] = whole.to_dict()
    for found in (made.answer, streamed.answer):
        message = found["choices"][0]["message"]
        expected = fields["choices"][0]["message"]
        assert message["content"] == expected["content"]
        functions = [call["function"] for call in message["tool_calls"]]
        assert functions == [call["function"] for call in expected["tool_calls"]]
        assert found["choices"][0]["finish_reason"] == "tool_calls"
    assert made.answer["usage"]["total_tokens"] == fields["usage"]["total_tokens"]


def test_unusual_chunks_are_read_as_they_are_meant() -> None:
    def chunk(**fields: Any) -> Any:
        from openai.types.chat import ChatCompletionChunk

        return ChatCompletionChunk.construct(**fields)

    def said(finish: str | None = None, **delta: Any) -> Any:
        return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    # Azure begins with a chunk about the prompt, which is not the end.
    first = chunk(choices=[], prompt_filter_results=[])
    assert not ends(first)
    assert ends(chunk(choices=[], usage={"total_tokens": 3}))
    assert not ends(object())
    whole = Whole()
    parts = [
        first,
        said(content=[{"type": "text", "text": "Par"}]),
        said(content=[{"type": "text", "text": "is"}], function_call={"name": "f"}),
        said("stop", function_call={"arguments": "{"}),
        said("stop", function_call={"arguments": "}"}),
        chunk(choices=[{"index": 1, "delta": {"content": "no"}}, {"index": 0}]),
    ]
    for part in parts:
        whole.add(part)
    choice = whole.answer["choices"][0]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["function_call"] == {"name": "f", "arguments": "{}"}
    texts = [part["text"] for part in choice["message"]["content"]]
    assert texts == ["Par", "is"]


@both
def test_an_empty_stream_is_an_empty_answer(way: str) -> None:
    head = {"Content-Type": "text/event-stream"}
    empty = Reply(body="data: [DONE]\n\n", headers=head)
    with ChatServer(lambda r: empty if r.stream else always("x")(r)) as server:
        with guarding(server, way, threshold=0.4) as ask:
            chunks, stream = ask.stream()
            assert (chunks, assessment(stream)["reasons"]) == ([], ["answer_empty"])
        with (
            guarding(server, way, threshold=0.4, on_error="raise") as ask,
            pytest.raises(SamplingError),
        ):
            ask.stream()
