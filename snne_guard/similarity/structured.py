"""JSON values and tool calls, compared part by part."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any, Final

__all__ = ["NOT_JSON", "alike_values", "read_json"]

NOT_JSON: Final = object()
"""What ``read_json`` returns for a text that is not JSON."""

Strings = Callable[[str, str], float]

_HALF = 0.5
_PROSE = 4  # words
_FENCE = "```"


def read_json(text: str, /) -> Any:  # noqa: ANN401 - JSON may be anything
    """Return the JSON object or array of a text, fenced or not, or ``NOT_JSON``.

    Numbers are exact decimals, so that 1, 1.0 and 1e0 are equal.

    Example:
        >>> read_json('{"n": 1.0}') == read_json('{"n": 1}')
        True
        >>> read_json("Paris") is NOT_JSON
        True
    """
    bare = _without_fence(text.strip())
    if not bare.startswith(("{", "[")):
        return NOT_JSON
    try:
        return json.loads(bare, parse_float=Decimal, parse_int=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        return NOT_JSON


def alike_values(a: Any, b: Any, strings: Strings, /) -> float:  # noqa: ANN401
    """Return how alike two JSON values are: above 0.5 only if every part is.

    It is the mean over all single values; a value that only one side has counts as 0.
    If any of them is at most 0.5, the mean is halved. Short texts that differ count as
    at most 0.5, except in the case of letters; within tool calls all that differ do.

    Args:
        a: A value, as of ``read_json``.
        b: Another one.
        strings: How alike two texts within them are, in [0, 1].

    Example:
        >>> def same(a: str, b: str) -> float:
        ...     return float(a == b)
        >>> alike_values({"to": "Ann", "amount": 5}, {"to": "Ann", "amount": 6}, same)
        0.25
        >>> alike_values([True], [1], same)
        0.0
    """
    try:
        parts = list(_parts(a, b, _prose_apart(strings)))
    except RecursionError:  # nested too deeply to be compared
        return 0.0
    mean = math.fsum(parts) / len(parts)
    return mean if min(parts) > _HALF else mean / 2


def _parts(a: Any, b: Any, strings: Strings) -> Iterator[float]:  # noqa: ANN401
    """Yield how alike each single value is."""
    if isinstance(a, dict) and isinstance(b, dict) and (a or b):
        # Sorted, so that rounding is the same in both argument orders.
        for key in sorted(a.keys() | b.keys()):
            yield from _parts(a.get(key, NOT_JSON), b.get(key, NOT_JSON), strings)
    elif isinstance(a, list) and isinstance(b, list) and (a or b):
        within = strings
        if _are_calls(a) and _are_calls(b):  # an argument acts: nothing is excepted
            within = _at_most_half(strings)
        for left, right in zip_longest(a, b, fillvalue=NOT_JSON):
            yield from _parts(left, right, within)
    elif isinstance(a, str) and isinstance(b, str):
        yield strings(a.strip(), b.strip())
    else:
        yield float(type(a) is type(b) and a == b)


def _prose_apart(strings: Strings) -> Strings:
    """Return what compares two texts, of which short ones are names, ids or amounts."""
    exactly = _at_most_half(strings)

    def compare(a: str, b: str) -> float:
        if min(len(a.split()), len(b.split())) >= _PROSE:
            return strings(a, b)
        letters = f"{a}{b}".replace(" ", "").isalpha()
        return 1.0 if letters and a.casefold() == b.casefold() else exactly(a, b)

    return compare


def _are_calls(value: list[Any]) -> bool:
    """Return whether a list holds calls of tools, as a guard writes them."""
    keys = {"args", "name"}
    return all(isinstance(each, dict) and each.keys() == keys for each in value)


def _at_most_half(strings: Strings) -> Strings:
    return lambda a, b: 1.0 if a == b else min(strings(a, b), _HALF)


def _without_fence(text: str) -> str:
    if text.startswith(_FENCE) and text.endswith(_FENCE):
        language, _, body = text.strip("`").partition("\n")
        if language.strip().lower() in {"", "json"}:
            return body.lstrip()
    return text
