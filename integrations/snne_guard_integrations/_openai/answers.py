"""What an application gets: the answer with its assessment, or a refusal like one."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from snne_guard_integrations._openai.requests import Post

__all__ = ["KEY", "attached", "refused", "said", "stripped"]

KEY = "snne_guard"
"""Name of the attribute that holds the assessment."""

_CHAT = ("id", "object", "created", "model", "usage", "service_tier")
"""Fields of a completion that tell nothing of what the answer says."""
_SAYING = frozenset({"output", "error", "incomplete_details", "status"})
"""Fields of a response that do, or that are about it."""


def attached(answer: Any, record: Mapping[str, Any]) -> Any:  # noqa: ANN401 - any of the API's objects
    """Return an object of the API with the assessment on it."""
    setattr(answer, KEY, dict(record))
    return answer


def stripped(part: Any) -> Any:  # noqa: ANN401 - any of the API's objects
    """Return an object of the API without the log-probabilities that it holds.

    Args:
        part: A completion, a chunk, a response, or an event of its stream.
    """
    for choice in _each(part, "choices"):
        choice.logprobs = None
    response: Any = getattr(part, "response", None) or part
    items = [*_each(response, "output"), getattr(part, "item", None)]
    contents = [content for item in items for content in _each(item, "content")]
    places: list[Any] = [part, getattr(part, "part", None), *contents]
    for each in places:
        if getattr(each, "logprobs", None):
            each.logprobs = []
    return part


def _each(value: object, name: str) -> Iterable[Any]:
    found: list[Any] | None = getattr(value, name, None)
    return found if isinstance(found, list) else ()


def refused(post: Post, answer: Any, text: str) -> Any:  # noqa: ANN401 - any of the API's objects
    """Return what stands in the place of a withheld answer, and holds none of it.

    Args:
        post: What was asked.
        answer: What is withheld; a streamed completion as its fields.
        text: What the application is to show.
    """
    dump: Any = getattr(answer, "to_dict", None)
    fields: dict[str, Any] = dump(warnings=False) if dump else answer
    if post.api == "chat":
        message = {"content": None if post.structured else text, "refusal": text}
        return _made(post, _chat(message, {n: fields.get(n) for n in _CHAT}), answer)
    known = frozenset[str](getattr(answer, "model_fields_set", ())) - _SAYING
    kept = {name: value for name, value in fields.items() if name in known}
    kind = "refusal" if post.structured else "output_text"
    return _made(post, _response({"type": kind, "text": text}, kept), answer)


def said(post: Post, text: str) -> Any:  # noqa: ANN401 - any of the API's objects
    """Return a text of a fallback as the API would have sent it.

    Args:
        post: What was asked.
        text: What is to be said.
    """
    head = {"model": post.body.get("model"), "id": f"snne-guard-{uuid.uuid4().hex}"}
    now = int(time.time())
    if post.api == "chat":
        return _made(post, _chat({"content": text}, {**head, "created": now}), None)
    head |= {"created_at": now, "object": "response", "error": None}
    head |= {"tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    return _made(post, _response({"type": "output_text", "text": text}, head), None)


def _chat(message: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "logprobs": None,
        "message": {"role": "assistant", **message},
    }
    known = {name: value for name, value in fields.items() if value is not None}
    return {**known, "object": "chat.completion", "choices": [choice]}


def _response(part: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    content = dict(part)
    if content["type"] == "refusal":
        content["refusal"] = content.pop("text")
    else:
        content |= {"annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [content],
    }
    return {**fields, "status": "completed", "output": [message]}


def _made(post: Post, fields: Mapping[str, Any], answer: Any) -> Any:  # noqa: ANN401 - any of the API's objects
    made: Any = post.finished(post.given["cast_to"].construct(**fields))
    made._request_id = getattr(answer, "_request_id", None)  # noqa: SLF001 - public, says the package
    return made
