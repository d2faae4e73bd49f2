"""What an application gets: the answer, or what stands in its place."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import openai.types.responses as events
from openai import BaseModel
from openai.types.chat import ChatCompletionChunk

from snne_guard.errors import ConfigurationError
from snne_guard.openai.requests import wants_json, wants_usage
from snne_guard.sampling.openai import ApiObject, ApiRequest, StreamedAnswer

__all__ = ["answer_of", "attach", "ends_stream", "parse", "parts_of", "refusal_of"]

Fields = Mapping[str, Any]

_KEPT_OF_COMPLETION = ("id", "created", "model", "usage", "service_tier")
"""Fields of a completion that do not tell what it says."""
_DROPPED_OF_RESPONSE = frozenset(
    {"error", "incomplete_details", "output", "output_text", "status"}
)
"""Fields of a response that do, or that are about it."""
_LAST_EVENTS = frozenset(
    {"response.completed", "response.failed", "response.incomplete"}
)


def attach(answer: ApiObject, record: Fields) -> ApiObject:
    """Put the assessment on an answer, or on the last part of a stream."""
    for place in (answer, getattr(answer, "response", None)):
        if place is not None:
            place.snne_guard = dict(record)
    return answer


def parse(request: ApiRequest, answer: ApiObject) -> ApiObject:
    """Return an answer as the client's ``parse`` would, where it was called."""
    parser = request.options.get("post_parser")
    return parser(answer) if callable(parser) else answer


def refusal_of(request: ApiRequest, raw: object, text: str) -> ApiObject:
    """Return what stands in the place of a withheld answer; it says nothing of it.

    Where JSON was asked for, the text is the message's ``refusal``, as when OpenAI's
    models refuse, so that ``parse`` gives no parsed object instead of failing.

    Args:
        request: What was asked.
        raw: The withheld answer.
        text: What the application is to show.
    """
    if isinstance(raw, StreamedAnswer):
        fields: dict[str, Any] = dict(raw.fields)
    else:
        fields = raw.to_dict(warnings=False) if isinstance(raw, BaseModel) else {}
    refuses = wants_json(request)
    if request.api.name == "chat":
        kept = {name: fields[name] for name in _KEPT_OF_COMPLETION if name in fields}
        return _completion(request, text, kept, refuses=refuses)
    kept = {n: value for n, value in fields.items() if n not in _DROPPED_OF_RESPONSE}
    return _response(request, text, kept, refuses=refuses)


def answer_of(request: ApiRequest, given: object) -> ApiObject:
    """Return what a fallback or ``on_uncertain`` gave as an answer of the API.

    Args:
        request: What was asked.
        given: A text, or an object of the API.

    Raises:
        ConfigurationError: It is neither.
    """
    if isinstance(given, BaseModel):
        return given.model_copy()  # the assessment is put on it
    if not isinstance(given, str):
        msg = (
            "a fallback, and a function as on_uncertain, must give a text or an answer "
            f"of the openai package; got {type(given).__name__}"
        )
        raise ConfigurationError(msg)
    head = {"id": f"snne-guard-{uuid.uuid4().hex}", "model": request.model}
    now = int(time.time())
    if request.api.name == "chat":
        return _completion(request, given, {**head, "created": now})
    tools = {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return _response(request, given, {**head, **tools, "created_at": now})


def _completion(
    request: ApiRequest, text: str, fields: Fields, *, refuses: bool = False
) -> ApiObject:
    message = {
        "role": "assistant",
        "content": None if refuses else text,
        "refusal": text if refuses else None,
    }
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    return request.cast_to.construct(
        **fields, object="chat.completion", choices=[choice]
    )


def _response(
    request: ApiRequest, text: str, fields: Fields, *, refuses: bool = False
) -> ApiObject:
    said = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": text} if refuses else said],
    }
    ended = {"object": "response", "status": "completed", "error": None}
    return request.cast_to.construct(
        **{**fields, **ended, "incomplete_details": None, "output": [message]}
    )


# -- Streams ---------------------------------------------------------------------------


def ends_stream(part: ApiObject) -> bool:
    """Return whether a part of a stream is the last one, or comes after the text."""
    if getattr(part, "type", None) in _LAST_EVENTS:
        return True
    choices = getattr(part, "choices", None)
    if choices:
        return all(choice.finish_reason for choice in choices)
    # Without choices it has the usage; Azure also sends one with its prompt filter.
    return choices is not None and getattr(part, "usage", None) is not None


def parts_of(request: ApiRequest, answer: ApiObject) -> Iterator[Any]:
    """Yield a whole answer as the parts of a stream."""
    fields = answer.to_dict(warnings=False)
    if request.api.name == "chat":
        return _chunks(fields, usage=wants_usage(request))
    return _events(fields)


def _chunks(fields: Fields, *, usage: bool) -> Iterator[Any]:
    head = {n: value for n, value in fields.items() if n not in {"choices", "usage"}}
    head["object"] = "chat.completion.chunk"
    choice = fields["choices"][0]
    message = choice["message"]
    delta = {n: value for n, value in message.items() if value and n != "parsed"}
    if "tool_calls" in delta:
        calls = enumerate(delta["tool_calls"])
        delta["tool_calls"] = [{**call, "index": index} for index, call in calls]
    said = {"index": 0, "delta": delta, "finish_reason": None}
    ended = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    make: Any = ChatCompletionChunk.construct
    yield make(**head, choices=[said])
    yield make(**head, choices=[ended])
    if usage and fields.get("usage") is not None:
        yield make(**head, choices=[], usage=fields["usage"])


def _events(fields: Fields) -> Iterator[Any]:
    for number, (kind, name, event) in enumerate(_response_events(fields)):
        yield kind.construct(type=f"response.{name}", sequence_number=number, **event)


def _response_events(fields: Fields) -> Iterator[tuple[Any, str, dict[str, Any]]]:
    begun = {**fields, "status": "in_progress", "output": []}
    yield events.ResponseCreatedEvent, "created", {"response": begun}
    for index, item in enumerate(fields["output"]):
        at = {"output_index": index}
        started = {**item, "status": "in_progress"}
        parts = item.get("content") if item.get("type") == "message" else None
        if parts is not None:
            started["content"] = []
        added = {"item": started, **at}
        yield events.ResponseOutputItemAddedEvent, "output_item.added", added
        for position, part in enumerate(parts or ()):
            where = {**at, "content_index": position, "item_id": item.get("id")}
            yield from _part_events(part, where)
        done = {"item": item, **at}
        yield events.ResponseOutputItemDoneEvent, "output_item.done", done
    yield events.ResponseCompletedEvent, "completed", {"response": fields}


def _part_events(part: Fields, where: Fields) -> Iterator[tuple[Any, str, Any]]:
    delta: type[Any] = events.ResponseTextDeltaEvent
    done: type[Any] = events.ResponseTextDoneEvent
    field, stem, extra = "text", "output_text", {"logprobs": list[Any]()}
    if part["type"] == "refusal":
        delta, done = events.ResponseRefusalDeltaEvent, events.ResponseRefusalDoneEvent
        field, stem, extra = "refusal", "refusal", {}
    text = part[field]
    added = {"part": {**part, field: ""}, **where}
    yield events.ResponseContentPartAddedEvent, "content_part.added", added
    yield delta, f"{stem}.delta", {"delta": text, **where, **extra}
    yield done, f"{stem}.done", {field: text, **where, **extra}
    ended = {"part": part, **where}
    yield events.ResponseContentPartDoneEvent, "content_part.done", ended
