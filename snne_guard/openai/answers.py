"""What an application gets: an answer, or what stands in its place."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Literal, get_args

from openai import BaseModel
from openai.types.chat import ChatCompletionChunk
from openai.types.responses import ResponseStreamEvent

from snne_guard.call import Outcome
from snne_guard.errors import ConfigurationError
from snne_guard.sampling.openai.apis import ApiObject, ApiRequest
from snne_guard.sampling.options import asks_for_schema
from snne_guard.sampling.reading import mapping_of

__all__ = ["RefusalAs", "attach", "delivered", "parts_of"]

Fields = Mapping[str, Any]
RefusalAs = Literal["content", "refusal"]
"""Where a refusal stands: it is what the message says, or its ``refusal``."""

_KEPT = ("created", "created_at", "model", "service_tier", "usage")
"""Fields of an answer that do not tell what it says.

Its id is none of them: by that the provider may give out what it has stored.
"""


def delivered(
    request: ApiRequest, outcome: Outcome, refusal: str | None, refusal_as: RefusalAs
) -> ApiObject:
    """Return what the application gets, with the assessment on it.

    Args:
        request: What was asked.
        outcome: How the call ended; its replacement is what the fallback gave, where
            that is to answer.
        refusal: What a refusal says.
        refusal_as: Where it says so if no JSON was asked for.

    Raises:
        BaseException: What is raised in place of an answer.
    """
    if outcome.delivery in {"fallback", "replacement"}:
        answer = _given(request, outcome.replacement)
    elif outcome.delivery == "nothing" or outcome.answer is None:
        assert outcome.error is not None  # noqa: S101 - why there is nothing
        # Nothing here shows the answer: tracebacks may show local variables.
        raise outcome.error
    elif outcome.delivery == "refusal":
        answer = _refusal(request, outcome.answer.raw, str(refusal), refusal_as)
    else:
        answer = outcome.answer.raw
    parser = request.options.get("post_parser")  # of the client's ``parse``
    answer = parser(answer) if callable(parser) else answer
    return attach(answer, outcome.assessment.to_metadata())


def attach(answer: ApiObject, record: Fields) -> ApiObject:
    """Put the assessment on an answer, or on the last part of a stream."""
    for place in (answer, getattr(answer, "response", None)):
        if place is not None:
            place.snne_guard = dict(record)
    return answer


def _refusal(
    request: ApiRequest, withheld: ApiObject, text: str, place: RefusalAs
) -> ApiObject:
    """Return what stands in the place of a withheld answer; it says nothing of it.

    Where JSON was asked for, the text is the message's ``refusal``, as when OpenAI's
    models refuse, so that ``parse`` gives no parsed object instead of failing.
    """
    fields = withheld.to_dict(warnings=False)
    kept = {name: fields[name] for name in _KEPT if name in fields}
    refuses = place == "refusal" or asks_for_schema(request.body)
    return _said(request, text, kept, refuses=refuses)


def _given(request: ApiRequest, given: object) -> ApiObject:
    """Return what a fallback or ``on_uncertain`` gave as an answer of the API."""
    if isinstance(given, BaseModel):
        return given.model_copy()  # the assessment is put on it
    if isinstance(given, str):
        return _said(request, given, {"model": request.model})
    msg = (
        "expected an answer of the openai package from on_uncertain, or such an answer "
        f"or a text from fallback, got {type(given).__name__}"
    )
    raise ConfigurationError(msg)


def _said(
    request: ApiRequest, text: str, kept: Fields, *, refuses: bool = False
) -> ApiObject:
    """Return an answer that says a text."""
    build = _completion if request.api.name == "chat" else _response
    fields = {"id": f"snne-guard-{uuid.uuid4().hex}", **build(text, refuses=refuses)}
    return request.cast_to.construct(**{**fields, **kept})


def _completion(text: str, *, refuses: bool) -> dict[str, Any]:
    message = {
        "role": "assistant",
        "content": None if refuses else text,
        "refusal": text if refuses else None,
    }
    choice = {"index": 0, "finish_reason": "stop", "logprobs": None, "message": message}
    return {
        "object": "chat.completion",
        "created": int(time.time()),
        "choices": [choice],
    }


def _response(text: str, *, refuses: bool) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": text} if refuses else part],
    }
    return {
        "object": "response",
        "created_at": int(time.time()),
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "output": [message],
    }


# -- A whole answer as a stream --------------------------------------------------------


def parts_of(request: ApiRequest, answer: ApiObject) -> list[Any]:
    """Return what is delivered as the parts of a stream, the last with the assessment.

    Args:
        request: What was asked.
        answer: What ``delivered`` returned.
    """
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
