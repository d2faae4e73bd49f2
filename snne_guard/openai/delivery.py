"""What an application gets: an answer, or what stands in its place."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from openai import BaseModel

from snne_guard.engine import Outcome, asks_for_schema
from snne_guard.errors import ConfigurationError
from snne_guard.openai.apis import ApiObject
from snne_guard.openai.request import ApiRequest

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
    """Return the application's answer, with the assessment on it.

    The outcome's replacement is what the fallback gave, where that is to answer.

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
    """Return the text in place of a withheld answer; it says nothing of it.

    Where JSON was asked for, the text is the message's ``refusal``, as when OpenAI's
    models refuse, so that ``parse`` gives no parsed object instead of failing.
    """
    fields = withheld.to_dict(warnings=False)
    kept = {name: fields[name] for name in _KEPT if name in fields}
    refuses = place == "refusal" or asks_for_schema(request.body)
    return _said(request, text, kept, refuses=refuses)


def _given(request: ApiRequest, given: object) -> ApiObject:
    """Return the result of a fallback or ``on_uncertain`` as an answer of the API."""
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
