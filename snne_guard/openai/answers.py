"""What stands in the place of an answer, and the assessment that each one carries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from openai import BaseModel

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.openai.apis import ApiObject
from snne_guard.sampling.openai.sender import ApiRequest
from snne_guard.sampling.options import asks_for_schema

__all__ = ["RefusalAs", "answer_of", "attach", "parse", "refusal_of"]

Fields = Mapping[str, Any]
RefusalAs = Literal["content", "refusal"]
"""Where a refusal stands: it is what the message says, or its ``refusal``."""

_KEPT = ("created", "created_at", "model", "service_tier", "usage")
"""Fields of an answer that do not tell what it says.

Its id is none of them: by that the provider may give out what it has stored.
"""


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


def refusal_of(
    request: ApiRequest, raw: object, text: str, *, place: RefusalAs = "content"
) -> ApiObject:
    """Return what stands in the place of a withheld answer; it says nothing of it.

    Where JSON was asked for, the text is the message's ``refusal``, as when OpenAI's
    models refuse, so that ``parse`` gives no parsed object instead of failing.

    Args:
        request: What was asked.
        raw: The withheld answer.
        text: What the application is to show.
        place: Where it stands if no JSON was asked for.
    """
    fields = raw.to_dict(warnings=False) if isinstance(raw, BaseModel) else {}
    kept = {name: fields[name] for name in _KEPT if name in fields}
    # Where JSON was asked for, the text would not fit.
    refuses = place == "refusal" or asks_for_schema(request.body)
    return _said(request, text, kept, refuses=refuses)


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
            "expected a completion or response of the openai package, or a text from "
            f"fallback, got {type(given).__name__}"
        )
        raise ConfigurationError(msg)
    return _said(request, given, {"model": request.model})


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
