"""What was found out about pairs of texts, remembered without the texts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import Generic, TypeVar

from snne_guard._forks import begin_in_forks

__all__ = ["PairMemo", "pair_key"]

_SIZE = 65_536
"""Pairs that are remembered: some 15 MB of them."""

Finding = TypeVar("Finding")


def pair_key(*parts: str) -> bytes:
    """Return a digest of texts in their order, from which none can be read.

    Example:
        >>> pair_key("a", "bc") == pair_key("ab", "c")
        False
    """
    digest = blake2b(digest_size=16)
    for part in parts:
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little"))
        digest.update(raw)
    return digest.digest()


class PairMemo(Generic[Finding]):
    """The findings used last, under the digest of their pair; safe among threads.

    Args:
        size: Pairs that are remembered.
    """

    def __init__(self, size: int = _SIZE) -> None:
        self._size = size
        self._found: OrderedDict[bytes, Finding] = OrderedDict()
        begin_in_forks(self)

    def begin(self) -> None:
        """Keep what is known, under a lock that nobody holds."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[PairMemo[Finding]], tuple[int]]:
        """Copy and pickle it empty: a lock cannot travel, and findings need not."""
        return type(self), (self._size,)

    def get(self, key: bytes) -> Finding | None:
        """Return what was found, None if it is not known."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: bytes, finding: Finding) -> None:
        """Remember it, and forget what was not used for longest."""
        with self._lock:
            self._found[key] = finding
            self._found.move_to_end(key)
            if len(self._found) > self._size:
                self._found.popitem(last=False)
