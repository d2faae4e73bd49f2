"""What a reply of any provider says: text, calls, how it ended, log-probabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from snne_guard.cost import Cost
from snne_guard.engine.vocabulary import (
    BESIDE_TEXT,
    COMPLETE,
    REFUSED,
    SOURCES,
    TEXTS,
    WRAPPERS,
)
from snne_guard.similarity.json_values import repeats_key, unfenced
from snne_guard.text import is_visible, without_reasoning
from snne_guard.types import Reply


def read_reply(
    *,
    text: str,
    finish_reason: str | None,
    logprobs: object = None,
    calls: Sequence[tuple[object, object]] = (),
    refusal: bool = False,
    other_content: bool = False,
    complete_if_unsaid: bool = False,
    model: str | None = None,
    response_id: str | None = None,
) -> Reply:
    """Return the parts of a reply that are compared.

    Args:
        text: What it says, a reasoning block at the start included.
        finish_reason: The provider's word for why it ended.
        logprobs: Log-probabilities of its tokens, as for ``read_logprobs``.
        calls: Name and arguments of each tool call.
        refusal: Whether the provider marks it as a refusal.
        other_content: Whether it holds more than text and calls, such as an image.
        complete_if_unsaid: Whether a reply without a finish reason is complete.
        model: Name of the model that gave it.
        response_id: The provider's id of the reply, another for each of a response.
    """
    text = without_reasoning(text)
    visible = is_visible(text)
    values, tokens = read_logprobs(logprobs, text=text)
    tool_calls = canonical_calls(calls)
    refused = refusal or is_refused(finish_reason)
    complete = is_complete(finish_reason) if finish_reason else complete_if_unsaid
    shown = visible and not _NOTHING.fullmatch(text)  # by a page
    empty = tool_calls is None and not refused and not shown
    unread_call = tool_calls is None and (finish_reason or "").lower() in _CALLING
    return Reply(
        text=text,
        token_logprobs=values,
        tokens=tokens,
        finish_reason=finish_reason,
        truncated=not complete and not refused,
        model=model,
        tool_calls=tool_calls,
        refused=refused,
        unreadable=empty
        or other_content
        or unread_call
        or repeats_key(text)
        or not all(_is_readable(name, given) for name, given in calls),
        response_id=response_id,
    )


_DETAILS = ("input_token_details", "output_token_details")
_CACHE_WRITES = (
    *("cache_creation", "cache_write_tokens"),
    *("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens"),  # of Anthropic
)


def read_cost(replies: Sequence[Reply], usage: object) -> Cost:
    """Return the cost of one request, whatever number of replies it brought.

    Counts have the names of OpenAI or of LangChain. Some servers count one reply
    only, or none: the cost is a lower bound then.
    """
    counts: dict[str, Any] = {}
    for name, value in mapping_of(usage).items():
        counts |= value if isinstance(value, Mapping) else {name: value}  # details
    # LangChain counts in them what no other field has: audio, tiers of service.
    sides = {side: mapping_of(mapping_of(usage).get(side)) for side in _DETAILS}
    details = {
        f"{side}.{name}": count
        for side, given in sides.items()
        for name in given
        if name not in {"cache_read", "reasoning"} and (count := _count(given, name))
    }
    least = sum(
        len(reply.token_logprobs or ()) or bool(reply.text) for reply in replies
    )
    read = _count(counts, "prompt_tokens", "input_tokens") or 0
    written = _count(counts, "completion_tokens", "output_tokens")
    total = _count(counts, "total_tokens") or 0
    if read and total > read + (written or 0):
        written = total - read  # xAI and Gemini count their reasoning in it alone
    return Cost(
        calls=1,
        attempts=1,
        prompt_tokens=read,
        cached_tokens=_count(counts, "cached_tokens", "cache_read") or 0,
        cache_creation_tokens=sum(_count(counts, name) or 0 for name in _CACHE_WRITES),
        completion_tokens=least if written is None else written,
        reasoning_tokens=_count(counts, "reasoning_tokens", "reasoning") or 0,
        lower_bound=written is None or written < least,
        details=details,
    )


_TOO_MANY = 10**12
"""No request takes as many tokens; a count of them is an error."""


def _count(counts: Mapping[str, Any], *names: str) -> int | None:
    """Return a count by one of its names, None where the provider does not give it."""
    values = (counts.get(name) for name in names)
    return next((n for n in values if type(n) is int and 0 <= n < _TOO_MANY), None)


# -- Text, calls and endings -----------------------------------------------------------

_CALLING = frozenset({"function_call", "tool_calls", "tool_use"})
"""Endings of a reply that calls something."""

# Comments, empty code blocks and emphasis of nothing: a page shows none of them. Limits
# and possessive repetitions keep the time linear in the text.
_NOTHING = re.compile(
    r"(?:\s|(?><!--.*?-->)|[*_~]{4,}|(?>(`{3,9}|~{3,9})[\w+-]*\s*\1))*+", re.DOTALL
)


def is_complete(finish_reason: str | None) -> bool:
    """Recognise a finish reason by which the model ended the reply itself."""
    return (finish_reason or "").lower() in COMPLETE


def is_refused(finish_reason: str | None) -> bool:
    """Recognise a finish reason by which the provider holds the reply back."""
    # Gemini says "content_filter: SAFETY" where it is asked as OpenAI is.
    return (finish_reason or "").lower().partition(":")[0] in REFUSED


def _is_readable(name: object, arguments: object) -> bool:
    """Recognise a call that says what it calls, and with which arguments."""
    if arguments is None or not (isinstance(name, str) and name):
        return False
    return not (isinstance(arguments, str) and repeats_key(arguments))


def json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a text, fenced or not, None where it is no such."""
    try:
        said = json.loads(unfenced(text))
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


