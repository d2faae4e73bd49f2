"""Streams: what flows, what waits, and what ends with them."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from operator import attrgetter
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseCompletedEvent

from snne_guard.openai import guard_client
from tests.openai.guarded import PATHS, REFUSAL, guarded, text_of
from tests.support.observers import Watcher
from tests.support.openai_clients import WAYS, content
from tests.support.openai_server import (
    APART,
    CHAT,
    RESPONSES,
    Answer,
    Asked,
    Server,
    always,
    split,
)

HELPERS = ("chat.completions.stream", "responses.stream")
REFUSING: dict[str, Any] = {"threshold": 0.4, "on_uncertain": "refuse"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_flagged_stream_is_that_of_the_client(path: str, way: str) -> None:
    script = split("Paris it is", *APART)
    with guarded(script, way, threshold=0.4) as (_, call):
        parts, stream = call.stream(path)
        bare = call.parts(call(path, on=call.own, stream=True))
    kind = openai.Stream if way == "threads" else openai.AsyncStream
    assert isinstance(stream, kind)
    record = parts[-1].snne_guard
    assert (record["decision"], record["method"]) == ("flag", "wsnne")
    del parts[-1].snne_guard
    if path == PATHS[1]:
        assert parts[-1].response.snne_guard["decision"] == "flag"
        del parts[-1].response.snne_guard
    assert without_ids(parts) == without_ids(bare)


def without_ids(parts: list[Any]) -> str:
    """Return parts as JSON, each answer's own id left out."""
    whole = json.dumps([part.to_dict() for part in parts])
    return re.sub(r'"(chatcmpl-|resp_)\d+"', "null", whole)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_stream_comes_out_of_a_streaming_response(path: str, way: str) -> None:
    with guarded(split("Paris it is", *APART), way, **REFUSING) as (server, call):
        resource = attrgetter(path.rpartition(".")[0])(call.client)
        request = CHAT if path == PATHS[0] else RESPONSES
        opened = resource.with_streaming_response.create(**request, stream=True)
        if way == "threads":
            with opened as response:
                parts = list(response.parse())
        else:

            async def read() -> list[Any]:
                async with opened as response:
                    return [part async for part in await response.parse()]

            parts = call.wait(read())
    assert content(parts) == REFUSAL
    assert parts[-1].snne_guard["decision"] == "refuse"
    assert not any("x-stainless-raw-response" in one.headers for one in server.requests)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_parts_flow_before_the_samples_are_there(path: str, way: str) -> None:
    gate, sampled = threading.Event(), list[bool]()

    def script(asked: Asked) -> Answer:
        if asked.is_sample:
            gate.wait(5)
            sampled.append(True)
        return Answer(texts=["Paris it is"])

    with guarded(script, way, threshold=0.4) as (_, call):
        stream = call(path, stream=True)
        seen = [call.first(stream) for _ in range(4)]
        assert "Paris" in content(seen)
        assert not sampled
        gate.set()
        rest = call.parts(stream)
    assert content([*seen, *rest]) == "Paris it is"
    assert rest[-1].snne_guard["decision"] == "accept"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_nothing_comes_before_the_decision_where_it_may_be_withheld(
    path: str, way: str
) -> None:
    sampled: list[bool] = []

    def script(asked: Asked) -> Answer:
        if asked.is_sample:
            time.sleep(0.1)
            sampled.append(True)
        return Answer(texts=["Paris it is"])

    with guarded(script, way, n=2, **REFUSING) as (server, call):
        stream = call(path, stream=True)
        first = call.first(stream)
        assert sampled
        parts = [first, *call.parts(stream)]
        assert not any(asked.body.get("stream") for asked in server.requests)
    assert content(parts) == "Paris it is"
    record = parts[-1].snne_guard
    assert (record["decision"], record["cost"]["lower_bound"]) == ("accept", False)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_refused_stream_says_the_refusal_alone(path: str, way: str) -> None:
    with guarded(split("Paris", *APART), way, **REFUSING) as (_, call):
        parts, _stream = call.stream(path)
    assert content(parts) == REFUSAL
    assert not any("Paris" in part.to_json() for part in parts)
    assert parts[-1].snne_guard["decision"] == "refuse"
    if path == PATHS[0]:
        assert all(isinstance(part, ChatCompletionChunk) for part in parts)
        assert [part.choices[0].finish_reason for part in parts] == [None, "stop"]
        assert len({part.id for part in parts}) == 1
    else:
        assert isinstance(parts[-1], ResponseCompletedEvent)
        assert [part.sequence_number for part in parts] == list(range(len(parts)))


