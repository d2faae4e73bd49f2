"""Reading LangChain messages: text, log-probabilities, why they ended, their cost."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    convert_to_messages,
)
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import PromptValue

from snne_guard.errors import InputError
from snne_guard.sampling.blocks import REASONING_BLOCKS, has_unread
from snne_guard.sampling.collect import Reply
from snne_guard.sampling.langchain_providers import LOGPROB_PATHS
from snne_guard.sampling.reading import (
    REFUSALS,
    as_mapping,
    canonical_calls,
    parsed_arguments,
    read_logprobs,
    without_thinking,
)
from snne_guard.types import Cost, Sample

__all__ = [
    "cost_of",
    "last_question",
    "read_answer",
    "read_message",
    "read_result",
    "to_messages",
    "without_logprobs",
]

M = TypeVar("M", bound=BaseMessage)

_FINISH_KEYS = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_MODEL_KEYS = ("model_name", "model", "model_id")


def to_messages(value: object) -> list[BaseMessage]:
    """Return what a chat model accepts as a list of messages.

    Raises:
        InputError: If it is nothing that a chat model accepts.
    """
    given: Any = value
    if isinstance(value, PromptValue):
        return value.to_messages()
    if isinstance(value, str):
        return [HumanMessage(content=value)]
    if isinstance(value, Sequence):
        return convert_to_messages(given)
    msg = (
        "a guard takes what a chat model takes: a string, a prompt value or a list of "
        f"messages; got {type(value).__name__}"
    )
    raise InputError(msg)


def last_question(messages: Sequence[BaseMessage]) -> str | None:
    """Return the text of the user's last message, None if there is none."""
    for message in reversed(messages):
        if isinstance(message, HumanMessage):
            return str(message.text)
    return None


def read_message(
    message: BaseMessage,
    *,
    info: Mapping[str, Any] | None = None,
    model: str | None = None,
) -> Sample:
    """Return what is compared of a message.

    Args:
        message: The model's reply.
        info: The ``generation_info`` beside it, where several came at once.
        model: Name of the model, where the message does not say.
    """
    metadata = {**(info or {}), **as_mapping(message.response_metadata)}
    text = str(message.text)
    stripped = without_thinking(text)
    finish = _first(metadata, _FINISH_KEYS) or _first(
        as_mapping(metadata.get("incomplete_details")), ("reason",)
    )
    reasoned = _has_reasoning(message)
    logprobs = read_logprobs(
        _entries(metadata), text=stripped, whole=text, reasoned=reasoned
    )
    return Sample(
        text=stripped,
        token_logprobs=logprobs.values,
        tokens=logprobs.tokens,
        finish_reason=finish,
        model=_first(metadata, _MODEL_KEYS) or model,
        tool_calls=_tool_calls(message),
        refused=finish in REFUSALS or _has_refusal(message),
        reasoned=reasoned or stripped != text,
        misaligned=logprobs.misaligned,
        unread=_has_unread(message),
        response_id=_first(metadata, ("id",)),
    )


def read_answer(answer: object) -> tuple[Sample, Cost]:
    """Return what is compared of an answer that is there already, and what it took.

    Raises:
        InputError: If it is neither a message nor a text.
    """
    if isinstance(answer, BaseMessage):
        sample = read_message(answer)
        return sample, cost_of(answer, (sample,))
    if isinstance(answer, str):
        return Sample(text=without_thinking(answer)), Cost()
    msg = f"answer must be an AIMessage or a text, got {type(answer).__name__}"
    raise InputError(msg)


def read_result(result: LLMResult) -> Reply:
    """Return the replies of one request, its usage counted once."""
    output = as_mapping(result.llm_output)
    generations = [
        generation
        for generation in (result.generations[0] if result.generations else [])
        if isinstance(generation, ChatGeneration)
    ]
    samples = tuple(
        read_message(
            generation.message,
            info=generation.generation_info,
            model=_first(output, _MODEL_KEYS),
        )
        for generation in generations
    )
    # Every choice carries the usage of the whole response, so the first one tells all.
    first = generations[0].message if generations else None
    return Reply(samples=samples, cost=cost_of(first, samples))


