"""JSON values and tool calls: read from a text, and compared part by part."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import Any, Final

NOT_JSON: Final = object()
"""What ``read_json`` returns for a text that is not JSON."""

Strings = Callable[[str, str], float]

_HALF = 0.5
_PROSE = 4  # words
_FENCE = re.compile(r"```(?:json)?\s*+(.*)```", re.IGNORECASE | re.DOTALL)


def read_json(text: str, /) -> Any:  # noqa: ANN401 - JSON may be anything
    """Return the JSON object or array of a text, fenced or not, or ``NOT_JSON``.

    Numbers are exact decimals, so that 1, 1.0 and 1e0 are equal. An object that has a
    key twice is not read: readers differ in which of the values counts.
    """
    bare = unfenced(text)
    if not bare.startswith(("{", "[")):
        return NOT_JSON
    try:
        return json.loads(
            bare, parse_float=Decimal, parse_int=Decimal, object_pairs_hook=_object
        )
    except (ValueError, RecursionError, InvalidOperation):
        return NOT_JSON


def repeats_key(text: str, /) -> bool:
    """Recognise JSON that has a key twice: each program reads it in its own way."""
    bare = unfenced(text)
    if bare.startswith(("{", "[")):
        try:
            json.loads(bare, object_pairs_hook=_object)
        except _RepeatedKeyError:
            return True
        except (ValueError, RecursionError):
            pass  # no JSON at all
    return False


def unfenced(text: str, /) -> str:
    """Return what a fenced block of code holds, if a text is such a block."""
    bare = text.strip()
    fenced = _FENCE.fullmatch(bare) if bare.startswith("`") else None
    return fenced[1].strip() if fenced else bare


class _RepeatedKeyError(ValueError):
    """A key stands twice in an object."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RepeatedKeyError
    return found


def alike_values(a: Any, b: Any, strings: Strings, /) -> float:  # noqa: ANN401
    """Return the similarity of two JSON values: above 0.5 only if every part's is.

    It is the mean over all single values; a value that only one side has counts as 0.
    If any of them is at most 0.5, the mean is halved. Short texts that differ count as
    at most 0.5, except in the case of letters; within tool calls all that differ do.
    ``strings`` says how alike two texts are, in [0, 1].
    """
    try:
        parts = list(_parts(a, b, strings, in_call=False))
    except RecursionError:  # nested too deeply to be compared
        return 0.0
    mean = math.fsum(parts) / len(parts)
    return mean if min(parts) > _HALF else mean / 2


def _parts(a: Any, b: Any, strings: Strings, *, in_call: bool) -> Iterator[float]:  # noqa: ANN401
    """Yield the similarity of each single value."""
    if isinstance(a, dict) and isinstance(b, dict) and (a or b):
        # Sorted, so that rounding is the same in both argument orders.
        for key in sorted(a.keys() | b.keys()):
            pair = a.get(key, NOT_JSON), b.get(key, NOT_JSON)
            yield from _parts(*pair, strings, in_call=in_call)
    elif isinstance(a, list) and isinstance(b, list) and (a or b):
        in_call = in_call or (_are_calls(a) and _are_calls(b))
        for pair in zip_longest(a, b, fillvalue=NOT_JSON):
            yield from _parts(*pair, strings, in_call=in_call)
    elif isinstance(a, str) and isinstance(b, str):
        yield _alike_texts(a.strip(), b.strip(), strings, in_call=in_call)
    else:
        yield float(type(a) is type(b) and a == b)


def _are_calls(value: list[Any]) -> bool:
    """Recognise a list of calls of tools, as a guard writes them."""
    keys = {"args", "name"}
    return all(isinstance(each, dict) and each.keys() == keys for each in value)


def _alike_texts(a: str, b: str, strings: Strings, *, in_call: bool) -> float:
    """Return the similarity of two texts; short ones are names, ids or amounts."""
    if a == b:
        return 1.0
    if not in_call:  # there, any text acts
        if min(len(a.split()), len(b.split())) >= _PROSE:
            return strings(a, b)
        if a.casefold() == b.casefold() and f"{a}{b}".replace(" ", "").isalpha():
            return 1.0
    return min(strings(a, b), _HALF)
