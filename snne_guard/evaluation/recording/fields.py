"""Checks of one field of a JSON object; the messages never show what a text says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, cast

from snne_guard.errors import InputError

__all__ = [
    "identifier",
    "json_object",
    "kind",
    "logprob_lists",
    "logprobs",
    "optional",
    "text",
    "text_list",
    "text_or_none",
    "zero_or_one",
]

Fields = Mapping[str, Any]
T = TypeVar("T")

# Providers round: 1e-7 above 0 is no reason to lose a line.
_LOGPROB_SLACK = 1e-3

_KINDS = {
    "NoneType": "null",
    "str": "a text",
    "list": "a list",
    "dict": "an object",
    "bool": "true or false",
    "int": "a number",
    "float": "a number",
}


def kind(value: object) -> str:
    """Return what a reader of JSON calls the type of a value."""
    return _KINDS[type(value).__name__]


def _is_list(value: object) -> bool:
    # A plain bool: narrowing to list leaves a checker with unknown elements.
    return isinstance(value, list)


def _wrong(name: str, expected: str, got: object) -> InputError:
    return InputError(f'expected "{name}" to be {expected}, got {got}')


def optional(check: Callable[[Fields, str], T], fields: Fields, name: str) -> T | None:
    """Return what ``check`` says, or None where the field is null or missing."""
    return None if fields.get(name) is None else check(fields, name)


def identifier(fields: Fields, name: str) -> str:
    """Return a text that is not empty; a whole number is written as one."""
    value = fields[name]
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise _wrong(name, "a text", kind(value))
    if not value:
        raise _wrong(name, "a text", "an empty one")
    return value


def text(fields: Fields, name: str) -> str:
    """Return a text."""
    value = fields[name]
    if not isinstance(value, str):
        raise _wrong(name, "a text", kind(value))
    return value


def text_or_none(fields: Fields, name: str) -> str | None:
    """Return a text, or None where the field is null or missing."""
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise _wrong(name, "a text or null", kind(value))
    return value


def text_list(fields: Fields, name: str) -> tuple[str, ...]:
    """Return a list of texts."""
    value = fields[name]
    if not _is_list(value):
        raise _wrong(name, "a list of texts", kind(value))
    items: list[Any] = value
    for item in items:
        if not isinstance(item, str):
            raise _wrong(name, "a list of texts", f"{kind(item)} in it")
    return tuple(items)


def logprobs(fields: Fields, name: str) -> tuple[float, ...]:
    """Return a list of natural log-probabilities."""
    return _logprobs(fields[name], name)


def logprob_lists(
    fields: Fields, name: str
) -> tuple[tuple[float, ...] | None, ...] | None:
    """Return lists of log-probabilities, None for each that is null or missing."""
    value = fields.get(name)
    if value is None:
        return None
    if not _is_list(value):
        raise _wrong(name, "a list of lists of numbers", kind(value))
    items: list[Any] = value
    return tuple(None if item is None else _logprobs(item, name) for item in items)


def _logprobs(value: Any, name: str) -> tuple[float, ...]:  # noqa: ANN401 - JSON
    if not _is_list(value):
        raise _wrong(name, "lists of numbers", kind(value))
    items: list[Any] = value
    return tuple(_logprob(item, name) for item in items)


def _logprob(value: Any, name: str) -> float:  # noqa: ANN401 - JSON
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, "lists of numbers", f"{kind(value)} in them")
    # The negation refuses NaN too.
    if not value <= _LOGPROB_SLACK:
        raise _wrong(name, "natural logarithms, at most 0", value)
    try:
        return float(value)
    except OverflowError as error:
        raise _wrong(name, "numbers within the range of a float", "more") from error


def zero_or_one(fields: Fields, name: str) -> Literal[0, 1]:
    """Return 0 or 1; false and 0.0 are 0, true and 1.0 are 1."""
    value = fields[name]
    if not isinstance(value, int | float):
        raise _wrong(name, "0, 1 or null", kind(value))
    if value not in {0, 1}:
        raise _wrong(name, "0, 1 or null", value)
    return 1 if value else 0


def json_object(fields: Fields, name: str) -> Mapping[str, Any]:
    """Return a JSON object."""
    value = fields[name]
    if not isinstance(value, dict):
        raise _wrong(name, "an object", kind(value))
    return cast("dict[str, Any]", value)
