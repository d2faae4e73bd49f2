"""The messages that a guard delivers: an answer with its metadata, or a refusal."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata

from snne_guard.sampling.langchain_messages import without_logprobs
from snne_guard.types import Assessment, Cost

__all__ = [
    "METADATA_KEY",
    "as_chunk",
    "delivered",
    "is_refusal",
    "metadata_chunk",
    "refusal_message",
    "stream_chunk",
    "usage_of",
]

METADATA_KEY = "snne_guard"
"""Where in ``response_metadata`` the assessment of a message is found."""


def delivered(message: BaseMessage, assessment: Assessment) -> AIMessage:
    """Return a copy of the answer that carries its assessment."""
    metadata = {
        **message.response_metadata,
        METADATA_KEY: assessment.to_metadata(),
    }
    if isinstance(message, AIMessage):
        return message.model_copy(update={"response_metadata": metadata})
    return AIMessage(content=message.content, response_metadata=metadata, id=message.id)


def refusal_message(
    text: str, *, answer: BaseMessage, assessment: Assessment
) -> AIMessage:
    """Return the message that stands in for a withheld answer.

    It holds nothing of the answer but its id, the names of model and provider, and
    what it cost.

    Args:
        text: What the application shows instead.
        answer: The answer that is withheld.
        assessment: Its assessment.
    """
    kept = ("model_name", "model", "model_provider")
    metadata = {
        **{
            k: answer.response_metadata[k]
            for k in kept
            if k in answer.response_metadata
        },
        METADATA_KEY: assessment.to_metadata(),
    }
    usage = answer.usage_metadata if isinstance(answer, AIMessage) else None
    options: dict[str, Any] = {"id": answer.id, "usage_metadata": usage}
    message = AIMessage(
        content=text,
        additional_kwargs={"refusal": text},
        response_metadata=metadata,
        **options,
    )
    if not _core_knows_refusals() or _shows_refusal(message):
        return message
    # This provider's messages have no field for it, so the block itself is needed.
    block: dict[str, Any] = {"type": "refusal", "refusal": text}
    return AIMessage(
        content=[{"type": "text", "text": text}, block],
        additional_kwargs={"refusal": text},
        response_metadata={**metadata, "output_version": "v1"},
        **options,
    )


def is_refusal(message: BaseMessage) -> bool:
    """Return whether a message of an earlier turn is a guard's refusal.

    Example:
        >>> is_refusal(AIMessage("Paris"))
        False
    """
    assessment: Any = message.response_metadata.get(METADATA_KEY) or {}
    return bool(assessment.get("decision") == "refuse")


def as_chunk(message: AIMessage) -> AIMessageChunk:
    """Return a whole message as the only chunk of a stream."""
    return AIMessageChunk(
        content=message.content,
        additional_kwargs=message.additional_kwargs,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        id=message.id,
        name=message.name,
        tool_call_chunks=[
            {
                "type": "tool_call_chunk",
                "name": call["name"],
                "args": _dumps(call["args"]),
                "id": call["id"],
                "index": index,
            }
            for index, call in enumerate(message.tool_calls)
        ],
        chunk_position="last",
    )


def stream_chunk(
    chunk: AIMessageChunk, *, keep_logprobs: bool, keep_usage: bool = True
) -> AIMessageChunk:
    """Return a chunk of the answer as the application gets it, never as the last."""
    if not keep_logprobs:
        chunk = without_logprobs(chunk)
    update: dict[str, Any] = {}
    if chunk.chunk_position is not None:
        update["chunk_position"] = None
    if chunk.usage_metadata is not None and not keep_usage:
        update["usage_metadata"] = None
    return chunk.model_copy(update=update) if update else chunk


def metadata_chunk(
    message_id: str | None,
    assessment: Assessment,
    *,
    usage: UsageMetadata | None = None,
) -> AIMessageChunk:
    """Return the last chunk of a streamed answer, which carries the assessment."""
    return AIMessageChunk(
        content="",
        id=message_id,
        response_metadata={METADATA_KEY: assessment.to_metadata()},
        usage_metadata=usage,
        chunk_position="last",
    )


def usage_of(cost: Cost) -> UsageMetadata | None:
    """Return a cost as LangChain counts usage, None where nothing was counted."""
    total = cost.prompt_tokens + cost.completion_tokens
    if not total:
        return None
    usage = UsageMetadata(
        input_tokens=cost.prompt_tokens,
        output_tokens=cost.completion_tokens,
        total_tokens=total,
    )
    if cost.cached_tokens:
        usage["input_token_details"] = {"cache_read": cost.cached_tokens}
    return usage


def _dumps(args: dict[str, Any]) -> str:
    return json.dumps(args, ensure_ascii=False)


def _core_knows_refusals() -> bool:
    from langchain_core.messages import content

    return hasattr(content, "RefusalContentBlock")


def _shows_refusal(message: AIMessage) -> bool:
    kinds: list[str] = [block["type"] for block in message.content_blocks]
    return "refusal" in kinds
