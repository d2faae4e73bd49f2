"""What every reader of replies needs: reasoning, endings, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

__all__ = [
    "canonical_calls",
    "is_complete",
    "is_refused",
    "without_reasoning",
]

_COMPLETE = frozenset(
    {
        "complete",
        "completed",
        "end_turn",
        "eos",
        "eos_token",
        "function_call",
        "stop",
        "stop_sequence",
        "tool_calls",
        "tool_use",
    }
)
_REFUSED = frozenset(
    {
        "blocklist",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "image_safety",
        "prohibited_content",
        "recitation",
        "refusal",
        "safety",
        "spii",
    }
)


def is_complete(finish_reason: str | None) -> bool:
    """Return whether a finish reason says that the model ended the reply itself.

    Example:
        >>> is_complete("stop"), is_complete("length"), is_complete(None)
        (True, False, False)
    """
    return (finish_reason or "").lower() in _COMPLETE


def is_refused(finish_reason: str | None) -> bool:
    """Return whether a finish reason says that the provider holds the reply back.

    Example:
        >>> is_refused("content_filter"), is_refused("stop")
        (True, False)
    """
    return (finish_reason or "").lower() in _REFUSED


def without_reasoning(text: str) -> str:
    """Return a text without a reasoning block at its very start.

    A closing tag anywhere else hides nothing: the application gets all of it.

    Example:
        >>> without_reasoning("<think>France?</think> Paris")
        'Paris'
        >>> without_reasoning("It is not Rome.</think> Paris")
        'It is not Rome.</think> Paris'
    """
    start = text.lstrip()
    if not start.startswith("<think>"):
        return text
    _, closed, rest = start.partition("</think>")
    return rest.lstrip() if closed else text


def canonical_calls(calls: Sequence[tuple[object, object]]) -> str | None:
    """Return tool calls, each a name and arguments, as canonical JSON; None for none.

    Arguments given as the text of JSON are read; what is no JSON stays a text.

    Example:
        >>> canonical_calls([("add", '{"b": 2, "a": 1}')])
        '[{"args":{"a":1,"b":2},"name":"add"}]'
    """
    if not calls:
        return None
    return _json(
        [{"name": str(name), "args": _arguments(args)} for name, args in calls]
    )


def _arguments(arguments: object) -> object:
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
        _json(read)
    except (TypeError, ValueError, RecursionError):  # NaN is no JSON either
        return str(arguments)
    return read


def _json(value: object) -> str:
    compact = (",", ":")
    return json.dumps(
        value, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=compact
    )
