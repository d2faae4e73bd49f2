"""What stands in the place of an answer, and the assessment that each one carries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from openai import BaseModel

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.openai import ApiObject, ApiRequest
from snne_guard.sampling.options import asks_for_schema

__all__ = ["RefusalAs", "answer_of", "attach", "parse", "refusal_of"]

Fields = Mapping[str, Any]
RefusalAs = Literal["content", "refusal"]
"""Where a refusal stands: it is what the message says, or its ``refusal``."""

# Not its id, by which the provider may give out what it has stored.
_KEPT_OF_COMPLETION = ("created", "model", "usage", "service_tier")
"""Fields of a completion that do not tell what it says."""
_KEPT_OF_RESPONSE = (
    *("created_at", "model", "usage", "service_tier", "instructions"),
    *("tools", "tool_choice", "parallel_tool_calls", "temperature", "top_p"),
)
"""Fields of a response that do not."""


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
    head = {"id": f"snne-guard-{uuid.uuid4().hex}"}
    # Where JSON was asked for, the text would not fit.
    refuses = place == "refusal" or asks_for_schema(request.body)
    if request.api.name == "chat":
        kept = {name: fields[name] for name in _KEPT_OF_COMPLETION if name in fields}
        return _completion(request, text, head | kept, refuses=refuses)
    kept = {name: fields[name] for name in _KEPT_OF_RESPONSE if name in fields}
    return _response(request, text, head | kept, refuses=refuses)


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
            "expected an answer of the openai package from on_uncertain, or such an "
            f"answer or a text from fallback, got {type(given).__name__}"
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
    part = {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
    message = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "refusal", "refusal": text} if refuses else part],
    }
    completed = {"object": "response", "status": "completed", "error": None}
    return request.cast_to.construct(
        **{**fields, **completed, "incomplete_details": None, "output": [message]}
    )