def canonical_calls(calls: Sequence[tuple[object, object]]) -> str | None:
    """Return tool calls, each a name and arguments, as canonical JSON."""
    if not calls:
        return None
    each = [_canonical_call(str(name), args) for name, args in calls]
    return f"[{','.join(sorted(each))}]"  # parallel calls have no order


def _canonical_call(name: str, arguments: object) -> str:
    """Return a call as JSON; arguments that are no JSON stay a text."""
    try:
        read = json.loads(arguments) if isinstance(arguments, str) else arguments
        return _json({"name": name, "args": read})
    except (TypeError, ValueError, RecursionError):  # NaN is no JSON either
        return _json({"name": name, "args": str(arguments)})


def _json(value: object) -> str:
    compact = (",", ":")
    return json.dumps(
        value, sort_keys=True, allow_nan=False, ensure_ascii=False, separators=compact
    )


# -- Values of unknown type ------------------------------------------------------------


def strings_in(value: object) -> list[str]:
    """Return the texts that a value of JSON holds, names of fields left out."""
    found, left = list[str](), [value]
    while left:
        value = left.pop()
        if isinstance(value, str):
            found.append(value)
        elif isinstance(value, Mapping):
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
    return found


def is_given(value: object) -> bool:
    """Recognise a value that is there; an object of empty values only is not."""
    return any(value.values()) if isinstance(value, Mapping) else bool(value)


def kind_of(part: Mapping[str, Any]) -> str | None:
    """Return the type of a part of a message, None where what it says is not read."""
    kind, said = string_of(part.get("type")), part.get("text")
    if said is None:
        return None if kind in TEXTS else kind
    return kind if isinstance(said, str) and kind not in SOURCES else None


def holds_more(fields: Mapping[str, Any], *read: str) -> bool:
    """Look for a field of a message, or of a text in it, that nobody here reads.

    What is in it may be a part of the answer. Numbers and flags are none. The caller
    reads those named in ``read``.
    """
    return any(
        holds_more(value)
        if name in WRAPPERS and isinstance(value, Mapping)
        else is_given(value) and not isinstance(value, int | float)
        for name, value in fields.items()
        if name not in BESIDE_TEXT and name not in read and not name.startswith("__")
    )


