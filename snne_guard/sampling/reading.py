"""What every reader of replies shares: log-probabilities, reasoning, tool calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, TypeGuard, cast

from snne_guard.errors import InputError
from snne_guard.similarity import canonical_json

__all__ = [
    "REFUSALS",
    "Logprobs",
    "as_mapping",
    "canonical_calls",
    "parsed_arguments",
    "read_logprobs",
    "spell",
    "without_thinking",
]

REFUSALS = frozenset(
    {
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "RECITATION",
        "SAFETY",
        "SPII",
        "content_filter",
        "content_filtered",
        "guardrail_intervened",
        "refusal",
    }
)
"""What providers call the end of a reply that they hold back or refuse."""

# Models served without a reasoning parser put it in front of the text; where the
# opening tag is part of their prompt, only the closing one is there.
_THINK = re.compile(r"\A(?:\s*<think>.*?(?:</think>\s*|\Z)|.*?</think>\s*)", re.DOTALL)

# White space, and the marks that tokenizers write for it. Servers that decode tokens
# one by one lose it at their edges.
_SPACE = re.compile(rb"\s+|\xe2\x96\x81|\xc4\xa0|\xc4\x8a")
_END_MARKS = re.compile(rb"(<[^<>]+>)*\Z")
_LOST = "\N{REPLACEMENT CHARACTER}".encode()
"""What such servers write for a part of a character."""


_ROUNDED = 1e-6
"""Above 0 by no more than this is rounding; NaN is not below it."""


class Logprobs(NamedTuple):
    """The log-probabilities of a reply's tokens.

    Attributes:
        values: In nats, None where there are none that can be used.
        misaligned: Whether there are some, but of other tokens than the text's.
        tokens: The text of each token, U+FFFD for a part of a character; None where
            the provider does not say any.
    """

    values: tuple[float, ...] | None
    misaligned: bool = False
    tokens: tuple[str, ...] | None = None


def without_thinking(text: str) -> str:
    """Return a text without the reasoning that stands before it in tags.

    Example:
        >>> without_thinking("<think>France?</think> Paris")
        'Paris'
    """
    # Looked for first: almost no reply has any, and the pattern is slow to say so.
    return _THINK.sub("", text, count=1) if "think>" in text else text


def read_logprobs(
    entries: object, *, text: str, whole: str = "", reasoned: bool = False
) -> Logprobs:
    """Return the log-probabilities of the tokens that a text is made of.

    Tokens that go on behind the text are left out (a stop string, the end of the
    turn), and so is reasoning before it. Where the tokens make up another text, or
    only a part of this one, none is used: they do not say how likely this one is.

    Args:
        entries: Mappings with ``token``, ``logprob`` and perhaps ``bytes``, in the
            form of OpenAI's ``logprobs.content``.
        text: What the reply says. Empty: all tokens are taken (calls of tools).
        whole: The text with the reasoning that stood in it, where some did.
        reasoned: Whether there is reasoning besides, whose tokens may be listed too.

    Example:
        >>> entries = [{"token": "Par", "logprob": -0.5}, {"token": "is", "logprob": 0}]
        >>> read_logprobs(entries, text="Paris").values
        (-0.5, 0.0)
        >>> read_logprobs(entries, text="Rome")
        Logprobs(values=None, misaligned=True, tokens=None)
    """
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        return Logprobs(None)
    # Every token of every reply passes here, so nothing is called for each of them.
    tokens: list[dict[str, Any]] = [
        entry if isinstance(entry, dict) else as_mapping(entry)
        for entry in cast("Sequence[dict[str, Any] | object]", entries)
    ]
    values = [token.get("logprob") for token in tokens]
    if not values or not _are_logprobs(values):
        return Logprobs(None)
    named = [token.get("token") for token in tokens]
    said = [name if isinstance(name, str) else "" for name in named]
    joined = "".join(said)
    if joined == text:  # as nearly always
        return Logprobs(tuple(map(float, values)), tokens=_told(said))
    place = _place(tokens, joined, text, whole=whole or text, reasoned=reasoned)
    if place is None:
        return Logprobs(None, misaligned=True)
    said = [_bytes_of(token).decode(errors="replace") for token in tokens[place]]
    return Logprobs(tuple(map(float, values[place])), tokens=_told(said))


def spell(tokens: Sequence[str], text: str) -> bool:
    r"""Return whether tokens make up a text and nothing else, but for white space.

    Example:
        >>> spell(("Par", "is", ".\n"), "Paris."), spell(("Par", "is."), "Paris")
        (True, False)
    """
    said, wanted = (
        _without_space(each.encode(errors="replace"))
        for each in ("".join(tokens), text)
    )
    return said == wanted


def canonical_calls(calls: Sequence[tuple[str, object]]) -> str | None:
    """Return calls of tools, each a name and arguments, as canonical JSON.

    Returns:
        None where there are none.

    Example:
        >>> canonical_calls([("add", {"b": 2, "a": 1.0})])
        '[{"args":{"a":1,"b":2},"name":"add"}]'
    """
    if not calls:
        return None
    return canonical_json([{"name": name, "args": _held(args)} for name, args in calls])


def parsed_arguments(arguments: object) -> object:
    """Return what the JSON text of a call says, the text itself where it is none."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments, strict=False)
    except (ValueError, RecursionError):
        return arguments


