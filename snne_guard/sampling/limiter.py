"""A cap on the requests in flight, shared by threads and event loops alike."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager

from snne_guard._forks import begin_in_forks
from snne_guard.errors import ConfigurationError

__all__ = ["Limiter", "NoPlaceError"]


class NoPlaceError(TimeoutError):
    """No place came free within the time that was given."""


class Limiter:
    """Lets at most ``limit`` holders in at a time, first come first served.

    asyncio's own semaphore belongs to one event loop and threading's would block it;
    a guard is used from both at once.

    Args:
        limit: Holders at a time, None for no limit.

    Raises:
        ConfigurationError: If it is neither None nor a whole number of at least 1.

    Example:
        >>> limiter = Limiter(2)
        >>> with limiter.hold():
        ...     pass
    """

    def __init__(self, limit: int | None = None) -> None:
        _check(limit)
        self.limit = limit
        begin_in_forks(self)

    def begin(self) -> None:
        """Let nobody be in and nobody wait."""
        self._lock = threading.Lock()
        self._held = 0
        self._waiting: deque[Future[None]] = deque()

    def __reduce__(self) -> tuple[type[Limiter], tuple[int | None]]:
        """Start anew in another process; a lock cannot travel."""
        return (Limiter, (self.limit,))

    @contextmanager
    def hold(self, *, timeout: float | None = None) -> Generator[None]:
        """Wait for a place, hold it, give it back.

        Raises:
            NoPlaceError: If no place came free within ``timeout`` seconds.
        """
        ticket = self._enter()
        if ticket is not None:
            try:
                ticket.result(timeout)
            except BaseException as error:
                self._give_up(ticket)
                if isinstance(error, TimeoutError):
                    raise NoPlaceError from None
                raise
        try:
            yield
        finally:
            self._leave()

    @asynccontextmanager
    async def ahold(self) -> AsyncGenerator[None]:
        """Do the same without blocking the event loop."""
        ticket = self._enter()
        if ticket is not None:
            try:
                await _called(ticket)
            except BaseException:
                self._give_up(ticket)
                raise
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> Future[None] | None:
        with self._lock:
            if self.limit is None or self._held < self.limit:
                self._held += 1
                return None
            ticket: Future[None] = Future()
            self._waiting.append(ticket)
            return ticket

    def _give_up(self, ticket: Future[None]) -> None:
        with self._lock:
            called = not ticket.cancel()
        if called:  # while its holder was leaving: pass the place on
            self._leave()

    def _leave(self) -> None:
        with self._lock:
            while self._waiting:
                ticket = self._waiting.popleft()
                if ticket.set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._held -= 1


async def _called(ticket: Future[None]) -> None:
    """Wait until a ticket is called, by this event loop or by anybody.

    ``asyncio.wrap_future`` would have the loop wake itself through a socket each time.
    """
    loop = asyncio.get_running_loop()
    waiter: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        if not waiter.done():
            waiter.set_result(None)

    def call(_ticket: Future[None]) -> None:
        if _running() is loop:
            wake()
        elif not loop.is_closed():
            loop.call_soon_threadsafe(wake)

    ticket.add_done_callback(call)
    await waiter


def _running() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _check(limit: object) -> None:
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        msg = f"max_concurrency must be a whole number of at least 1; got {limit!r}"
        raise ConfigurationError(msg)
