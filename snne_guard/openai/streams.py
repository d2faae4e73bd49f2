"""Streams of a guarded client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, islice
from types import SimpleNamespace
from typing import Any, Self, get_args

import openai
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from snne_guard.engine import Outcome
from snne_guard.engine.reading import mapping_of
from snne_guard.openai.apis import ApiObject
from snne_guard.openai.delivery import attach
from snne_guard.openai.request import ApiRequest

Fields = Mapping[str, Any]


class GuardedStream(openai.Stream[Any]):
    """A stream of a guarded client.

    If the answer may be withheld, nothing comes before the decision. Closing the stream
    ends the samples too. Of its HTTP ``response`` only ``close`` is there, and of what
    ``with_streaming_response`` gives only ``parse``. The first part is waited for, so
    that a request that fails raises where it is sent.
    """

    def __init__(self, parts: Generator[Any]) -> None:
        # Neither refers to the stream, so that one that is dropped ends its requests.
        def close() -> None:
            with suppress(ValueError):  # another thread is reading it
                parts.close()

        self._iterator = chain(list(islice(parts, 1)), parts)
        self.response: Any = SimpleNamespace(close=close)

    def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self


class AsyncGuardedStream(openai.AsyncStream[Any]):
    """A stream of a guarded client for tasks, whose ``first`` part has come."""

    def __init__(self, first: object, parts: AsyncGenerator[Any]) -> None:
        # Neither refers to the stream, so that one that is dropped ends its requests.
        async def close() -> None:
            with suppress(RuntimeError):  # another task is reading it
                await parts.aclose()

        self._iterator = _chained(first, parts)
        self.response: Any = SimpleNamespace(aclose=close)

    async def parse(self) -> Self:
        """Return the stream itself, as what ``with_streaming_response`` gives does."""
        return self


async def _chained(first: object, parts: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    if first is not None:
        yield first
    async for part in parts:
        yield part


class StreamEnd:
    """Holds the last part of an answer's stream until the answer is assessed.

    Which one is the last shows only at the end, so each part is passed on with the
    next.
    """

    def __init__(self) -> None:
        self._held: list[Any] = []

    def pass_on(self, item: object) -> list[Any]:
        """Return the parts to deliver for an item; the outcome is last, or raises."""
        if isinstance(item, Outcome):
            if item.error is not None:
                raise item.error
            return [attach(last, item.assessment.to_metadata()) for last in self._held]
        before, self._held = self._held, [item]
        return before


# -- A whole answer as a stream --------------------------------------------------------


def parts_of(request: ApiRequest, answer: ApiObject) -> list[Any]:
    """Return an answer as the parts of a stream, the last with the assessment."""
    fields = answer.to_dict(warnings=False)
    record = fields.pop("snne_guard")
    chat = request.api.name == "chat"
    *parts, last = _chunks(fields, request) if chat else _events(fields)
    return [*parts, attach(last, record)]


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
    kinds = _event_kinds()
    for number, (name, event) in enumerate(_response_events(fields)):
        kind = f"response.{name}"
        yield kinds[kind].construct(type=kind, sequence_number=number, **event)


@cache
def _event_kinds() -> dict[str, Any]:
    """Return the package's classes of events by the type that each has."""
    union, _ = get_args(ResponseStreamEvent)
    return {
        get_args(kind.model_fields["type"].annotation)[0]: kind
        for kind in get_args(union)
    }


_EMPTY: Mapping[Any, Fields] = {
    "message": {"content": []},
    "function_call": {"arguments": ""},
}
"""What items of a response lack until their parts come, by type."""


def _response_events(fields: Fields) -> Iterator[tuple[str, dict[str, Any]]]:
    created = {**fields, "status": "in_progress", "output": []}
    yield "created", {"response": created}
    for index, item in enumerate(fields["output"]):
        at = {"output_index": index}
        where = {**at, "item_id": item.get("id")}
        kind = item.get("type")
        started = {**item, "status": "in_progress", **_EMPTY.get(kind, {})}
        yield "output_item.added", {"item": started, **at}
        for position, part in enumerate(item["content"] if kind == "message" else ()):
            yield from _part_events(part, {**where, "content_index": position})
        if kind == "function_call":
            stem, arguments = "function_call_arguments", item["arguments"]
            yield f"{stem}.delta", {"delta": arguments, **where}
            done = {"arguments": arguments, "name": item["name"], **where}
            yield f"{stem}.done", done
        yield "output_item.done", {"item": item, **at}
    yield "completed", {"response": fields}


def _part_events(part: Fields, where: Fields) -> Iterator[tuple[str, dict[str, Any]]]:
    field, stem, extra = "text", "output_text", {"logprobs": part.get("logprobs") or []}
    if part["type"] == "refusal":
        field, stem, extra = "refusal", "refusal", {}
    text = part[field]
    yield "content_part.added", {"part": {**part, field: ""}, **where}
    yield f"{stem}.delta", {"delta": text, **where, **extra}
    yield f"{stem}.done", {field: text, **where, **extra}
    yield "content_part.done", {"part": part, **where}
