"""Lines of JSON objects with an id each: what is one, and what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.fields import kind
from snne_guard.evaluation.recording.ids import IdPlaces

__all__ = ["BadLine", "decode", "parse_lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be used.

    Attributes:
        message: What was expected and what was there, without the text of an answer.
    """

    message: str


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=_HasId)


def parse_lines(
    lines: Iterable[bytes],
    read: Callable[[dict[str, Any]], T],
    *,
    strict: bool = False,
) -> Iterator[tuple[int, T | BadLine]]:
    """Read objects from lines of bytes, ids that come twice being bad lines.

    A line is taken from ``lines`` only when the one before has been dealt with.

    Args:
        lines: UTF-8, one JSON object a line; blank lines are passed over.
        read: Checks the fields of an object; raises InputError.
        strict: Whether the first bad line ends the reading.

    Yields:
        The line's number, from 1, and the object or what is wrong with the line.

    Raises:
        InputError: With ``strict``, at the first bad line; the message has its number.
    """
    seen = IdPlaces()
    for number, line in enumerate(lines, start=1):
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
        if not content.strip():
            continue
        row: T | BadLine
        try:
            row = read(decode(content))
            _check_new(row.id, seen.add(row.id, number))
        except InputError as error:
            if strict:
                msg = f"line {number}: {error}"
                raise InputError(msg) from error
            row = BadLine(message=str(error))
        yield number, row


def decode(line: bytes) -> dict[str, Any]:
    """Return the JSON object that a line holds.

    Raises:
        InputError: If it holds something else.
    """
    try:
        value: Any = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        msg = f"expected UTF-8, byte {error.start} is not"
        raise InputError(msg) from error
    except json.JSONDecodeError as error:
        msg = f"expected a JSON object, {error.msg} at column {error.colno}"
        raise InputError(msg) from error
    except (ValueError, RecursionError) as error:
        # A number of thousands of digits, or lists in lists in lists.
        msg = f"expected plain JSON, got {type(error).__name__}"
        raise InputError(msg) from error
    if not isinstance(value, dict):
        msg = f"expected a JSON object, got {kind(value)}"
        raise InputError(msg)
    return cast("dict[str, Any]", value)


def _check_new(name: str, before: int | None) -> None:
    if before is not None:
        shown = json.dumps(name)
        msg = f"the id {shown} has come before in this file, on line {before}"
        raise InputError(msg)
