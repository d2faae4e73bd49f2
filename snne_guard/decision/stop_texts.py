"""Texts that end a reply, and whether two lists of them end it alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

__all__ = ["are_stops", "fewest", "same_stops"]


def are_stops(value: object, /) -> bool:
    """Return whether a value is a list of texts, or None."""
    if not isinstance(value, list | tuple):
        return value is None
    return all(isinstance(one, str) for one in cast("Sequence[object]", value))


def fewest(stops: Sequence[str], /) -> tuple[str, ...]:
    r"""Return the texts that end a reply where all of them would.

    Providers take four at most, and a text that holds another one changes nothing.

    Example:
        >>> fewest(("\n", "\n\n", "Question:", "\nQuestion:"))
        ('\n', 'Question:')
    """
    distinct = dict.fromkeys(stops)
    return tuple(
        stop
        for stop in distinct
        if not any(other in stop for other in distinct if other != stop)
    )


def same_stops(one: Sequence[str] | None, other: Sequence[str] | None, /) -> bool:
    r"""Return whether replies end at the same texts; an empty list is none.

    Example:
        >>> same_stops(["\n"], ["\n\n", "\n"]), same_stops([], None)
        (True, True)
    """
    return set(fewest(one or ())) == set(fewest(other or ()))
