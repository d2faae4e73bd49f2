"""Which row of one list is which of another, in whatever order they stand."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from snne_guard.fields.values import NULL, Elsewhere
from snne_guard.types import FloatArray

MOST_ROWS = 200
"""Longer lists are compared by position, which keeps time linear."""

_Row = Mapping[Hashable, None]
_STEP = 1e-6  # what a step between two rows costs, so that the nearest comes first


def matched(
    rows: Sequence[Any], *lists: list[Any] | Elsewhere
) -> list[tuple[list[Any], list[Any]]]:
    """Return the best match of each row in every other list, and what that has left.

    Equal rows come first, then those with most rare words and values in common, then
    the rest in order. A row without a match gets ``NULL``. All are as of ``keyed``.
    """
    ours = [dict.fromkeys(_parts(row)) for row in rows[: MOST_ROWS + 1]]
    found: list[tuple[list[Any], list[Any]]] = []
    for others in lists:
        if isinstance(others, Elsewhere):
            found.append(([others] * len(rows), []))
            continue
        known = {} if max(len(rows), len(others)) > MOST_ROWS else _pairs(ours, others)
        taken = {*known.values()}
        rest = iter([place for place in range(len(others)) if place not in taken])
        places = [
            known[i] if i in known else next(rest, None) for i in range(len(rows))
        ]
        matches = [NULL if place is None else others[place] for place in places]
        found.append((matches, [others[place] for place in rest]))
    return found


def _parts(value: Any, path: str = "") -> Iterator[Hashable]:  # noqa: ANN401
    """Yield the words and values of a row."""
    if isinstance(value, dict | list):
        inside = value.items() if isinstance(value, dict) else (("", v) for v in value)
        for key, each in inside:
            yield from _parts(each, f"{path}/{key}")
        return
    kind, said = value
    for word in f"{said}".casefold().split() if kind == "text" else [said]:
        yield path, kind, word


def _pairs(ours: Sequence[_Row], others: Sequence[Any]) -> dict[int, int]:
    """Return the match of each row that has something in common with one."""
    theirs = [dict.fromkeys(_parts(row)) for row in others]
    equal = defaultdict[frozenset[Hashable], deque[int]](deque)
    for place, parts in enumerate(theirs):
        equal[frozenset(parts)].append(place)
    found: dict[int, int] = {}
    for row, each in enumerate(ours):
        if same := equal[frozenset(each)]:
            found[row] = same.popleft()
    left = [row for row in range(len(ours)) if row not in found]
    free = sorted(place for same in equal.values() for place in same)
    alike = _alike([ours[row] for row in left], [theirs[place] for place in free])
    near = alike - _STEP * np.abs(np.subtract.outer(left, free))
    taken: set[int] = set()
    for pair in np.argsort(-near, axis=None, kind="stable").tolist():
        row, place = divmod(pair, len(free))
        if alike[row, place] <= 0 or len(taken) == len(free):
            break
        if left[row] not in found and place not in taken:
            found[left[row]] = free[place]
            taken.add(place)
    return found


def _alike(rows: Sequence[_Row], others: Sequence[_Row]) -> FloatArray:
    """Return the overlap of every two rows; rare values count more."""
    where = defaultdict[Hashable, list[int]](list)
    for place, parts in enumerate(others):
        for part in parts:
            where[part].append(place)
    counts = Counter(part for parts in rows for part in parts)
    alike: FloatArray = np.zeros((len(rows), len(others)))
    for row, parts in enumerate(rows):
        for part in filter(where.__contains__, parts):
            alike[row, where[part]] += 1 / (counts[part] * len(where[part]))
    return alike
