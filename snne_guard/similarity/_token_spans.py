"""Where the tokens of an answer stand in its text."""

from __future__ import annotations

import string
from collections.abc import Sequence
from itertools import accumulate, pairwise

from snne_guard.errors import InputError

__all__ = ["token_spans"]

_Span = tuple[int, int]
_PART = "\ufffd"
"""How a token reads that is a part of a character."""
_SPACE = f"{string.whitespace}\u2581\u0120\u010a"
"""White space, and the marks that tokenizers write for it."""


def token_spans(text: str, tokens: Sequence[str]) -> list[_Span]:
    """Return from where to where each token reaches; nowhere is an empty span.

    Tokens that make up the text, and more around it, such as a blank before it or an
    end mark behind it, are where they are. Else each is looked for behind the one
    before it; those that are not found, because they are parts of one character, all
    stand for what lies between their neighbours.

    Args:
        text: The answer.
        tokens: Its tokens, in order.

    Raises:
        InputError: More than half of the tokens are not in it: they are of another
            text.

    Example:
        >>> token_spans("It is Paris", [" It", " is", " Par", "is", "<end>"])
        [(0, 2), (2, 5), (5, 9), (9, 11), (11, 11)]
        >>> token_spans("to 東京", ["to", " 東", "\ufffd", "\ufffd"])
        [(0, 2), (2, 4), (4, 5), (4, 5)]
    """
    joined = "".join(tokens)
    start = joined.find(text)
    if start >= 0:
        ends = [0, *accumulate(map(len, tokens))]
        places = [min(max(end - start, 0), len(text)) for end in ends]
        return list(pairwise(places))
    return _searched(text, tokens)


def _searched(text: str, tokens: Sequence[str]) -> list[_Span]:
    found: list[_Span | None] = []
    cursor = strange = 0
    for token in tokens:
        place = text.find(token, cursor) if token else -1
        if place < 0 and (bare := token.strip(_SPACE)):
            token = bare  # noqa: PLW2901 - the same token
            place = text.find(token, cursor)
        strange += place < 0 and bool(token) and _PART not in token
        found.append(None if place < 0 else (place, place + len(token)))
        cursor = cursor if place < 0 else place + len(token)
    if 2 * strange > len(tokens):
        msg = "expected the tokens of the text, got tokens that are not found in it"
        raise InputError(msg)
    return _filled(found, len(text))


def _filled(found: Sequence[_Span | None], length: int) -> list[_Span]:
    """Return the spans with what lies between their neighbours for the unknown ones."""
    spans: list[_Span] = []
    before = 0
    for place, span in enumerate(found):
        if span is None:
            after = next((each[0] for each in found[place:] if each), length)
            spans.append((before, after))
        else:
            spans.append(span)
            before = span[1]
    return spans
