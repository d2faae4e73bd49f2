"""JSON and tool calls, compared value by value."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import cache
from itertools import combinations, zip_longest
from typing import Any, Final

from snne_guard.similarity.lexical import distinct_texts, rouge_l, spread
from snne_guard.types import BoolArray, FloatArray

__all__ = ["NOT_JSON", "alike_values", "read_json", "structured"]

NOT_JSON: Final = object()
"""What ``read_json`` returns for a text that is not JSON."""

Strings = Callable[[str, str], float]

_HALF = 0.5
_PROSE = 4  # words
_FENCE = "```"


def read_json(text: str, /) -> Any:  # noqa: ANN401 - JSON may be anything
    """Return the JSON value of a text, fenced or not, or ``NOT_JSON``.

    Numbers are exact decimals, so that 1, 1.0 and 1e0 are equal.

    Example:
        >>> read_json('{"n": 1.0}') == read_json('{"n": 1}')
        True
        >>> read_json("Paris") is NOT_JSON
        True
    """
    try:
        return json.loads(_without_fence(text), parse_float=Decimal, parse_int=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        return NOT_JSON


def alike_values(a: Any, b: Any, strings: Strings, /) -> float:  # noqa: ANN401
    """Return how alike two JSON values are: above 0.5 only if every part is.

    It is the mean over all single values; a value that only one side has counts as 0.
    If any of them is at most 0.5, the mean is halved. Within tool calls, texts that
    differ count as at most 0.5.

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
        parts = list(_parts(a, b, strings))
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
        if _are_calls(a) and _are_calls(b):  # an argument acts: prose is no exception
            within = _at_most_half(strings)
        for left, right in zip_longest(a, b, fillvalue=NOT_JSON):
            yield from _parts(left, right, within)
    elif isinstance(a, str) and isinstance(b, str):
        yield _strings_within(a.strip(), b.strip(), strings)
    else:
        yield float(type(a) is type(b) and a == b)


def _strings_within(a: str, b: str, strings: Strings) -> float:
    """Compare two texts; short ones are names, ids or amounts rather than prose."""
    if a == b:
        return 1.0
    if min(len(a.split()), len(b.split())) >= _PROSE:
        return strings(a, b)
    letters = f"{a}{b}".replace(" ", "").isalpha()
    if letters and a.casefold() == b.casefold():
        return 1.0
    return min(strings(a, b), _HALF)


def _are_calls(value: list[Any]) -> bool:
    """Return whether a list holds calls of tools, as a guard writes them."""
    keys = {"args", "name"}
    return all(isinstance(each, dict) and each.keys() == keys for each in value)


def _at_most_half(strings: Strings) -> Strings:
    return lambda a, b: min(strings(a, b), _HALF)


def _without_fence(text: str) -> str:
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE):
        language, _, body = stripped.strip("`").partition("\n")
        if language.strip().lower() in {"", "json"}:
            return body
    return text


class _Structured:
    """Compares JSON texts value by value, and other texts as texts.

    Numbers are compared by value, booleans and null exactly, texts by ``rouge_l``,
    lists item by item. The result is above 0.5 only if every value is, so that a single
    differing field counts. A Markdown fence around JSON is ignored.

    Example:
        >>> structured(['{"city": "Paris", "n": 1}', '{"n": 1.0, "city": "Lyon"}'])
        array([[1.  , 0.25],
               [0.25, 1.  ]])
        >>> structured.equivalent(['{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}'])
        array([[ True,  True],
               [ True,  True]])
    """

    name = "structured"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one."""
        del question
        distinct = distinct_texts(texts)
        values = [read_json(text) for text in distinct]
        strings = cache(_rouge_l)  # for this call alone
        matrix = rouge_l(distinct)
        for i, j in combinations(range(len(distinct)), 2):
            if values[i] is not NOT_JSON and values[j] is not NOT_JSON:
                value = alike_values(values[i], values[j], strings)
                matrix[i, j] = matrix[j, i] = value
        return spread(matrix, distinct, texts)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts are 1 alike: the same values, or the same words."""
        same: BoolArray = self(texts, question=question) == 1.0
        return same


structured = _Structured()
"""JSON and tool calls, compared value by value."""


def _rouge_l(a: str, b: str) -> float:
    return float(rouge_l([a, b])[0, 1])
