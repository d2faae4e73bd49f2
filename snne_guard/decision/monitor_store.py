"""Where the state of a monitor is kept: the seam, and memory as the simplest place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from snne_guard._forks import begin_in_forks

__all__ = ["MemoryStore", "MonitorStore"]


class MonitorStore(Protocol):
    """Keeps texts by name, each changed by one caller at a time."""

    def update(self, key: str, change: Callable[[str | None], str], /) -> None:
        """Replace the text of a name by what ``change`` makes of it.

        All of it is one transaction: between reading and writing nobody else, in this
        process or another, changes the text of this name, and where anything fails
        what was there stays as it was.

        Args:
            key: Name of the text.
            change: Gets the text that is kept, None if there is none, and returns the
                new one. It may be called more than once; the last call counts. What
                it raises is to come through, and nothing is to be written then.

        Raises:
            Exception: If the text cannot be read or kept. A guard takes any.
        """
        ...


class MemoryStore:
    """Keeps them in this process, for as long as it lives.

    A forked process goes on with a copy of its own; a pickled store begins anew.

    Example:
        >>> store = MemoryStore()
        >>> store.update("a", lambda text: (text or "") + "x")
        >>> store.update("a", lambda text: print(text) or text)
        x
    """

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        begin_in_forks(self)

    def begin(self) -> None:
        """Let go of what other threads held at the moment of a fork."""
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[MemoryStore], tuple[()]]:
        """Start anew in another process; a lock cannot travel."""
        return (MemoryStore, ())

    def update(self, key: str, change: Callable[[str | None], str], /) -> None:
        """Replace the text of a name; see ``MonitorStore``."""
        with self._lock:
            self._texts[key] = change(self._texts.get(key))
