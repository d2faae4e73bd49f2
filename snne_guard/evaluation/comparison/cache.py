"""What a model said of answers, kept on disk without the answers."""

from __future__ import annotations

import io
import logging
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import numpy as np

from snne_guard.types import FloatArray

__all__ = ["Cached", "SimilarityCache"]

logger = logging.getLogger(__name__)

_FILE = "similarities.sqlite3"
_WAIT = 30.0  # seconds, while another process writes
_CHECK = 16
_STORED = frozenset({"equivalent", "probabilities", "vectors"})


class SimilarityCache:
    """A folder of what models said; several processes may use it at once.

    It holds digests and numbers, never a text. What cannot be read back is computed
    anew, with a warning in the log; a cache that cannot be used at all is none.

    Args:
        folder: Where it is; made if it is not there.
    """

    def __init__(self, folder: Path | str, /) -> None:
        self._path = Path(folder) / _FILE
        self._open: sqlite3.Connection | None = None
        self._broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def get(self, key: bytes) -> tuple[FloatArray, float] | None:
        """Return the numbers under a key and the seconds that they took.

        None where there are none, or none to be trusted.
        """
        rows = self._run("SELECT data, seconds FROM found WHERE key = ?", key)
        if not rows:
            return None
        numbers = _unpacked(rows[0][0])
        if numbers is None:
            logger.warning("an entry of %s is damaged; it is computed anew", self._path)
            return None
        return numbers, float(rows[0][1])

    def put(self, key: bytes, numbers: FloatArray, *, seconds: float) -> None:
        """Keep numbers under a key, and the seconds that they took."""
        statement = "INSERT OR REPLACE INTO found VALUES (?, ?, ?)"
        self._run(statement, key, _packed(numbers), seconds)

    def _run(self, statement: str, *values: bytes | float) -> list[Any]:
        if self._broken:
            return []
        try:
            if self._open is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._open = _opened(self._path)
            with self._open:
                return self._open.execute(statement, values).fetchall()
        except (OSError, sqlite3.Error) as error:
            self._broken = True
            logger.warning("%s cannot be used as a cache: %s", self._path, error)
            return []


class Cached:
    """A similarity that asks its model only for sets that no cache knows.

    What else the similarity can tell it tells too.

    Args:
        similarity: A similarity behind which a model is.
        cache: Where to look and to keep.
        identity: Whatever its numbers depend on besides question and texts.

    Attributes:
        saved_seconds: What the model would have taken for all that was known, so that
            a method's time is that without the cache.
    """

    def __init__(self, similarity: Any, cache: SimilarityCache, identity: str) -> None:  # noqa: ANN401
        self._similarity, self._cache, self._identity = similarity, cache, identity
        self.saved_seconds = 0.0

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what the similarity would return."""
        return self._kept("similarity", self._similarity, texts, question=question)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the similarity has it
        found = getattr(self._similarity, name)
        return partial(self._kept, name, found) if name in _STORED else found

    def _kept(
        self,
        what: str,
        ask: Callable[..., Any],
        texts: Sequence[str],
        *,
        question: str | None = None,
    ) -> FloatArray:
        key = _key(self._identity, what, question, texts)
        found = self._cache.get(key)
        if found is not None:
            self.saved_seconds += found[1]
            return found[0]
        began = perf_counter()
        numbers = np.asarray(ask(texts, question=question), dtype=np.float64)
        self._cache.put(key, numbers, seconds=perf_counter() - began)
        return numbers


def _key(identity: str, what: str, question: str | None, texts: Sequence[str]) -> bytes:
    digest = blake2b(digest_size=32)
    asked = "n" if question is None else f"q{question}"
    for part in (identity, what, asked, *texts):
        raw = part.encode("utf-8", "surrogatepass")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.digest()


def _packed(numbers: FloatArray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, numbers, allow_pickle=False)
    data = stream.getvalue()
    return blake2b(data, digest_size=_CHECK).digest() + data


def _unpacked(packed: bytes) -> FloatArray | None:
    check, data = packed[:_CHECK], packed[_CHECK:]
    if blake2b(data, digest_size=_CHECK).digest() != check:
        return None
    numbers: FloatArray = np.load(io.BytesIO(data), allow_pickle=False)
    return numbers


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_WAIT)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS found "
        "(key BLOB PRIMARY KEY, data BLOB NOT NULL, seconds REAL NOT NULL)"
    )
    return connection
