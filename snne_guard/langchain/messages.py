"""The messages that a guard delivers: an answer with its metadata, or a refusal."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_messages import without_logprobs
from snne_guard.types import Assessment, Cost

__all__ = [
    "METADATA_KEY",
    "as_chunk",
    "as_message",
    "as_piece",
    "as_result",
    "delivered",
    "is_refusal",
    "message_of",
    "metadata_chunk",
    "model_names",
    "refusal_message",
    "stream_chunk",
    "usage_of",
]

METADATA_KEY = "snne_guard"
"""Where in ``response_metadata`` the assessment of a message is found."""


def delivered(message: BaseMessage, record: dict[str, Any]) -> AIMessage:
    """Return a copy of a message that carries the record of its assessment.

    The record of a guard within, where a fallback is guarded too, is kept in it.
    """
    inner = message.response_metadata.get(METADATA_KEY)
    if inner is not None:
        record = {**record, "fallback": inner}
    metadata = {**message.response_metadata, METADATA_KEY: record}
    if isinstance(message, AIMessage):
        return message.model_copy(update={"response_metadata": metadata})
    return AIMessage(content=message.content, response_metadata=metadata, id=message.id)


def model_names(message: BaseMessage) -> dict[str, Any]:
    """Return the names of model and provider that a message carries."""
    metadata = message.response_metadata
    return {name: metadata[name] for name in _NAMES if name in metadata}


_NAMES = ("model_name", "model", "model_provider")


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
    metadata = {**model_names(answer), METADATA_KEY: assessment.to_metadata()}
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
    record: Any = message.response_metadata.get(METADATA_KEY)
    while record:
        if record.get("decision") == "refuse":
            return True
        record = record.get("fallback")
    return False


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
            for index, call in enumerate(
                [*message.tool_calls, *message.invalid_tool_calls]
            )
        ],
        chunk_position="last",
    )


def as_piece(given: AIMessage) -> AIMessageChunk:
    """Return what came out of a model's stream as a chunk.

    A model that is told not to stream gives a whole message there.
    """
    return given if isinstance(given, AIMessageChunk) else as_chunk(given)


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


def _dumps(args: dict[str, Any] | str | None) -> str | None:
    # The arguments of an invalid call are the text that could not be read.
    return json.dumps(args, ensure_ascii=False) if isinstance(args, dict) else args


def _core_knows_refusals() -> bool:
    from langchain_core.messages import content

    return hasattr(content, "RefusalContentBlock")


def _shows_refusal(message: AIMessage) -> bool:
    kinds: list[str] = [block["type"] for block in message.content_blocks]
    return "refusal" in kinds


def as_message(value: object) -> AIMessage:
    """Return what a fallback gave as the message that an application expects.

    Raises:
        ConfigurationError: If it is neither a message nor a text or a number.
    """
    if isinstance(value, AIMessage):
        return value
    if isinstance(value, BaseMessage):
        return AIMessage(content=value.content, id=value.id)
    if isinstance(value, str | int | float):
        return AIMessage(content=str(value))
    msg = f"a fallback must give a message or a text; got {type(value).__name__}"
    raise ConfigurationError(msg)


def as_result(message: BaseMessage) -> LLMResult:
    """Return a message as the result of a run."""
    return LLMResult(generations=[[ChatGeneration(message=message)]])


def message_of(result: LLMResult) -> BaseMessage:
    """Return the message of a run's result, as ``invoke`` does."""
    first: Any = result.generations[0][0]
    message: BaseMessage = first.message
    return message
