"""Streams of a guarded client: what an application reads, and their parts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, Self

import openai
import openai.types.responses as events
from openai.types.chat import ChatCompletionChunk

from snne_guard.call import Outcome
from snne_guard.openai.answers import attach
from snne_guard.sampling.openai import ApiObject, ApiRequest
from snne_guard.sampling.reading import mapping_of

__all__ = [
    "AsyncGuardedStream",
    "GuardedStream",
    "StreamEnd",
    "parts_of",
    "with_assessment",
]

Fields = Mapping[str, Any]

_LAST_EVENTS = frozenset(
    {"response.completed", "response.failed", "response.incomplete"}
)


class GuardedStream(openai.Stream[Any]):
    """A stream of a guarded client.

    If the answer may be withheld, nothing comes before the decision. Closing the stream
    ends the samples too. Of its HTTP ``response`` only ``close`` is there, and of what
    ``with_streaming_response`` gives only ``parse``.

    Args:
        parts: What it yields. The first part is waited for, so that a request that
            fails raises where it is sent.
    """

    def __init__(self, parts: Generator[Any]) -> None:
        first = list(islice(parts, 1))

        # Neither refers to the stream, so that one that is dropped ends its requests.
        def close() -> None:
            first.clear()
            with suppress(ValueError):  # another thread is reading it
                parts.close()

        self._iterator = chain(first, parts)
        self.response: Any = SimpleNamespace(close=close)

    def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self


class AsyncGuardedStream(openai.AsyncStream[Any]):
    """A stream of a guarded client for tasks, as ``GuardedStream``.

    Args:
        first: The first part, if there is one.
        parts: What comes after it.
    """

    def __init__(self, first: list[Any], parts: AsyncGenerator[Any]) -> None:
        # Neither refers to the stream, so that one that is dropped ends its requests.
        async def close() -> None:
            first.clear()
            with suppress(RuntimeError):  # another task is reading it
                await parts.aclose()

        self._iterator = _chained(first, parts)
        self.response: Any = SimpleNamespace(aclose=close)

    async def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self

    @classmethod
    async def open(cls, parts: AsyncGenerator[Any]) -> Self:
        """Return a stream whose first part has come."""
        first = [part for part in (await anext(parts, None),) if part is not None]
        return cls(first, parts)


async def _chained(first: list[Any], parts: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    for part in first:
        yield part
    async for part in parts:
        yield part


# -- The end, which carries the assessment ---------------------------------------------


class StreamEnd:
    """Holds the end of an answer's stream until the answer is assessed."""

    def __init__(self) -> None:
        self._held: list[Any] = []

    def pass_on(self, item: object) -> list[Any]:
        """Return what the application gets for an item of the driver's stream.

        Args:
            item: A part of the answer, or the outcome, which comes last.

        Raises:
            BaseException: What the answer failed with.
        """
        if isinstance(item, Outcome):
            if item.error is not None:
                raise item.error
            return with_assessment(self._held, item.assessment.to_metadata())
        if self._held or _ends_stream(item):
            self._held.append(item)
            return []
        return [item]


def with_assessment(parts: list[Any], record: Fields) -> list[Any]:
    """Put the assessment on the last part of a stream; return the parts."""
    for part in parts[-1:]:
        attach(part, record)
    return parts


def _ends_stream(part: object) -> bool:
    """Return whether a part of a stream is the last one, or comes after the text."""
    if getattr(part, "type", None) in _LAST_EVENTS:
        return True
    choices = getattr(part, "choices", None)
    if choices:
        return all(getattr(choice, "finish_reason", None) for choice in choices)
    # Without choices it has the usage; Azure also sends one with its prompt filter.
    return choices is not None and getattr(part, "usage", None) is not None


# -- A whole answer as a stream --------------------------------------------------------


def parts_of(request: ApiRequest, answer: ApiObject) -> list[Any]:
    """Return a whole answer as the parts of a stream."""
    fields = answer.to_dict(warnings=False)
    chat = request.api.name == "chat"
    return list(_chunks(fields, request) if chat else _events(fields))


def _chunks(fields: Fields, request: ApiRequest) -> Iterator[Any]:
    head = {n: value for n, value in fields.items() if n not in {"choices", "usage"}}
    head["object"] = "chat.completion.chunk"
    choice = fields["choices"][0]
    message = choice["message"]
    delta = {n: value for n, value in message.items() if value and n != "parsed"}
    if "tool_calls" in delta:
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{**call, "index": index} for index, call in calls]
    text = {"index": 0, "delta": delta, "finish_reason": None}
    if choice.get("logprobs") is not None:
        text["logprobs"] = choice["logprobs"]
    end = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    make: Any = ChatCompletionChunk.construct
    yield make(**head, choices=[text])
    yield make(**head, choices=[end])
    wants_usage = mapping_of(request.body.get("stream_options")).get("include_usage")
    if wants_usage and fields.get("usage") is not None:
        yield make(**head, choices=[], usage=fields["usage"])


def _events(fields: Fields) -> Iterator[Any]:
    for number, (kind, name, event) in enumerate(_response_events(fields)):
        yield kind.construct(type=f"response.{name}", sequence_number=number, **event)


def _response_events(fields: Fields) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    created = {**fields, "status": "in_progress", "output": []}
    yield events.ResponseCreatedEvent, "created", {"response": created}
    for index, item in enumerate(fields["output"]):
        at = {"output_index": index}
        started = {**item, "status": "in_progress"}
        parts = item.get("content") if item.get("type") == "message" else None
        if parts is not None:
            started["content"] = []
        calls = item.get("type") == "function_call"
        if calls:
            started["arguments"] = ""
        added = {"item": started, **at}
        yield events.ResponseOutputItemAddedEvent, "output_item.added", added
        for position, part in enumerate(parts or ()):
            where = {**at, "content_index": position, "item_id": item.get("id")}
            yield from _part_events(part, where)
        if calls:
            yield from _call_events(item, {**at, "item_id": item.get("id")})
        done = {"item": item, **at}
        yield events.ResponseOutputItemDoneEvent, "output_item.done", done
    yield events.ResponseCompletedEvent, "completed", {"response": fields}


def _call_events(call: Fields, where: Fields) -> Iterator[tuple[Any, str, Any]]:
    delta: type[Any] = events.ResponseFunctionCallArgumentsDeltaEvent
    done: type[Any] = events.ResponseFunctionCallArgumentsDoneEvent
    name, arguments = "function_call_arguments", call["arguments"]
    yield delta, f"{name}.delta", {"delta": arguments, **where}
    whole = {"arguments": arguments, "name": call["name"], **where}
    yield done, f"{name}.done", whole


def _part_events(part: Fields, where: Fields) -> Iterator[tuple[Any, str, Any]]:
    delta: type[Any] = events.ResponseTextDeltaEvent
    done: type[Any] = events.ResponseTextDoneEvent
    field, stem, extra = "text", "output_text", {"logprobs": part.get("logprobs") or []}
    if part["type"] == "refusal":
        delta, done = events.ResponseRefusalDeltaEvent, events.ResponseRefusalDoneEvent
        field, stem, extra = "refusal", "refusal", {}
    text = part[field]
    added = {"part": {**part, field: ""}, **where}
    yield events.ResponseContentPartAddedEvent, "content_part.added", added
    yield delta, f"{stem}.delta", {"delta": text, **where, **extra}
    yield done, f"{stem}.done", {field: text, **where, **extra}
    whole = {"part": part, **where}
    yield events.ResponseContentPartDoneEvent, "content_part.done", whole
