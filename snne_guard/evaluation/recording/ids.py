"""Where each id of a file stands, in little memory."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

__all__ = ["IdPlaces"]


class IdPlaces:
    """A mapping from id to the line or byte where it stands, 16 bytes an id.

    It keeps 64-bit hashes; a dict of Python's own takes ten times the memory. Two of
    a million ids have the same hash once in 40 million files.

    Args:
        recent: Ids that are kept in a dict before they are sorted into the arrays.

    Example:
        >>> places = IdPlaces()
        >>> places.add("a", 1), places.add("b", 2), places.add("a", 3)
        (None, None, 1)
        >>> "a" in places, "c" in places, len(places)
        (True, False, 2)
    """

    def __init__(self, *, recent: int = 4096) -> None:
        self._ids: NDArray[np.uint64] = np.empty(0, dtype=np.uint64)
        self._places: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._recent: dict[int, int] = {}
        self._limit = recent

    def __len__(self) -> int:
        return len(self._ids) + len(self._recent)

    def __contains__(self, text: str) -> bool:
        return self.get(text) is not None

    def get(self, text: str) -> int | None:
        """Return where an id stands, None if it is not there."""
        return self._get(_hashed(text))

    def add(self, text: str, place: int) -> int | None:
        """Note where an id stands, unless it is there; return where it stood."""
        value = _hashed(text)
        before = self._get(value)
        if before is None:
            self._note(value, place)
        return before

    def put(self, text: str, place: int) -> None:
        """Note where an id stands now, whether or not it stood elsewhere."""
        value = _hashed(text)
        at = self._index(value)
        if at is None:
            self._note(value, place)
        else:
            self._places[at] = place

    def _get(self, value: int) -> int | None:
        at = self._index(value)
        return self._recent.get(value) if at is None else int(self._places[at])

    def _index(self, value: int) -> int | None:
        at = int(np.searchsorted(self._ids, np.uint64(value)))
        return at if at < len(self._ids) and int(self._ids[at]) == value else None

    def _note(self, value: int, place: int) -> None:
        self._recent[value] = place
        if len(self._recent) < self._limit:
            return
        fresh = sorted(self._recent)
        ids = np.concatenate([self._ids, np.array(fresh, dtype=np.uint64)])
        places = np.array([self._recent[one] for one in fresh], dtype=np.int64)
        # Two runs that are sorted already: a stable sort merges them.
        order = np.argsort(ids, kind="stable")
        self._ids = ids[order]
        self._places = np.concatenate([self._places, places])[order]
        self._recent.clear()


def _hashed(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest)