@pytest.mark.parametrize("way", WAYS)
def test_the_usage_comes_last_where_it_is_asked_for(way: str) -> None:
    usage: Any = {"stream_options": {"include_usage": True}}
    with guarded(split("Paris", *APART), way, **REFUSING) as (_, call):
        refused, _stream = call.stream(**usage)
    with guarded(always("Paris"), way) as (_, call):
        flowing, _stream = call.stream(**usage)
    for parts in (refused, flowing):
        assert parts[-1].choices == []
        assert parts[-1].usage.completion_tokens == 1
        assert parts[-1].snne_guard["cost"]["lower_bound"] is False


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_says_no_end_has_its_assessment_on_the_last_part(
    way: str,
) -> None:
    with guarded(always("Paris it is", finish=None), way) as (_, call):
        parts, _stream = call.stream()
    assert content(parts) == "Paris it is"
    assert [hasattr(part, "snne_guard") for part in parts].index(True) == len(parts) - 1


@pytest.mark.parametrize("way", WAYS)
def test_a_fallback_s_calls_of_tools_come_in_the_stream(way: str) -> None:
    function = {"name": "lookup", "arguments": "{}"}
    called = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [called]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    item = {"type": "function_call", "id": "f", **function}
    given: list[Any] = [
        ChatCompletion.construct(id="mine", choices=[choice]),
        Response.construct(id="mine", output=[item]),
    ]
    unused = [*given]
    options = {"on_uncertain": "fallback", "fallback": lambda _: unused.pop(0)}
    with guarded(split("Paris", *APART), way, threshold=0.4, **options) as (_, call):
        chunks, _stream = call.stream()
        events, _stream = call.stream(PATHS[1])
    assert chunks[0].choices[0].delta.tool_calls[0].function.name == "lookup"
    assert chunks[-1].choices[0].finish_reason == "tool_calls"
    kinds = ["function_call_arguments.delta", "function_call_arguments.done"]
    kinds = ["created", "output_item.added", *kinds, "output_item.done", "completed"]
    assert [event.type for event in events] == [f"response.{kind}" for kind in kinds]
    assert events[2].delta == events[3].arguments == "{}"
    assert not any(hasattr(each, "snne_guard") for each in given)  # the user's own


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", HELPERS)
@pytest.mark.parametrize(("options", "text"), [({}, "Paris"), (REFUSING, REFUSAL)])
def test_the_package_s_helpers_read_guarded_streams(
    path: str, options: dict[str, Any], text: str, way: str
) -> None:
    with guarded(split("Paris", *APART), way, **options) as (_, call):
        assert text_of(call.helped(path)) == text


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [{}, REFUSING])
def test_a_request_that_fails_raises_where_it_is_sent(
    options: dict[str, Any], way: str
) -> None:
    script = always(status=401, body={"error": {"message": "no key"}})
    with (
        guarded(script, way, **options) as (_, call),
        pytest.raises(openai.AuthenticationError),
    ):
        call(stream=True)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", PATHS)
def test_a_stream_that_breaks_off_raises(path: str, way: str) -> None:
    with guarded(always("Paris it is", cut=True), way) as (_, call):
        with pytest.raises(Exception, match=r"closed|onnection") as bare:
            call.parts(call(path, on=call.own, stream=True))
        with pytest.raises(bare.type):
            call.stream(path)


async def test_closing_a_stream_ends_the_samples() -> None:
    watcher = Watcher()

    def script(asked: Asked) -> Answer:
        if asked.is_sample:
            return Answer(hang=True)
        return Answer(texts=["Paris it is, " * 1000], chunk_delay=0.02)

    with Server(script) as server:
        given: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        async with openai.AsyncOpenAI(**given) as own:
            client = guard_client(own, n=3, observers=[watcher])
            stream = await client.chat.completions.create(**CHAT, stream=True)
            await anext(stream)
            await asyncio.to_thread(server.wait_for_requests, 2)
            await stream.close()
            await asyncio.to_thread(server.wait_for_abandoned, 2)
    assert "cancelled" in watcher.only.reasons


def test_closing_a_stream_in_a_thread_tells_the_observers() -> None:
    watcher = Watcher()
    script = always("Paris it is", chunk_delay=0.02)
    with guarded(script, "threads", n=3, observers=[watcher]) as (_, call):
        with call(stream=True) as stream:
            next(stream)
        assert "cancelled" in watcher.only.reasons
        assert list(stream) == []
