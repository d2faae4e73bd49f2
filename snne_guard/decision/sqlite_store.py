"""The state of monitors in a SQLite file, shared by processes and kept for restarts."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from snne_guard.errors import ConfigurationError, MonitorStoreError

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SqliteStore"]

_APPLICATION = 0x736E6E65
"""What SQLite's header says of whose file it is: "snne"."""
_FORMAT = 1
_EMPTY = (0, 0, 0)

_ALONE = threading.Lock()
"""Held while any connection is open in this process. SQLite does not survive a fork
with one open, so a fork waits for it."""


class SqliteStore:
    """Keeps the state of monitors in a file that any number of processes share.

    Each change is one transaction with a connection of its own: whoever is killed in
    the midst of it leaves the state as it was, and whoever finds the file held by
    another waits. It takes some milliseconds, most of them for the disk. The file must
    be on a disk of this machine, since SQLite cannot lock files on most network
    disks; processes on several machines need a store of their own kind.

    Args:
        path: The file; created where there is none.
        timeout: Seconds to wait for other writers before giving up.

    Raises:
        ConfigurationError: If the timeout is no number above 0.
        MonitorStoreError: If the file cannot be read or written, is damaged, is not
            one of this class, or was written by a newer version of this library. It
            is left as it is.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = SqliteStore(Path(folder) / "monitor.db")
        ...     store.update("a", lambda text: (text or "") + "x")
        ...     SqliteStore(store.path).keys()
        ('a',)
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float = 5.0) -> None:
        if isinstance(timeout, bool) or not 0.0 < timeout <= threading.TIMEOUT_MAX:
            msg = f"timeout must be a number of seconds above 0; got {timeout!r}"
            raise ConfigurationError(msg)
        self.path, self.timeout = Path(path).absolute(), timeout
        with self._transaction(create=True):
            pass

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        """Open the same file in another process."""
        return (_opened, (str(self.path), self.timeout))

    def update(self, key: str, change: Callable[[str | None], str], /) -> None:
        """Replace the text of a name; see ``MonitorStore``.

        Raises:
            MonitorStoreError: If the file cannot be read or written, or is held by
                others for longer than ``timeout``.
        """
        with self._transaction() as connection:
            found = connection.execute(
                "SELECT state FROM monitors WHERE name = ?", (key,)
            ).fetchone()
            before = None if found is None else found[0]
            after = change(before)
            if after != before:
                connection.execute(
                    "INSERT OR REPLACE INTO monitors VALUES (?, ?)", (key, after)
                )

    def keys(self) -> tuple[str, ...]:
        """Return the names of all texts, sorted.

        Raises:
            MonitorStoreError: If the file cannot be read.
        """
        with self._transaction() as connection:
            rows = connection.execute("SELECT name FROM monitors ORDER BY name")
            return tuple(name for (name,) in rows)

    @contextmanager
    def _transaction(self, *, create: bool = False) -> Generator[sqlite3.Connection]:
        """Hold the file; what is done with it is kept unless something is raised."""
        import sqlite3  # some builds of Python have none

        until = time.monotonic() + self.timeout
        if not _ALONE.acquire(timeout=self.timeout):
            why = "held by other threads of this process"
            raise self._unusable(why)
        try:
            left = max(until - time.monotonic(), 0.0)
            with closing(self._connected(left, create=create)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                self._check(connection, create=create)
                yield connection
                connection.execute("COMMIT")  # else all is undone when it closes
        except sqlite3.Error as error:
            raise self._unusable(str(error)) from error
        finally:
            _ALONE.release()

    def _connected(self, timeout: float, *, create: bool) -> sqlite3.Connection:
        import sqlite3

        # A file that has vanished is an error: an empty one would know of no alarm.
        mode = "rwc" if create else "rw"
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode={mode}",
            uri=True,
            timeout=timeout,
            isolation_level=None,
        )

    def _check(self, connection: sqlite3.Connection, *, create: bool) -> None:
        """Make sure that it is our file, and make one of an empty one."""
        application, version, tables = (
            connection.execute(question).fetchone()[0]
            for question in (
                "PRAGMA application_id",
                "PRAGMA user_version",
                "SELECT count(*) FROM sqlite_master",
            )
        )
        if create and (application, version, tables) == _EMPTY:
            connection.execute(
                "CREATE TABLE monitors (name TEXT PRIMARY KEY, state TEXT NOT NULL)"
            )
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_FORMAT}")
        elif application != _APPLICATION:
            why = "it is not a file of this library"
            raise self._unusable(why)
        elif version != _FORMAT:
            why = f"its format is {version}, and this version reads format {_FORMAT}"
            raise self._unusable(why)

    def _unusable(self, why: str) -> MonitorStoreError:
        msg = f"the state of monitors in {self.path} cannot be used: {why}"
        return MonitorStoreError(msg)


def _opened(path: str, timeout: float) -> SqliteStore:
    return SqliteStore(path, timeout=timeout)


def _let_go() -> None:
    _ALONE.release()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows does not fork
    os.register_at_fork(
        before=_ALONE.acquire, after_in_parent=_let_go, after_in_child=_let_go
    )
