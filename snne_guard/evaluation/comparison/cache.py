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
from typing import Any, NamedTuple, Self

import numpy as np

from snne_guard.types import FloatArray

__all__ = ["Cached", "Kept", "SimilarityCache"]

logger = logging.getLogger(__name__)

_FILE = "similarities.sqlite3"
_WAIT = 30.0  # seconds, while another process writes
_CHECK = 16
_DAMAGED = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_STORED = frozenset({"equivalent", "probabilities", "vectors"})


class Kept(NamedTuple):
    """What a model said once, and what it took."""

    numbers: FloatArray
    seconds: float
    calls: int


class SimilarityCache:
    """A folder of what models said; several processes may use it at once.

    It holds digests and numbers, never a text. What cannot be read back is computed
    anew, with a warning in the log. A file that is damaged is moved aside, and another
    one begun; a cache that cannot be used at all is none.

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

    def get(self, key: bytes) -> Kept | None:
        """Return what is under a key, None if there is nothing, or nothing to trust."""
        rows = self._run("SELECT data, seconds, calls FROM kept WHERE key = ?", key)
        if not rows:
            return None
        data, seconds, calls = rows[0]
        numbers = _unpacked(data)
        if numbers is None:
            logger.warning("an entry of %s is damaged; it is computed anew", self._path)
            return None
        return Kept(numbers, float(seconds), int(calls))

    def put(
        self, key: bytes, numbers: FloatArray, *, seconds: float, calls: int = 0
    ) -> None:
        """Keep numbers under a key, and the seconds and requests that they took."""
        statement = "INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)"
        self._run(statement, key, _packed(numbers), seconds, calls)

    def _run(self, statement: str, *values: bytes | float) -> list[Any]:
        try:
            return self._ask(statement, *values)
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _DAMAGED:
                return self._give_up(error)
        except OSError as error:
            return self._give_up(error)
        try:
            self._move_aside()
            return self._ask(statement, *values)
        except (OSError, sqlite3.Error) as error:
            return self._give_up(error)

    def _ask(self, statement: str, *values: bytes | float) -> list[Any]:
        if self._broken:
            return []
        if self._open is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._open = _opened(self._path)
        with self._open:
            return self._open.execute(statement, values).fetchall()

    def _give_up(self, error: Exception) -> list[Any]:
        self._broken = True
        logger.warning("%s cannot be used as a cache: %s", self._path, error)
        return []

    def _move_aside(self) -> None:
        self.__exit__()
        aside = self._path.with_name(f"{self._path.name}.damaged")
        logger.warning("%s is damaged; it is moved to %s", self._path, aside.name)
        self._path.replace(aside)
        for beside in ("-wal", "-shm"):  # they belong to the file that was moved
            self._path.with_name(self._path.name + beside).unlink(missing_ok=True)


class Cached:
    """A similarity that asks its model only for sets that no cache knows.

    What else the similarity can tell it tells too; where it counts its ``calls``,
    those that the cache has saved are among them, so that they are what it costs.

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
        self._saved_calls = 0
        self._spent: dict[bytes, int] = {}

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what the similarity would return."""
        return self._kept("similarity", self._similarity, texts, question=question)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as the similarity has it
        found = getattr(self._similarity, name)
        if name == "calls" and isinstance(found, int):
            return found + self._saved_calls
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
        if found is None:
            began, before = perf_counter(), self._asked()
            numbers = np.asarray(ask(texts, question=question), dtype=np.float64)
            seconds, sent = perf_counter() - began, self._asked() - before
            calls = self._count(question, texts, told=sent, sent=sent)
            self._cache.put(key, numbers, seconds=seconds, calls=calls)
            return numbers
        self.saved_seconds += found.seconds
        self._count(question, texts, told=found.calls, sent=0)
        return found.numbers

    def _count(
        self, question: str | None, texts: Sequence[str], *, told: int, sent: int
    ) -> int:
        """Return the requests that a set costs; what was not sent of them is saved.

        A judge that has told what means the same has told how similar it is as well:
        what is asked of it first costs all, and the rest nothing.
        """
        key = _key("", "", question, texts)
        counted = self._spent.get(key, 0)
        cost = max(counted, told)
        self._spent[key] = cost
        self._saved_calls += cost - counted - sent
        return cost

    def _asked(self) -> int:
        calls = getattr(self._similarity, "calls", 0)
        return calls if isinstance(calls, int) else 0


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
        "CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, data BLOB NOT NULL, "
        "seconds REAL NOT NULL, calls INTEGER NOT NULL)"
    )
    return connection
