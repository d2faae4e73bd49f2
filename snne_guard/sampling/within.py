"""Waiting for an answer no longer than a guarded call may take."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import copy_context
from typing import TypeVar

from snne_guard.errors import ModelCancelledError
from snne_guard.sampling.limiter import Limiter, NoPlaceError

__all__ = [
    "OutOfTimeError",
    "aask_in_place",
    "ask_in_place",
    "awithin",
    "cancelled_by_caller_only",
    "off_loop",
    "within",
]

T = TypeVar("T")


class OutOfTimeError(TimeoutError):
    """Our own limit ran out, not one of the provider's client."""


def within(ask: Callable[[], T], seconds: float | None) -> T:
    """Return what a call returns, in a thread of its own where there is a limit.

    The thread is a daemon: a provider that never answers must not keep the process
    from ending.

    Raises:
        OutOfTimeError: If it did not return within ``seconds``.
        ModelCancelledError: If it was cancelled, and not because the caller is.

    Example:
        >>> within(lambda: "Paris", None)
        'Paris'
    """
    with cancelled_by_caller_only():
        if seconds is None:
            return ask()
        future = _begun(ask)
        try:
            return future.result(seconds)
        except TimeoutError:
            if future.done():  # the provider's own
                raise
            raise OutOfTimeError from None


async def off_loop(work: Callable[[], T]) -> T:
    """Return what work returns, done in a thread that keeps no process from ending."""
    return await asyncio.wrap_future(_begun(work))


def _begun(work: Callable[[], T]) -> Future[T]:
    """Start work in a daemon thread, in a copy of the caller's context."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from now on nobody can cancel it
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)

    threading.Thread(target=run, daemon=True, name="snne-guard-answer").start()
    return future


async def awithin(asking: Awaitable[T], seconds: float | None) -> T:
    """Await the same; the twin of ``within``.

    Raises:
        OutOfTimeError: If it did not return within ``seconds``.
        ModelCancelledError: If it was cancelled, and not because the caller is.
    """
    with cancelled_by_caller_only():
        if seconds is None:
            return await asking
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await asking
        except TimeoutError:
            if not limit.expired():  # the provider's own
                raise
            raise OutOfTimeError from None


@contextmanager
def cancelled_by_caller_only(
    what: str = "the model cancelled its own request", /
) -> Generator[None]:
    """Turn a cancellation that nobody asked the caller's task for into an error.

    That of ``concurrent.futures`` too: it becomes the other one on its way from a
    thread into a task.

    Args:
        what: Says what cancelled itself then.

    Raises:
        ModelCancelledError: If it did, and not because the caller is cancelled.

    Example:
        >>> with cancelled_by_caller_only("the judge cancelled itself"):
        ...     raise asyncio.CancelledError
        Traceback (most recent call last):
        ...
        snne_guard.errors.ModelCancelledError: the judge cancelled itself; nobody
        cancelled the guarded call
    """
    try:
        yield
    except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        if _is_being_cancelled():
            raise
        msg = f"{what}; nobody cancelled the guarded call"
        raise ModelCancelledError(msg) from error


def _is_being_cancelled() -> bool:
    """Return whether the caller's task was asked to end, also where that is unknown."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop runs in this thread, so there is no task
        return False
    return task is None or task.cancelling() > 0


def ask_in_place(
    ask: Callable[[], T], limiter: Limiter, remaining: Callable[[], float | None]
) -> T:
    """Return what a request brings, in one of the places that a limiter gives.

    Args:
        ask: Sends the request.
        limiter: Cap on the requests in flight.
        remaining: Seconds that there are left, None without a limit.

    Raises:
        OutOfTimeError: If there was no place, or no reply, in time.

    Example:
        >>> ask_in_place(lambda: "Paris", Limiter(1), lambda: 5.0)
        'Paris'
    """
    try:
        with limiter.hold(timeout=remaining()):
            return within(ask, remaining())
    except NoPlaceError:
        raise OutOfTimeError from None


async def aask_in_place(
    ask: Callable[[], Awaitable[T]],
    limiter: Limiter,
    remaining: Callable[[], float | None],
) -> T:
    """Do the same without blocking the event loop.

    Raises:
        OutOfTimeError: If there was no place, or no reply, in time.
    """

    async def in_place() -> T:
        async with limiter.ahold():
            return await ask()

    return await awithin(in_place(), remaining())
