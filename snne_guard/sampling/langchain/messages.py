"""LangChain messages as samples: where each provider's class puts what it says."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import BaseModel, ValidationError

from snne_guard.sampling.reading import (
    items_of,
    mapping_of,
    read_cost,
    read_sample,
    string_of,
)
from snne_guard.self_check import read_self_check
from snne_guard.types import Cost, Sample

__all__ = [
    "as_chunk",
    "cost_of",
    "question_of",
    "sample_of",
    "self_check_of",
    "whole_message",
    "with_parsed",
    "without_logprobs",
]

M = TypeVar("M", bound=BaseMessage)

_MODEL_KEYS = ("model_name", "model", "model_id")
_ENDING_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "status")

_READABLE_BLOCKS = frozenset(
    {
        *("refusal", "text"),
        *("reasoning", "reasoning_content", "redacted_thinking", "thinking"),
        # Where something comes from.
        *("citation", "reference"),
    }
)
"""Types of content blocks that hold no part of an answer besides its text.

Blocks of the provider's own tools are missing: such calls draw no samples.
"""

_CALL_BLOCKS = frozenset(
    {
        *("custom_tool_call", "function_call", "function_call_signature"),
        *("input_json_delta", "invalid_tool_call", "tool_call", "tool_call_chunk"),
        "tool_use",
    }
)
"""Types of content blocks for calls, which stand in ``tool_calls`` too."""


def question_of(messages: Sequence[BaseMessage]) -> str | None:
    """Return the text of the last human message, None if there is none.

    Example:
        >>> question_of([HumanMessage("The capital of France?"), AIMessage("Paris")])
        'The capital of France?'
    """
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return str(message.text)
    return None


def is_refusal(message: BaseMessage) -> bool:
    """Return whether a guard put a refusal in place of the model's answer.

    Example:
        >>> is_refusal(AIMessage("Paris"))
        False
    """
    record = mapping_of(message.response_metadata.get("snne_guard"))
    from_fallback = mapping_of(record.get("fallback"))
    return "refuse" in {record.get("decision"), from_fallback.get("decision")}


def sample_of(message: BaseMessage, *, reports_finish_reason: bool = False) -> Sample:
    """Return what is compared of a message.

    The text is what an application gets as text. Reasoning in blocks of its own, or in
    ``<think>`` tags at the very start, is no part of it.

    Args:
        message: The model's reply, with the metadata of its generation.
        reports_finish_reason: Whether the provider always says how a reply ended. Then
            a reply that says nothing counts as truncated, as does one whose key has no
            value; else it counts as complete, as those of fake models do.

    Example:
        >>> cut = AIMessage("Paris", response_metadata={"finish_reason": "length"})
        >>> sample_of(cut).truncated
        True
    """
    metadata = message.response_metadata
    incomplete = mapping_of(metadata.get("incomplete_details"))
    reports_finish_reason = (
        reports_finish_reason
        or metadata.get("done") is False  # Ollama, which breaks off without a reason
        or any(key in metadata for key in _ENDING_KEYS)
    )
    extra = message.additional_kwargs
    # langchain-openai's first output version keeps there what is no text or call.
    blocks = [*_blocks(message.content), *_blocks(extra.get("tool_outputs"))]
    calls = _tool_calls(message)
    readable = _READABLE_BLOCKS | _CALL_BLOCKS if calls else _READABLE_BLOCKS
    return read_sample(
        text=str(message.text),
        finish_reason=string_of(incomplete.get("reason"))
        or _first_string(metadata, _ENDING_KEYS),
        logprobs=_logprob_entries(metadata.get("logprobs")),
        calls=calls,
        refusal=is_refusal(message)  # which was not drawn from the model
        or bool(extra.get("refusal"))
        or any(block.get("type") == "refusal" for block in blocks),
        other_content=bool(extra.get("audio") or extra.get("images"))
        or any(_is_unread(block, readable) for block in blocks),
        complete_if_unsaid=not reports_finish_reason,
        model=_first_string(metadata, _MODEL_KEYS),
        response_id=string_of(metadata.get("id")),
    )


def self_check_of(message: BaseMessage, reply: Sample) -> float | None:
    """Return the probability that the reply to a self-check says Yes, if it says."""
    entries = _logprob_entries(message.response_metadata.get("logprobs"))
    return read_self_check(reply, entries)


def cost_of(
    message: BaseMessage | None,
    samples: Sequence[Sample],
    llm_output: Mapping[str, Any] | None = None,
) -> Cost:
    """Return the tokens of one request.

    Args:
        message: One of its replies: each carries the usage of the whole request.
        samples: All of its replies.
        llm_output: Of the ``ChatResult``; read where the message has no usage.

    Example:
        >>> usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
        >>> cost_of(AIMessage("Paris", usage_metadata=usage), ()).completion_tokens
        4
    """
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    if usage is None:
        counted = mapping_of(mapping_of(llm_output).get("token_usage"))
        return read_cost(
            samples,
            read=counted.get("prompt_tokens"),
            cached=0,
            written=counted.get("completion_tokens"),
            reasoning=None,
        )
    return read_cost(
        samples,
        read=usage["input_tokens"],
        cached=usage.get("input_token_details", {}).get("cache_read"),
        written=usage["output_tokens"],
        reasoning=usage.get("output_token_details", {}).get("reasoning"),
    )


def whole_message(generation: ChatGeneration, result: ChatResult) -> BaseMessage:
    """Return a reply with all its metadata on the message, as ``invoke`` does."""
    metadata = {
        **(result.llm_output or {}),
        **(generation.generation_info or {}),
        **generation.message.response_metadata,
    }
    return generation.message.model_copy(update={"response_metadata": metadata})


def as_chunk(message: BaseMessage) -> ChatGenerationChunk:
    """Return a whole message as the only chunk of a stream."""
    fields = {**dict(message), "type": "AIMessageChunk", "chunk_position": "last"}
    return ChatGenerationChunk(message=AIMessageChunk(**fields))


def with_parsed(message: BaseMessage, schema: type[BaseModel] | None) -> BaseMessage:
    """Attach the parsed reply where the parser of ``ChatOpenAI`` expects it."""
    if schema is None:
        return message
    try:
        parsed = schema.model_validate_json(str(message.text))
    except ValidationError:
        return message
    extra = {**message.additional_kwargs, "parsed": parsed}
    return message.model_copy(update={"additional_kwargs": extra})


def without_logprobs(message: M) -> M:
    """Return the message without log-probabilities in its metadata.

    Example:
        >>> paris = AIMessage("Paris", response_metadata={"logprobs": {"content": []}})
        >>> without_logprobs(paris).response_metadata
        {}
    """
    if "logprobs" not in message.response_metadata:
        return message
    metadata = {**message.response_metadata}
    del metadata["logprobs"]
    return message.model_copy(update={"response_metadata": metadata})


def _tool_calls(message: BaseMessage) -> list[tuple[object, object]]:
    if not isinstance(message, AIMessage):
        return []
    given = [*message.tool_calls, *message.invalid_tool_calls]
    if given and not message.tool_calls and str(message.text).strip():
        return []  # what the application takes for the answer is the text
    calls: list[tuple[object, object]] = [
        (call["name"], call["args"]) for call in given
    ]
    # What functions were before there were tools; Gemini writes it beside them.
    old = mapping_of(message.additional_kwargs.get("function_call"))
    if old and not calls:
        calls = [(old.get("name"), old.get("arguments"))]
    return calls


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    """Yield content blocks, those out of LangChain's wrapper for unknown ones too."""
    for block in items_of(content):
        if isinstance(block, Mapping):
            inner = block.get("value")
            wrapper = block.get("type") == "non_standard"
            yield inner if wrapper and isinstance(inner, Mapping) else block


def _is_unread(block: Mapping[str, Any], readable: frozenset[str]) -> bool:
    """Return whether a part of the answer may be in what is neither text nor call."""
    kind = block.get("type")
    if not kind:
        return not block.keys() <= {"id", "index"}  # what ends a block of a stream
    return str(kind) not in readable


def _logprob_entries(logprobs: object) -> object:
    """Return log-probabilities in OpenAI's form, wherever a provider puts them."""
    if isinstance(logprobs, Mapping):
        if "token_logprobs" in logprobs:  # Together: two lists side by side
            pairs = itertools.zip_longest(
                logprobs.get("tokens") or [], logprobs["token_logprobs"] or []
            )
            return [{"token": token, "logprob": value} for token, value in pairs]
        return logprobs.get("content")
    if isinstance(logprobs, list):  # Ollama, whose client may have a type for them
        return [
            entry if isinstance(entry, Mapping) else _attributes(entry)
            for entry in logprobs
        ]
    return None


def _attributes(entry: object) -> dict[str, Any]:
    return {name: getattr(entry, name, None) for name in ("token", "logprob")}


def _first_string(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next(filter(None, (string_of(metadata.get(key)) for key in keys)), None)
