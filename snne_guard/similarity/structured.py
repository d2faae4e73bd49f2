"""JSON and tool calls compared field by field."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal, InvalidOperation
from typing import Any, cast

import numpy as np

from snne_guard.errors import InputError
from snne_guard.similarity.exact import Match, normalised_text
from snne_guard.similarity.lexical import LexicalPairs, distinct_texts
from snne_guard.types import BoolArray, FloatArray

__all__ = ["StructuredPairs", "canonical_json", "structured"]

_MAX_DEPTH = 100
_EXACT_INTEGERS = 2**53
_FENCE = "```"
_NOT_JSON = object()
_TOOL_CALL = frozenset({"name", "args"})
_UNCOMPARED = frozenset({"id", "type"})


def canonical_json(value: object, /) -> str:
    """Return a value as JSON of one form: sorted keys, no spaces, 1 for 1.0.

    Args:
        value: What ``json.dumps`` can write; tuples become lists.

    Returns:
        The JSON text, the same for values that mean the same.

    Raises:
        InputError: The value holds something that JSON has no form for, NaN and
            infinity included, or is nested too deeply.

    Example:
        >>> canonical_json({"b": 1.0, "a": [True, None, "é"]})
        '{"a":[true,null,"é"],"b":1}'
    """
    try:
        return json.dumps(
            _canonical(value),
            sort_keys=True,
            separators=(",", ":"),
            ensure_ascii=False,
            allow_nan=False,
        )
    except (TypeError, ValueError, RecursionError) as error:
        msg = (
            f"expected a value that JSON can hold, got {type(value).__name__}: {error}"
        )
        raise InputError(msg) from error


def _canonical(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_INTEGERS:
        return int(value)
    if isinstance(value, Mapping):
        members = cast("Mapping[object, object]", value)
        return {key: _canonical(member) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return [_canonical(member) for member in cast("Sequence[object]", value)]
    return value


class _Structured:
    """Compare JSON texts field by field; texts that are no JSON, as texts.

    - objects: the mean over the union of their keys, a missing key being 0;
    - lists: the mean over the places of the longer one, in order;
    - numbers by value (``1``, ``1.0`` and ``1e0`` are equal), booleans and null
      exactly, strings by :func:`rouge_l`, two different kinds: 0;
    - a tool call, an object of ``name`` and ``args`` and nothing else but ``id`` and
      ``type``: 0 where the names differ, else the mean of 1 and the arguments'
      similarity. ``id`` and ``type`` are not compared;
    - a pair in which one text is no JSON: :func:`rouge_l` of the two texts. A fence
      of Markdown around the JSON does not count.

    As an equivalence it forms clusters: the same are JSON values that are equal, the
    order of keys aside, and texts that are no JSON where ``normalised`` has them so.

    Example:
        >>> structured(['{"city": "Paris", "n": 1}', '{"n": 1.0, "city": "Lyon"}'])
        array([[1. , 0.5],
               [0.5, 1. ]])
        >>> structured.equivalent(['{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}'])
        array([[ True,  True],
               [ True,  True]])
    """

    name = "structured"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one.

        Args:
            texts: The ``n`` texts.
            question: Not used.

        Returns:
            ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        return StructuredPairs().matrix(texts, question=question)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts hold the same value.

        Args:
            texts: The ``n`` texts.
            question: Not used.

        Returns:
            ``(n, n)`` booleans, symmetric, transitive, diagonal True.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        return _SAME.equivalent(texts, question=question)


structured = _Structured()
"""JSON and tool calls compared field by field; see above."""


class StructuredPairs:
    """``structured`` of two texts at a time, each pair once; for one call's use."""

    def __init__(self) -> None:
        self._strings = LexicalPairs()
        self._values: dict[str, Any] = {}
        self._pairs: dict[tuple[str, str], float] = {}

    def __call__(self, one: str, other: str) -> float:
        """Return how alike two different texts are."""
        if (one, other) not in self._pairs:
            alike = self._compared(one, other)
            self._pairs[one, other] = self._pairs[other, one] = alike
        return self._pairs[one, other]

    def matrix(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what ``structured`` returns, of pairs seen before without work."""
        del question
        distinct = list(distinct_texts(texts))
        matrix = np.ones((len(distinct), len(distinct)))
        for row, text in enumerate(distinct):
            for column, other in enumerate(distinct[:row]):
                matrix[row, column] = matrix[column, row] = self(text, other)
        place = {text: row for row, text in enumerate(distinct)}
        places = [place[text] for text in texts]
        return matrix[np.ix_(places, places)]

    def _compared(self, one: str, other: str) -> float:
        left, right = self._read(one), self._read(other)
        if left is _NOT_JSON or right is _NOT_JSON:
            return self._strings(one, other)
        return _compare(left, right, self._strings)

    def _read(self, text: str) -> Any:  # noqa: ANN401 - JSON may be anything
        if text not in self._values:
            self._values[text] = _parsed(text)
        return self._values[text]


def _parsed(text: str) -> Any:  # noqa: ANN401 - JSON may be anything
    """Return the JSON value of a text, numbers as exact decimals, or ``_NOT_JSON``."""
    try:
        value: object = json.loads(
            _without_fence(text),
            parse_float=Decimal,
            parse_int=Decimal,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError, InvalidOperation):
        return _NOT_JSON
    return _NOT_JSON if _too_deep(value) else value


def _without_fence(text: str) -> str:
    stripped = text.strip()
    if stripped.startswith(_FENCE) and stripped.endswith(_FENCE):
        language, _, body = stripped.strip("`").partition("\n")
        if language.strip().lower() in {"", "json"}:
            return body
    return text


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [member for parent in level for member in _members(parent)]
        if not level:
            return False
    return True


def _members(value: object) -> list[object]:
    if isinstance(value, dict):
        return list(cast("dict[str, object]", value).values())
    return cast("list[object]", value) if isinstance(value, list) else []


def _compare(one: Any, other: Any, strings: LexicalPairs) -> float:  # noqa: ANN401 - JSON
    if type(one) is not type(other):
        return 0.0
    if isinstance(one, dict):
        objects = cast("tuple[dict[str, Any], dict[str, Any]]", (one, other))
        return _compare_objects(*objects, strings)
    if isinstance(one, list):
        lists = cast("tuple[list[Any], list[Any]]", (one, other))
        return _compare_lists(*lists, strings)
    if isinstance(one, str):
        return strings(one, other)
    return float(one == other)


def _compare_objects(
    one: dict[str, Any], other: dict[str, Any], strings: LexicalPairs
) -> float:
    keys: AbstractSet[str] = one.keys() | other.keys()
    if _is_tool_call(one) and _is_tool_call(other):
        if one["name"] != other["name"]:
            return 0.0
        keys = _TOOL_CALL
    if not keys:
        return 1.0
    # Sorted, so that rounding is the same in both argument orders.
    shared = sorted(keys & one.keys() & other.keys())
    return sum(_compare(one[key], other[key], strings) for key in shared) / len(keys)


def _is_tool_call(value: dict[str, Any]) -> bool:
    return (
        _TOOL_CALL <= value.keys() <= _TOOL_CALL | _UNCOMPARED
        and isinstance(value["name"], str)
        and isinstance(value["args"], dict)
    )


def _compare_lists(one: list[Any], other: list[Any], strings: LexicalPairs) -> float:
    longer = max(len(one), len(other))
    if not longer:
        return 1.0
    pairs = zip(one, other, strict=False)
    return sum(_compare(left, right, strings) for left, right in pairs) / longer


def _meaning(text: str) -> Hashable:
    value = _parsed(text)
    return normalised_text(text) if value is _NOT_JSON else ("JSON", _hashable(value))


def _hashable(value: Any) -> Hashable:  # noqa: ANN401 - JSON may be anything
    """Return the same for equal JSON values, and not for 1 and true."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        keys = _TOOL_CALL if _is_tool_call(members) else members.keys()
        return frozenset((key, _hashable(members[key])) for key in keys)
    if isinstance(value, list):
        return tuple(map(_hashable, cast("list[object]", value)))
    return type(value).__name__, value


_SAME = Match("structured", _meaning)
