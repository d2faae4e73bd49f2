"""LangChain messages as samples: text, calls, how they ended, what they took."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from snne_guard.sampling.logprobs import read_logprobs
from snne_guard.sampling.reading import (
    canonical_calls,
    is_complete,
    is_refused,
    without_reasoning,
)
from snne_guard.similarity.tokens import is_visible
from snne_guard.types import Cost, Sample

__all__ = ["cost_of", "question_of", "sample_of", "without_logprobs"]

M = TypeVar("M", bound=BaseMessage)

_ENDING_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason", "status")

_READABLE_BLOCKS = frozenset(
    {
        *("message", "output_text", "refusal", "text"),
        *("reasoning", "reasoning_content", "redacted_thinking", "thinking"),
        # Calls, which are listed in tool_calls too.
        *("custom_tool_call", "function_call", "function_call_signature"),
        *("input_json_delta", "invalid_tool_call", "tool_call", "tool_call_chunk"),
        "tool_use",
        # What tools did at the provider: the text says what they found.
        *("code_execution_result", "code_interpreter_call", "executable_code"),
        *("file_search_call", "function_call_output", "mcp_call", "mcp_list_tools"),
        *("mcp_tool_use", "server_tool_call", "server_tool_call_chunk"),
        *("server_tool_result", "server_tool_use", "tool_result", "web_search_call"),
        # Where something comes from.
        *("annotation", "citation", "citations", "non_standard_annotation"),
        *("reference", "search_result"),
    }
)
"""Types of content blocks that hold no part of an answer besides text and calls."""


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


def sample_of(
    message: BaseMessage, *, names_ending: bool = False, model: str | None = None
) -> Sample:
    """Return what is compared of a message.

    The text is what an application gets as text. Reasoning in blocks of its own, or in
    ``<think>`` tags at the very start, is no part of it.

    Args:
        message: The model's reply, with the metadata of its generation.
        names_ending: Whether the provider always says how a reply ended. One that says
            nothing counts as truncated then, or where the key is there without a value;
            any other counts as complete, as those of fake models do.
        model: Name of the model, where the message does not say.

    Example:
        >>> said = AIMessage("Paris", response_metadata={"finish_reason": "length"})
        >>> sample_of(said).truncated
        True
    """
    metadata = message.response_metadata
    text = without_reasoning(str(message.text))
    ending, named = _ending(metadata)
    calls = _tool_calls(message)
    refused = is_refused(ending) or _has_refusal(message)
    complete = is_complete(ending) if ending else not (named or names_ending)
    said = calls is not None or refused or is_visible(text)
    logprobs, tokens = read_logprobs(_logprob_entries(metadata), text=text)
    return Sample(
        text=text,
        token_logprobs=logprobs,
        tokens=tokens,
        finish_reason=ending,
        truncated=not complete and not refused,
        model=_first_text(metadata, ("model_name", "model", "model_id")) or model,
        tool_calls=calls,
        refused=refused,
        unreadable=not said or _has_unread_content(message),
        response_id=_first_text(metadata, ("id",)),
    )


def cost_of(
    message: BaseMessage | None,
    samples: Sequence[Sample],
    llm_output: Mapping[str, Any] | None = None,
) -> Cost:
    """Return the tokens of one request, whatever number of replies it brought.

    Args:
        message: One of its replies: each carries the usage of the whole request.
        samples: All of its replies. Where they have more tokens than the usage says,
            the server counted one reply only, and the cost is a lower bound.
        llm_output: Of the ``ChatResult``; read where the message has no usage.

    Example:
        >>> usage = {"input_tokens": 9, "output_tokens": 4, "total_tokens": 13}
        >>> cost_of(AIMessage("Paris", usage_metadata=usage), ()).completion_tokens
        4
    """
    drawn = sum(
        len(sample.token_logprobs or ()) or bool(sample.text) for sample in samples
    )
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    counted = _mapping(_mapping(llm_output).get("token_usage"))
    if usage is not None:
        read, written = usage["input_tokens"], usage["output_tokens"]
        cached = usage.get("input_token_details", {}).get("cache_read") or 0
    else:
        read = counted.get("prompt_tokens") or 0
        written, cached = counted.get("completion_tokens") or 0, 0
    known = usage is not None or bool(counted)
    return Cost(
        prompt_tokens=max(0, read),
        cached_tokens=max(0, cached),
        completion_tokens=max(0, written) if known else drawn,
        lower_bound=not known or written < drawn or read < 0,
    )


def without_logprobs(message: M) -> M:
    """Return the message without log-probabilities in its metadata.

    Example:
        >>> said = AIMessage("Paris", response_metadata={"logprobs": {"content": []}})
        >>> without_logprobs(said).response_metadata
        {}
    """
    if "logprobs" not in message.response_metadata:
        return message
    metadata = {**message.response_metadata}
    del metadata["logprobs"]
    return message.model_copy(update={"response_metadata": metadata})


def _ending(metadata: Mapping[str, Any]) -> tuple[str | None, bool]:
    """Return why a reply ended, and whether there is a key that should say so."""
    ending = _first_text(_mapping(metadata.get("incomplete_details")), ("reason",))
    ending = ending or _first_text(metadata, _ENDING_KEYS)
    return ending, any(key in metadata for key in _ENDING_KEYS)


def _tool_calls(message: BaseMessage) -> str | None:
    """Return the calls of a message as canonical JSON, None where there are none."""
    if not isinstance(message, AIMessage):
        return None
    calls: list[tuple[object, object]] = [
        (call["name"], call["args"])
        for call in (*message.tool_calls, *message.invalid_tool_calls)
    ]
    # What functions were before there were tools; Gemini writes it beside them.
    old = _mapping(message.additional_kwargs.get("function_call"))
    if old and not calls:
        calls = [(old.get("name"), old.get("arguments"))]
    return canonical_calls(calls)


def _has_refusal(message: BaseMessage) -> bool:
    if message.additional_kwargs.get("refusal"):
        return True
    blocks = map(_standard, _blocks(message.content))
    return any(block.get("type") == "refusal" for block in blocks)


def _has_unread_content(message: BaseMessage) -> bool:
    """Return whether a part of the answer may be in what is neither text nor call."""
    aside = message.additional_kwargs
    if aside.get("audio") or aside.get("images"):
        return True
    # Where langchain-openai puts what is no text in its first output version.
    blocks = itertools.chain(
        _blocks(message.content), _blocks(aside.get("tool_outputs"))
    )
    return any(map(_is_unread, blocks))


def _is_unread(block: Mapping[str, Any]) -> bool:
    block = _standard(block)
    kind = block.get("type")
    if kind == "code_interpreter_call":
        outputs = _blocks(block.get("outputs"))
        return any(output.get("type") == "image" for output in outputs)
    if isinstance(kind, str) and kind:
        return kind not in _READABLE_BLOCKS and not kind.endswith("_tool_result")
    return not block.keys() <= {"id", "index"}  # what ends a block of a stream


def _standard(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is inside of LangChain's wrapper for blocks that it does not know."""
    inner = block.get("value")
    if block.get("type") == "non_standard" and isinstance(inner, Mapping):
        return inner
    return block


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, list | tuple):
        yield from (block for block in content if isinstance(block, Mapping))


def _logprob_entries(metadata: Mapping[str, Any]) -> object:
    """Return log-probabilities in OpenAI's form, wherever a provider puts them."""
    found = metadata.get("logprobs")
    if isinstance(found, Mapping):
        if "token_logprobs" in found:  # Together: two lists side by side
            pairs = itertools.zip_longest(
                found.get("tokens") or [], found["token_logprobs"] or []
            )
            return [{"token": token, "logprob": value} for token, value in pairs]
        return found.get("content")
    if isinstance(found, list):  # Ollama, whose client may have a type for them
        return [
            entry if isinstance(entry, Mapping) else _attributes(entry)
            for entry in found
        ]
    return None


def _attributes(entry: object) -> dict[str, Any]:
    return {name: getattr(entry, name, None) for name in ("token", "logprob")}


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_text(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    values = (metadata.get(key) for key in keys)
    return next((value for value in values if isinstance(value, str) and value), None)
