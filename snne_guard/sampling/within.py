"""Waiting for an answer no longer than a guarded call may take."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import TypeVar

__all__ = ["OutOfTimeError", "awithin", "within"]

T = TypeVar("T")


class OutOfTimeError(TimeoutError):
    """Our own limit ran out, not one of the provider's client."""


def within(ask: Callable[[], T], seconds: float | None) -> T:
    """Return what a call returns, in a thread of its own where there is a limit.

    The thread is a daemon: a provider that never answers must not keep the process
    from ending.

    Raises:
        OutOfTimeError: If it did not return within ``seconds``.

    Example:
        >>> within(lambda: "Paris", None)
        'Paris'
    """
    if seconds is None:
        return ask()
    future: Future[T] = Future()
    context = copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(ask))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread
            future.set_exception(error)

    threading.Thread(target=work, daemon=True, name="snne-guard-answer").start()
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the provider's own
            raise
        raise OutOfTimeError from None


async def awithin(asking: Awaitable[T], seconds: float | None) -> T:
    """Await the same; the twin of ``within``.

    Raises:
        OutOfTimeError: If it did not return within ``seconds``.
    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await asking
    except TimeoutError:
        if not limit.expired():  # the provider's own
            raise
        raise OutOfTimeError from None
