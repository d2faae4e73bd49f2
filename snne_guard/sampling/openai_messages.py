"""Reading what OpenAI's API takes and gives: conversations, replies, what they cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from snne_guard.errors import InputError, SamplingError
from snne_guard.sampling.blocks import REASONING_BLOCKS, has_unread
from snne_guard.sampling.collect import Reply
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
    "Messages",
    "count_characters",
    "last_question",
    "read_completion",
    "read_response",
    "to_items",
]

Messages = str | Sequence[Any]
"""A question, or the messages of a conversation in the API's own form."""

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
_PASSING = frozenset({"server_error", "rate_limit_exceeded"})
"""Codes of failed responses that may not fail a moment later."""


def to_items(messages: object, /) -> list[Any]:
    """Return a question or a conversation as the list that the API takes.

    Raises:
        InputError: If it is neither.

    Example:
        >>> to_items("Capital of France?")
        [{'role': 'user', 'content': 'Capital of France?'}]
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    items = _items(messages)
    if items and all(isinstance(each, Mapping) or _has_fields(each) for each in items):
        return items
    kinds = sorted({type(item).__name__ for item in items})
    got = f"a list of {', '.join(kinds)}" if kinds else repr(type(messages).__name__)
    msg = (
        "messages must be a string or a list of messages such as "
        f'{{"role": "user", "content": "..."}}; got {got}'
    )
    raise InputError(msg)


def last_question(items: Sequence[object]) -> str | None:
    """Return the text of the user's last message, None if there is none."""
    for item in reversed(items):
        message = _fields(item)
        if message.get("role") == "user":
            return _text_of(message.get("content"))
    return None


def count_characters(items: Sequence[object]) -> int:
    """Return the length of a conversation's texts, all messages together."""
    return sum(len(_text_of(_fields(item).get("content"))) for item in items)


def read_completion(completion: object) -> Reply:
    """Return the choices of a chat completion by their index, its usage counted once.

    Args:
        completion: A ``ChatCompletion`` of the ``openai`` package, or its fields.

    Raises:
        SamplingError: If it holds an error in place of choices, as some servers send.
    """
    fields = _fields(completion)
    if not fields.get("choices") and fields.get("error"):
        raise _failed(as_mapping(fields["error"]))
    choices = sorted(map(as_mapping, _items(fields.get("choices"))), key=_index)
    samples = tuple(_read_choice(choice, fields) for choice in choices)
    usage = as_mapping(fields.get("usage"))
    cached = as_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")
    cost = _cost(usage, "prompt_tokens", "completion_tokens", cached, samples)
    return Reply(samples=samples, cost=cost)


def read_response(response: object) -> Reply:
    """Return the reply in a response of the Responses API, and its usage.

    Args:
        response: A ``Response`` of the ``openai`` package, or its fields.

    Raises:
        SamplingError: If the response says that it failed.
    """
    fields = _fields(response)
    if fields.get("status") == "failed":
        raise _failed(as_mapping(fields.get("error")))
    known = isinstance(fields.get("output"), list)
    samples = (_read_output(fields),) if known else ()
    usage = as_mapping(fields.get("usage"))
    cached = as_mapping(usage.get("input_tokens_details")).get("cached_tokens")
    cost = _cost(usage, "input_tokens", "output_tokens", cached, samples)
    return Reply(samples=samples, cost=cost)


def _read_choice(choice: Mapping[str, Any], fields: Mapping[str, Any]) -> Sample:
    message = as_mapping(choice.get("message"))
    whole = _text_of(message.get("content"))
    text = without_thinking(whole)
    # Servers with a reasoning parser put it aside, under one name or the other.
    aside = message.get("reasoning_content") or message.get("reasoning")
    reasoned = bool(aside) or _has_part(message.get("content"), REASONING_BLOCKS)
    finish = _string(choice.get("finish_reason"))
    logprobs = read_logprobs(
        as_mapping(choice.get("logprobs")).get("content"),
        text=text,
        whole=whole,
        reasoned=reasoned,
    )
    return Sample(
        text=text,
        token_logprobs=logprobs.values,
        tokens=logprobs.tokens,
        finish_reason=finish,
        model=_string(fields.get("model")),
        tool_calls=canonical_calls(_chat_calls(message)),
        refused=bool(message.get("refusal")) or finish in REFUSALS,
        reasoned=reasoned or text != whole,
        misaligned=logprobs.misaligned,
        unread=bool(message.get("audio") or message.get("images"))
        or has_unread(message.get("content")),
        response_id=_string(fields.get("id")),
    )


