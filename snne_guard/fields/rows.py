"""Which row of one list is which of another, in whatever order they stand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from snne_guard.fields.values import NULL, Elsewhere

MOST_ROWS = 200
"""Longer lists are compared by position, which keeps time linear."""

_Row = Mapping[Hashable, float]
_NEAR = 1e-6  # what a step between two rows that are equally alike counts


def matched(
    rows: Sequence[Any], *lists: list[Any] | Elsewhere
) -> list[tuple[list[Any], list[Any]]]:
    """Return the best match of each row in every other list, and what that has left.

    Equal rows come first, then those with most rare words and values in common, then
    the rest in order. A row without a match gets ``NULL``.

    Args:
        rows: The rows of one list, as of ``keyed``.
        *lists: The same for others.

    Example:
        >>> oak, elm, fir = ("text", "oak"), ("text", "elm"), ("text", "fir")
        >>> matched([oak, elm], [elm, oak, fir])
        [([('text', 'oak'), ('text', 'elm')], [('text', 'fir')])]
    """
    ours: list[_Row] = [dict(_parts(row)) for row in rows[: MOST_ROWS + 1]]
    return [
        ([each] * len(rows), [])
        if isinstance(each, Elsewhere)
        else _match(ours, rows, each)
        for each in lists
    ]


def _match(
    ours: Sequence[_Row], rows: Sequence[Any], others: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the best match of each row in one list, and what is left of that."""
    found: dict[int, int] = {}
    if max(len(rows), len(others)) <= MOST_ROWS:
        theirs = [dict(_parts(row)) for row in others]
        equal = defaultdict[frozenset[Any], deque[int]](deque)
        for place, parts in enumerate(theirs):
            equal[frozenset(parts)].append(place)
        for row, each in enumerate(ours):
            if equal[frozenset(each)]:
                found[row] = equal[frozenset(each)].popleft()
        left = [row for row in range(len(ours)) if row not in found]
        free = sorted(place for same in equal.values() for place in same)
        found.update(_best(ours, theirs, left, free))
    taken = {*found.values()}
    rest = iter([place for place in range(len(others)) if place not in taken])
    places = [found[i] if i in found else next(rest, None) for i in range(len(rows))]
    return [NULL if p is None else others[p] for p in places], [others[p] for p in rest]


def _parts(value: Any, path: str = "") -> Iterator[tuple[Hashable, float]]:  # noqa: ANN401
    """Yield what a row says, words of a text apart, and how much each counts."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _parts(each, f"{path}/{key}")
    elif isinstance(value, list):
        for each in value:
            yield from _parts(each, f"{path}/")
    else:
        kind, said = value
        words = f"{said}".casefold().split() if kind == "text" else [said]
        yield from [((path, kind, word), len(words) ** -0.5) for word in words]


def _best(
    ours: Sequence[_Row], theirs: Sequence[_Row], left: list[int], free: list[int]
) -> Iterator[tuple[int, int]]:
    """Yield pairs of rows that have something in common, the most alike first."""
    one, other = [ours[i] for i in left], [theirs[j] for j in free]
    counts = Counter(chain.from_iterable((*one, *other)))
    rows, places = _index(one, counts), _index(other, counts)
    alike = np.zeros((len(one), len(other)))
    for part in rows:
        if part in places:
            (row, a), (place, b) = rows[part], places[part]
            alike[np.ix_(row, place)] += np.outer(a, b)
    near = alike - _NEAR * np.abs(np.subtract.outer(left, free))
    open_rows, open_places = {*range(len(left))}, {*range(len(free))}
    for pair in np.argsort(-near, axis=None, kind="stable").tolist():
        row, place = divmod(pair, len(free))
        if not (open_rows and open_places and alike[row, place] > 0):
            return
        if row in open_rows and place in open_places:
            open_rows.remove(row)
            open_places.remove(place)
            yield left[row], free[place]


def _index(
    rows: Sequence[_Row], counts: Mapping[Hashable, int]
) -> dict[Hashable, tuple[list[int], list[float]]]:
    """Return which rows have each part, and how much it counts; the rarer the more."""
    index = defaultdict[Hashable, tuple[list[int], list[float]]](lambda: ([], []))
    for row, parts in enumerate(rows):
        weights = {part: weight / counts[part] for part, weight in parts.items()}
        size = math.hypot(*weights.values())
        for part, weight in weights.items():
            index[part][0].append(row)
            index[part][1].append(weight / size)
    return index
