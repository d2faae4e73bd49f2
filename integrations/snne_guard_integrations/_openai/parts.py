"""Streams as their parts: put together to an answer, or made from one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import openai.types.responses as events
from openai.types.chat import ChatCompletionChunk

from snne_guard_integrations._openai.requests import Post

__all__ = ["Whole", "ends", "parts_of"]

_ONCE = frozenset({"finish_reason", "id", "name", "role", "type"})
"""Fields of a delta that say the same each time; texts of all others are joined."""
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed"})


def ends(part: Any) -> bool:  # noqa: ANN401 - a chunk, or an event
    """Return whether a part of a stream is its last one, or comes after the text."""
    if getattr(part, "type", None) in _LAST:
        return True
    choices = getattr(part, "choices", None)
    if choices:
        return all(choice.finish_reason for choice in choices)
    # Without choices it has the usage; at Azure also the filter's word on the prompt.
    return choices is not None and part.usage is not None


class Whole:
    """A streamed answer, as much of it as has come."""

    def __init__(self) -> None:
        self._fields: dict[str, Any] = {}
        self._choice: dict[str, Any] = {"message": {"role": "assistant", "content": ""}}
        self._response: Any = None

    def add(self, part: Any) -> None:  # noqa: ANN401 - a chunk, or an event
        """Take in the next part."""
        if getattr(part, "choices", None) is None:
            self._response = getattr(part, "response", self._response)
            return
        fields: dict[str, Any] = part.model_dump(warnings=False)
        for choice in fields.pop("choices"):
            if not choice.get("index"):
                _merge(self._choice["message"], choice.pop("delta", None) or {})
                _merge(self._choice, choice)
        self._fields |= {n: value for n, value in fields.items() if value is not None}

    @property
    def answer(self) -> Any:  # noqa: ANN401 - what a guard reads
        """The answer: a ``Response``, or the fields of a completion."""
        if self._response is not None:
            return self._response
        return {**self._fields, "choices": [self._choice], "output": []}


def _merge(into: dict[str, Any], new: Mapping[str, Any]) -> None:
    for name, value in new.items():
        old = into.get(name)
        if value is None:
            continue
        if isinstance(value, dict) and isinstance(old, dict):
            _merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value))
        elif isinstance(value, list):
            into[name] = _joined(old or [], cast("Sequence[Any]", value))
        elif isinstance(value, str) and isinstance(old, str) and name not in _ONCE:
            into[name] = old + value
        else:
            into[name] = value


def _joined(old: list[Any], new: Sequence[Any]) -> list[Any]:
    """Return two lists as one; what has the same ``index`` is one thing in pieces."""
    found = list(old)
    for each in new:
        index = _index(each)
        same = [one for one in found if index is not None and _index(one) == index]
        if same:
            _merge(same[0], each)
        else:
            found.append(each)
    return found


def _index(value: Any) -> Any:  # noqa: ANN401 - whatever a server sends
    return (
        cast("dict[str, Any]", value).get("index") if isinstance(value, dict) else None
    )


def parts_of(post: Post, answer: Any) -> Iterator[Any]:  # noqa: ANN401 - any of the API's objects
    """Yield an answer that is whole as the parts of a stream.

    Args:
        post: What was asked.
        answer: A completion, or a response.
    """
    return _chunks(post, answer) if post.api == "chat" else _events(answer)


def _chunks(post: Post, completion: Any) -> Iterator[Any]:  # noqa: ANN401 - parsed or not
    make: Any = ChatCompletionChunk.construct
    fields: dict[str, Any] = completion.to_dict(warnings=False)
    usage, (choice, *_) = fields.pop("usage", None), fields.pop("choices")
    delta = {name: value for name, value in choice["message"].items() if value}
    delta.pop("parsed", None)
    if calls := delta.get("tool_calls"):
        delta["tool_calls"] = [{**call, "index": i} for i, call in enumerate(calls)]
    head = {**fields, "object": "chat.completion.chunk"}
    start = {"index": 0, "delta": delta, "finish_reason": None}
    yield make(**head, choices=[start])
    finish: dict[str, Any] = {**start, "delta": {}}
    yield make(**head, choices=[{**finish, "finish_reason": choice["finish_reason"]}])
    if post.counts and usage is not None:
        yield make(**head, choices=[], usage=usage)


def _events(response: Any) -> Iterator[Any]:  # noqa: ANN401 - parsed or not
    fields: dict[str, Any] = response.to_dict(warnings=False)
    begun: dict[str, Any] = {**fields, "status": "in_progress", "output": []}
    makers = list(_event_fields(fields, begun))
    for number, (kind, event) in enumerate(makers):
        yield kind.construct(**event, sequence_number=number)


def _event_fields(
    fields: Mapping[str, Any], begun: Mapping[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    yield (
        events.ResponseCreatedEvent,
        {"type": "response.created", "response": begun},
    )
    for place, item in enumerate(fields["output"]):
        yield from _item_events(place, item)
    yield (
        events.ResponseCompletedEvent,
        {"type": "response.completed", "response": dict(fields)},
    )


def _item_events(
    place: int, item: Mapping[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    at = {"output_index": place}
    contents = item.get("content") if item.get("type") == "message" else None
    started = {**item, "status": "in_progress"}
    if contents is not None:
        started["content"] = []
    yield (
        events.ResponseOutputItemAddedEvent,
        {"type": "response.output_item.added", "item": started, **at},
    )
    for number, part in enumerate(contents or ()):
        where = {**at, "content_index": number, "item_id": item.get("id")}
        yield from _text_events(part, where)
    yield (
        events.ResponseOutputItemDoneEvent,
        {"type": "response.output_item.done", "item": dict(item), **at},
    )


def _text_events(
    part: Mapping[str, Any], where: Mapping[str, Any]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    refuses = part["type"] == "refusal"
    name = "refusal" if refuses else "text"
    text = part[name]
    stem = "response.refusal" if refuses else "response.output_text"
    delta, done = (
        (events.ResponseRefusalDeltaEvent, events.ResponseRefusalDoneEvent)
        if refuses
        else (events.ResponseTextDeltaEvent, events.ResponseTextDoneEvent)
    )
    extra: dict[str, Any] = {} if refuses else {"logprobs": []}
    empty = {**part, name: ""}
    yield (
        events.ResponseContentPartAddedEvent,
        {"type": "response.content_part.added", "part": empty, **where},
    )
    yield delta, {"type": f"{stem}.delta", "delta": text, **where, **extra}
    yield done, {"type": f"{stem}.done", name: text, **where, **extra}
    yield (
        events.ResponseContentPartDoneEvent,
        {"type": "response.content_part.done", "part": dict(part), **where},
    )