def mapping_of(value: object) -> dict[str, Any]:
    """Return a mapping as a dict, an empty one for anything else."""
    return dict(value) if isinstance(value, Mapping) else {}


def items_of(value: object) -> list[Any]:
    """Return a sequence as a list, an empty one for anything else."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return list(value)
    return []


def string_of(value: object) -> str | None:
    """Return a string that is not empty, None for anything else."""
    return value if isinstance(value, str) and value else None


# -- Log-probabilities -----------------------------------------------------------------

# White space, and the marks that tokenizers write for it. Servers that decode tokens
# one by one lose it at their edges, so it is not compared.
_SPACE = re.compile(rb"\s+|\xe2\x96\x81|\xc4\xa0|\xc4\x8a")
_END_MARKS = re.compile(rb"(?:<[^<>]+>){1,3}\Z")  # without a limit: quadratic
_NUMBERS = (float, int)
_LOWEST = -1e9
"""Anything lower is not a log-probability."""
_ROUNDING = 1e-6
"""Largest value above 0 that still counts as a rounding error."""


def read_logprobs(
    entries: object, *, text: str
) -> tuple[tuple[float, ...] | None, tuple[str, ...] | None]:
    """Return the log-probabilities of the tokens that make up a text, and their texts.

    The tokens of a reasoning block before the text, and of a stop string or end mark
    after it, are left out. Tokens that spell another text are of no use: they do not
    say how likely this one is. Values are in nats, at most 0. Both are None where the
    values are missing, positive or not finite, or spell another text; the texts alone
    are None where the provider does not give them. For an empty text, as in a tool
    call, all tokens are taken.

    Example:
        >>> entries = [{"token": "Par", "logprob": -0.5}, {"token": "is", "logprob": 0}]
        >>> read_logprobs(entries, text="Paris")
        ((-0.5, 0.0), ('Par', 'is'))
    """
    if not isinstance(entries, Sequence) or isinstance(entries, str) or not entries:
        return None, None
    values, names = list[float](), list[str]()
    for entry in entries:
        value = entry.get("logprob") if isinstance(entry, dict) else None
        if not isinstance(value, _NUMBERS) or not _LOWEST < value <= _ROUNDING:
            return None, None
        values.append(float(value) if value < 0 else 0.0)
        name = entry.get("token")
        names.append(name if isinstance(name, str) else "")
    if "".join(names) == text:  # nearly always
        return tuple(values), tuple(names)
    if not any(names):  # nothing says what they stand for, so nothing can be checked
        return tuple(values), None
    parts = [*map(_bytes, entries, names)]
    place = _find(parts, text)
    if place is None:
        return None, None
    decoded = [part.decode(errors="replace") for part in parts[place]]
    return tuple(values[place]), tuple(decoded)


def _bytes(token: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a token; OpenAI escapes parts of characters in names."""
    given = token.get("bytes")
    if isinstance(given, Sequence) and given and not isinstance(given, str):
        try:
            return bytes(given)
        except (TypeError, ValueError):
            pass
    return name.encode(errors="replace")


def _find(tokens: Sequence[bytes], text: str) -> slice | None:
    """Return the slice of tokens that makes up a text, None if they spell another."""
    parts = [_SPACE.sub(b"", token) for token in tokens]
    wanted = _SPACE.sub(b"", text.encode(errors="replace"))
    if not wanted:
        return slice(None)
    spelt = b"".join(parts)
    until_mark = _END_MARKS.sub(b"", spelt)
    if spelt.startswith(wanted):
        start = 0
    elif until_mark.endswith(wanted):
        start = len(until_mark) - len(wanted)
    else:
        return None
    # From the first token that reaches into the text to the one that completes it.
    ends = list(accumulate(map(len, parts)))
    first = next(index for index, end in enumerate(ends) if end > start)
    last = next(index for index, end in enumerate(ends) if end >= start + len(wanted))
    return slice(first, last + 1)
