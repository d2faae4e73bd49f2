"""Who gets the assessments, and what becomes of observers that fail."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from snne_guard.types import Assessment, Observer

_log = logging.getLogger(__name__)


class Observers:
    """The observers of one guard.

    They are called one after another before the answer is delivered, or the last chunk
    of a live stream, in the context of the guarded call, so that they see its current
    tracing span. Under asyncio a plain observer runs in a worker thread, so that it
    does not block the event loop. What an observer raises is counted, logged by its
    type, and swallowed.

    Args:
        observers: Objects with ``on_assessment``, plain or async.
        lists: Lists that fill with assessments, shared by a guard and its copies.

    Attributes:
        failures: How often an observer has raised.
    """

    def __init__(
        self,
        observers: Sequence[Observer] = (),
        *,
        lists: dict[int, list[Assessment]] | None = None,
    ) -> None:
        self._observers = tuple(observers)
        self._lists: dict[int, list[Assessment]] = {} if lists is None else lists
        self.failures = 0

    @contextmanager
    def collected(self) -> Iterator[list[Assessment]]:
        """Give a list that fills with assessments as calls end, in any thread."""
        seen: list[Assessment] = []
        self._lists[id(seen)] = seen
        try:
            yield seen
        finally:
            del self._lists[id(seen)]

    def notify(self, assessment: Assessment, /) -> None:
        """Hand an assessment to every observer, from a thread."""
        self._collect(assessment)
        for observer in self._observers:
            result = self._call(observer, observer.on_assessment, assessment)
            if inspect.isawaitable(result):
                self._call(observer, _run_apart, result)

    async def anotify(self, assessment: Assessment, /) -> None:
        """Hand an assessment to every observer, from a task."""
        self._collect(assessment)
        for observer in self._observers:
            function = observer.on_assessment
            if inspect.iscoroutinefunction(function):  # waits for no worker thread
                result = self._call(observer, function, assessment)
            else:
                call = asyncio.to_thread(self._call, observer, function, assessment)
                result = await call
            if inspect.isawaitable(result):
                try:
                    await result
                except Exception as error:  # noqa: BLE001 - an observer never breaks a call
                    self._failed(observer, error)

    def _call(
        self, observer: Observer, function: Callable[[Any], object], given: object
    ) -> object:
        """Return a function's result; its exception is the observer's failure."""
        try:
            return function(given)
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(observer, error)
            return None

    def _collect(self, assessment: Assessment) -> None:
        for seen in list(self._lists.values()):
            seen.append(assessment)

    def _failed(self, observer: Observer, error: Exception) -> None:
        self.failures += 1
        kinds = type(observer).__name__, type(error).__name__
        _log.warning("observer %s raised %s", *kinds)  # no text: it may be an answer's


def _run_apart(coroutine: Coroutine[Any, Any, object]) -> None:
    """Run to the end in a thread of its own: this one may have a running loop."""
    with ThreadPoolExecutor(1) as pool:
        run = contextvars.copy_context().run
        pool.submit(run, asyncio.run, coroutine).result()
