"""How many requests of a guard may be in flight at once."""

from __future__ import annotations

import os
import threading
from collections import deque
from concurrent.futures import Future


class Limiter:
    """A counting lock that threads and tasks wait on together.

    A fork starts anew with all slots free: the requests of the parent are not its own.

    Attributes:
        size: Requests in flight, None for any number.
    """

    def __init__(self, size: int | None) -> None:
        self.size = size
        self._reset()

    def __reduce__(self) -> tuple[type[Limiter], tuple[int | None]]:
        """Travel without the requests in flight."""
        return (Limiter, (self.size,))

    def acquire(self, *, first: bool = False) -> Future[None]:
        """Return a future that is done once a slot is held; answers go ``first``.

        A task waits for it by ``asyncio.wrap_future``. Call ``release`` with it in any
        case, even if the wait was abandoned.
        """
        if self._process != os.getpid():
            self._reset()
        place: Future[None] = Future()
        with self._lock:
            if self.size is None or self._held < self.size:
                self._held += 1
                place.set_running_or_notify_cancel()
                place.set_result(None)
            else:
                (self._first if first else self._waiting).append(place)
        return place

    def release(self, place: Future[None], /) -> None:
        """Give up a slot, or a place in the queue for one."""
        place.cancel()
        with self._lock:
            if place.cancelled():
                return  # it stays in the queue, and is passed over
            while self._first or self._waiting:
                following = (self._first or self._waiting).popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._held -= 1

    def _reset(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._first: deque[Future[None]] = deque()
        self._waiting: deque[Future[None]] = deque()
        self._held = 0