def cost_of(message: BaseMessage | None, samples: Sequence[Sample]) -> Cost:
    """Return what one answered request took, from the usage on its message.

    Some servers count the tokens of one choice only, which their log-probabilities
    give away, and some count none: the cost is then marked as a lower bound.
    """
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    drawn = sum(len(sample.token_logprobs or ()) for sample in samples)
    if usage is None:
        return Cost(calls=1, completion_tokens=drawn, lower_bound=True)
    if usage.get("total_cost") == 0:
        return Cost()  # LangChain's mark of an answer from its cache: nothing was sent
    written = usage["output_tokens"]
    said = any(sample.text for sample in samples)
    return Cost(
        calls=1,
        prompt_tokens=usage["input_tokens"],
        cached_tokens=usage.get("input_token_details", {}).get("cache_read") or 0,
        completion_tokens=written,
        lower_bound=written < drawn or (not written and said),
    )


def without_logprobs(message: M) -> M:
    """Return the message without the log-probabilities that the guard asked for."""
    if "logprobs" not in message.response_metadata:
        return message
    metadata = {**message.response_metadata}
    del metadata["logprobs"]
    return message.model_copy(update={"response_metadata": metadata})


def _entries(metadata: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = []
    for at in LOGPROB_PATHS:
        entries = entries or _tokens(metadata, at)
    return entries


def _tokens(metadata: Mapping[str, Any], at: Sequence[str]) -> list[dict[str, Any]]:
    """Return what stands in one place, each token with its log-probability."""
    *outer, last = at
    for name in outer:
        metadata = as_mapping(metadata.get(name))
    entries = metadata.get(last)
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return []
    if last == "token_logprobs":  # two lists side by side
        texts = cast("Sequence[object]", metadata.get("tokens") or [])
        pairs = itertools.zip_longest(texts, cast("Sequence[object]", entries))
        return [{"token": token, "logprob": value} for token, value in pairs]
    return [
        entry if isinstance(entry, dict) else _token(entry)
        for entry in cast("Sequence[dict[str, Any] | object]", entries)
    ]


def _token(entry: object) -> dict[str, Any]:
    # Ollama's client has a type of its own for it.
    return as_mapping(entry) or {
        name: getattr(entry, name, None) for name in ("token", "logprob")
    }


def _tool_calls(message: BaseMessage) -> str | None:
    if not isinstance(message, AIMessage):
        return None
    calls: list[tuple[str, object]] = [
        (str(call["name"]), call["args"])
        for call in (*message.tool_calls, *message.invalid_tool_calls)
    ]
    # What functions were before there were tools; some providers write it beside them.
    old = as_mapping(message.additional_kwargs.get("function_call"))
    if old and not calls:
        calls = [(str(old.get("name")), parsed_arguments(old.get("arguments")))]
    return canonical_calls(calls)


def _has_refusal(message: BaseMessage) -> bool:
    if message.additional_kwargs.get("refusal"):
        return True
    return any(block.get("type") == "refusal" for block in _blocks(message))


def _has_reasoning(message: BaseMessage) -> bool:
    if message.additional_kwargs.get("reasoning_content"):
        return True
    return any(block.get("type") in REASONING_BLOCKS for block in _blocks(message))


def _has_unread(message: BaseMessage) -> bool:
    aside = message.additional_kwargs
    if aside.get("audio") or aside.get("images"):
        return True
    # Where langchain-openai once put what is no text.
    return has_unread(message.content) or has_unread(aside.get("tool_outputs"))


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    if isinstance(message.content, str):
        return []
    return [block for block in message.content if isinstance(block, dict)]


def _first(metadata: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, str) and value:
            return value
    return None
