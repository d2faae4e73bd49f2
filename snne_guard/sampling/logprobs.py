"""Which of a provider's token log-probabilities are those of a reply's text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

__all__ = ["read_logprobs"]

# White space, and the marks that tokenizers write for it. Servers that decode tokens
# one by one lose it at their edges, so it is not compared.
_SPACE = re.compile(rb"\s+|\xe2\x96\x81|\xc4\xa0|\xc4\x8a")
_END_MARKS = re.compile(rb"(?:<[^<>]+>){1,3}\Z")  # without a limit: quadratic
_LOWEST = -1e9
"""What is below is no log-probability."""
_ROUNDING = 1e-6
"""Largest value above 0 that still counts as a rounding error."""


def read_logprobs(
    entries: object, *, text: str
) -> tuple[tuple[float, ...] | None, tuple[str, ...] | None]:
    """Return the log-probabilities of the tokens that make up a text.

    The tokens of a reasoning block before the text, and of a stop string or end mark
    after it, are left out. Tokens that spell another text are of no use: they do not
    say how likely this one is.

    Args:
        entries: Mappings with ``token``, ``logprob`` and perhaps ``bytes``, as in
            OpenAI's ``logprobs.content``. Anything else counts as missing.
        text: Text of the reply. Empty, as in a tool call: all tokens are taken.

    Returns:
        Values in nats, at most 0, and the text of each token. Both are None where the
        values are missing, positive or not finite, or where the tokens spell another
        text; the texts alone are None where the provider does not give them.

    Example:
        >>> entries = [{"token": "Par", "logprob": -0.5}, {"token": "is", "logprob": 0}]
        >>> read_logprobs(entries, text="Paris")
        ((-0.5, 0.0), ('Par', 'is'))
        >>> read_logprobs(entries, text="Rome")
        (None, None)
    """
    if not isinstance(entries, Sequence) or isinstance(entries, str | bytes):
        return None, None
    tokens = [entry for entry in entries if isinstance(entry, Mapping)]
    values = [_value(token.get("logprob")) for token in tokens]
    known = [value for value in values if value is not None]
    if not known or len(known) != len(entries):
        return None, None
    names = [_name(token) for token in tokens]
    if "".join(names) == text:  # nearly always
        return tuple(known), tuple(names)
    if not any(names):  # nothing says what they stand for, so nothing can be checked
        return tuple(known), None
    place = _find([_bytes(token) for token in tokens], text)
    if place is None:
        return None, None
    decoded = [_bytes(token).decode(errors="replace") for token in tokens[place]]
    return tuple(known[place]), tuple(decoded)


def _value(value: object) -> float | None:
    if not isinstance(value, float | int) or not _LOWEST < value <= _ROUNDING:
        return None
    return min(float(value), 0.0)


def _name(token: Mapping[str, Any]) -> str:
    name = token.get("token")
    return name if isinstance(name, str) else ""


def _bytes(token: Mapping[str, Any]) -> bytes:
    """Return what a token stands for; OpenAI escapes parts of characters in names."""
    given = token.get("bytes")
    if isinstance(given, Sequence) and given and not isinstance(given, str):
        try:
            return bytes(given)
        except (TypeError, ValueError):
            pass
    return _name(token).encode(errors="replace")


def _find(tokens: Sequence[bytes], text: str) -> slice | None:
    """Return which tokens make up a text, None where they spell another one."""
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