def _chat_calls(message: Mapping[str, Any]) -> list[tuple[str, object]]:
    called: list[tuple[str, object]] = []
    for call in map(as_mapping, _items(message.get("tool_calls"))):
        kind = "custom" if call.get("custom") else "function"
        called.append(_call(as_mapping(call.get(kind))))
    if old := as_mapping(message.get("function_call")):
        called.append(_call(old))
    return called


def _call(call: Mapping[str, Any]) -> tuple[str, object]:
    if "input" in call:  # a tool of the user's own that takes text
        return str(call.get("name")), call["input"]
    return str(call.get("name")), parsed_arguments(call.get("arguments"))


def _read_output(fields: Mapping[str, Any]) -> Sample:
    output = list(map(as_mapping, _items(fields["output"])))
    parts = [
        part
        for item in output
        if item.get("type") == "message"
        for part in map(as_mapping, _items(item.get("content")))
    ]
    whole = _text_of(parts)
    text = without_thinking(whole)
    reasoned = any(item.get("type") in REASONING_BLOCKS for item in output)
    entries = [entry for part in parts for entry in _items(part.get("logprobs"))]
    logprobs = read_logprobs(entries, text=text, whole=whole, reasoned=reasoned)
    details = as_mapping(fields.get("incomplete_details"))
    finish = _string(details.get("reason")) or _string(fields.get("status"))
    calls = [
        _call(item)
        for item in output
        if item.get("type") in {"function_call", "custom_tool_call"}
    ]
    return Sample(
        text=text,
        token_logprobs=logprobs.values,
        tokens=logprobs.tokens,
        finish_reason=finish,
        model=_string(fields.get("model")),
        tool_calls=canonical_calls(calls),
        refused=finish in REFUSALS or _has_part(parts, {"refusal"}),
        reasoned=reasoned or text != whole,
        misaligned=logprobs.misaligned,
        unread=has_unread([*output, *parts]),
        response_id=_string(fields.get("id")),
    )


def _cost(
    usage: Mapping[str, Any],
    read: str,
    written: str,
    cached: object,
    samples: Sequence[Sample],
) -> Cost:
    """Return what an answered request took.

    Some servers count the tokens of one choice only, or none; log-probabilities give
    that away, and the cost is then marked as a lower bound.
    """
    drawn = sum(len(sample.token_logprobs or ()) for sample in samples)
    counted = usage.get(written)
    if not isinstance(counted, int):
        return Cost(calls=1, completion_tokens=drawn, lower_bound=True)
    return Cost(
        calls=1,
        prompt_tokens=_whole(usage.get(read)),
        cached_tokens=_whole(cached),
        completion_tokens=counted,
        lower_bound=counted < drawn,
    )


def _failed(error: Mapping[str, Any]) -> SamplingError:
    code = str(error.get("code"))
    failed = SamplingError(
        f"the provider answered with an error: {code}: {error.get('message')}"
    )
    failed.is_retryable = code in _PASSING
    return failed


def _fields(value: object) -> dict[str, Any]:
    """Return the fields of an object of the ``openai`` package as plain values."""
    dump = getattr(value, "model_dump", None)
    return as_mapping(dump(warnings=False) if callable(dump) else value)


def _has_fields(value: object) -> bool:
    return callable(getattr(value, "model_dump", None))


def _text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = map(as_mapping, _items(content))
    return "".join(
        str(part.get("text") or "") for part in parts if part.get("type") in _TEXT_PARTS
    )


def _has_part(content: object, types: Iterable[str]) -> bool:
    wanted = frozenset(types)
    return any(as_mapping(part).get("type") in wanted for part in _items(content))


def _items(value: object) -> list[object]:
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(cast("Sequence[object]", value))
    return []


def _index(choice: Mapping[str, Any]) -> int:
    return _whole(choice.get("index"))


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _string(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