def as_mapping(value: object) -> dict[str, Any]:
    """Return a mapping as a dict to read from, an empty one for anything else."""
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def _held(args: object) -> object:
    try:
        canonical_json(args)
    except InputError:  # NaN is no JSON, though Python reads it
        return str(args)
    return args


def _are_logprobs(values: Sequence[object]) -> TypeGuard[Sequence[float]]:
    return all(
        isinstance(value, (float, int)) and value <= _ROUNDED for value in values
    )


def _told(said: list[str]) -> tuple[str, ...] | None:
    return tuple(said) if any(said) else None


def _place(
    tokens: Sequence[Mapping[str, Any]],
    said: str,
    text: str,
    *,
    whole: str,
    reasoned: bool,
) -> slice | None:
    """Return which tokens a text is made of, None if it is made of others."""
    if not said and whole == text and not reasoned:
        return slice(None)  # none says what it stands for, so none can be checked
    wanted, around = (
        _without_space(each.encode(errors="replace")) for each in (text, whole)
    )
    parts = [_without_space(_bytes_of(token)) for token in tokens]
    joined = b"".join(parts)
    if not wanted:
        return slice(None)
    start, ended = 0, _END_MARKS.sub(b"", joined)
    if reasoned and not joined.startswith(around):
        # Its tokens may be listed before those of the text, which then come last.
        start = max(0, len(ended) - len(around))
    if not joined.startswith(around, start):
        same = wanted == around and _same_but_lost(ended, wanted)
        return slice(None) if same else None
    end = start + len(around)
    start = end - len(wanted)
    if (start, end) == (0, len(joined)):
        return slice(None)
    # From the first token that reaches into the text to the one that completes it.
    ends = list(accumulate(map(len, parts)))
    first = next(index for index, until in enumerate(ends) if until > start)
    last = next(index for index, until in enumerate(ends) if until >= end)
    return slice(first, last + 1)


def _without_space(text: bytes) -> bytes:
    return _SPACE.sub(b"", text)


def _bytes_of(token: Mapping[str, Any]) -> bytes:
    # OpenAI writes parts of characters as escapes in the token, and in full here.
    given = token.get("bytes")
    if isinstance(given, Sequence) and given and not isinstance(given, str):
        try:
            return bytes(cast("Sequence[int]", given))
        except (TypeError, ValueError):
            pass
    return _as_text(token.get("token")).encode(errors="replace")


def _as_text(token: object) -> str:
    return token if isinstance(token, str) else ""


def _same_but_lost(joined: bytes, wanted: bytes) -> bool:
    """Return whether tokens make up a text but for characters that were cut apart."""
    lost = joined.count(_LOST)
    if not lost:
        return False
    kept = joined.replace(_LOST, b"").decode(errors="ignore")
    rest = iter(wanted.decode(errors="ignore"))
    skipped = 0
    for character in kept:
        for candidate in rest:
            if candidate == character:
                break
            skipped += 1
        else:
            return False
    return skipped + sum(1 for _ in rest) <= lost
