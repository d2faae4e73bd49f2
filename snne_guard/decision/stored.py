"""Reading a frozen dataclass back from what JSON held, without trusting it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from types import UnionType
from typing import (
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from snne_guard.errors import ConfigurationError, InputError

__all__ = ["read_fields"]

T = TypeVar("T")


def read_fields(kind: type[T], content: object, /) -> T:
    """Return a dataclass from a mapping of its fields, each of its type.

    Fields may be finite numbers, texts, flags, None, literals and tuples of those.

    Args:
        kind: The dataclass.
        content: What JSON held.

    Raises:
        InputError: It is no mapping; a field is missing, unknown or of the wrong type;
            or the fields contradict each other.
    """
    called = f"a {kind.__name__}"
    if not isinstance(content, Mapping):
        msg = f"expected the fields of {called}, got {content!r}"
        raise InputError(msg)
    given = cast("Mapping[str, Any]", content)
    hints = get_type_hints(kind)
    names = [field.name for field in fields(cast("Any", kind))]
    missing, unknown = set(names) - given.keys(), given.keys() - set(names)
    if missing or unknown:
        msg = (
            f"expected exactly the fields of {called}; "
            f"missing: {sorted(missing)}, unknown: {sorted(map(str, unknown))}"
        )
        raise InputError(msg)
    for name in names:
        if not _fits(given[name], hints[name]):
            msg = f"expected {called} with another type of {name}, got {given[name]!r}"
            raise InputError(msg)
    try:
        return kind(**{name: _restored(given[name]) for name in names})
    except ConfigurationError as error:
        msg = f"expected {called}: {error}"
        raise InputError(msg) from error


def _fits(value: object, hint: Any) -> bool:  # noqa: ANN401 - a type of any form
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in {UnionType, Union}:
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return _is_tuple(value, parts)
    if hint in {float, int}:
        number = isinstance(value, int | hint) and not isinstance(value, bool)
        return number and math.isfinite(cast("float", value))
    return isinstance(value, hint)


def _is_tuple(value: object, parts: tuple[Any, ...]) -> bool:
    if not isinstance(value, list | tuple):
        return False
    items = cast("Sequence[object]", value)
    if parts[-1] is Ellipsis:
        return all(_fits(item, parts[0]) for item in items)
    return len(items) == len(parts) and all(map(_fits, items, parts))


def _restored(value: object) -> object:
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value
