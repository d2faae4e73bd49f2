"""Answers as they go out: with the usage of all draws, and without the server's key."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Mapping
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from snne_guard.server.errors import without
from snne_guard.server.replies import event_of
from snne_guard.server.upstream import UpstreamStream, readable

_Chunks = UpstreamStream[ChatCompletionChunk]
_Events = UpstreamStream[ResponseStreamEvent]

ANSWERS: dict[str, tuple[type[Any], type[Any], bytes]] = {
    "/chat/completions": (ChatCompletion, _Chunks, b"data: [DONE]\n\n"),
    "/responses": (Response, _Events, b""),
}
"""Class of an answer, class of its stream, and what ends the stream, by address."""


async def answer_events(
    opening: Awaitable[Any], end: bytes, secret: str | None
) -> AsyncGenerator[bytes]:
    """Yield the parts of an answer as they go out; ``secret`` is the server's key."""
    async with await opening as stream:
        async for part in stream:
            yield event_of(answer_fields(part, secret))
    yield end


def answer_fields(answer: Any, secret: str | None) -> dict[str, Any]:  # noqa: ANN401 - of whatever API
    """Return an answer or a part of one as it goes out."""
    with readable():
        fields: dict[str, Any] = answer.to_dict(mode="json", warnings=False)
    record = fields.get("snne_guard")
    for place in (fields, fields.get("response") or {}):
        if place.get("error"):
            place["error"] = without(secret, place["error"])
        if record is not None:
            _sum_up(place.get("usage"), record)
    return fields


_COUNTED = ("cached_tokens", "completion_tokens", "prompt_tokens", "reasoning_tokens")


def _sum_up(usage: Any, record: Mapping[str, Any]) -> None:  # noqa: ANN401 - upstream's
    """Set the usage of an answer, details included, to that of its model's draws."""
    cost = {**record["cost"]}
    for other in record.get("other_models", {}).values():
        cost |= {name: cost[name] - other.get(name, 0) for name in _COUNTED}
    counts = {name: cost[name] for name in ("cached_tokens", "reasoning_tokens")}
    counts["prompt_tokens"] = counts["input_tokens"] = cost["prompt_tokens"]
    counts["completion_tokens"] = counts["output_tokens"] = cost["completion_tokens"]
    counts["total_tokens"] = cost["prompt_tokens"] + cost["completion_tokens"]
    # The usage on a fallback's answer is its own, which is no part of the cost.
    falls_back = record["decision"] == "fallback"
    for name, count in usage.items() if isinstance(usage, dict) else ():
        if name in counts and isinstance(count, int):
            usage[name] = counts[name] + falls_back * count
        else:
            _sum_up(count, record)
