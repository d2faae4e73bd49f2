"""Telling observers what happened, without ever waiting long for one of them."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

from snne_guard.errors import ConfigurationError
from snne_guard.types import Assessment, Observer, SampleEvent

__all__ = ["ObserverHub", "observers_of"]

logger = logging.getLogger(__name__)

_METHODS = ("on_sample_start", "on_sample_end", "on_assessment")
_CAPACITY = 10_000
"""Events that may wait for one observer before further ones are dropped."""
_IDLE_SECONDS = 1.0
"""How long an observer's thread waits for the next event before it ends."""
_FLUSH_SECONDS = 1.0
"""How long a guarded call waits for its observers before it goes on without them."""


def observers_of(given: Any) -> tuple[Observer, ...]:  # noqa: ANN401 - what a user gave
    """Return the observers that an option lists.

    Raises:
        ConfigurationError: If it is no list, or something in it would never be told.
    """
    told = ", ".join(_METHODS)
    try:
        listed: tuple[Any, ...] = tuple(given)
    except TypeError as error:
        msg = f"observers must be a list of observers; got {type(given).__name__}"
        raise ConfigurationError(msg) from error
    for each in listed:
        if not any(callable(getattr(each, name, None)) for name in _METHODS):
            kind = type(each).__name__
            msg = f"an observer has at least one method of {told}; {kind} has none"
            raise ConfigurationError(msg)
    return listed


class ObserverHub:
    """Delivers events to observers, each in a thread of its own and in order.

    An observer that raises, hangs or is slow costs the guarded call at most one
    second, once. Its failures are counted in ``failures``.

    Args:
        observers: Objects with any of ``on_sample_start``, ``on_sample_end`` and
            ``on_assessment``, plain or async.
    """

    def __init__(self, observers: Sequence[Observer] = ()) -> None:
        self._observers = tuple(observers)
        self._workers = [_Worker(observer) for observer in observers]

    def __reduce__(self) -> tuple[type[ObserverHub], tuple[tuple[Observer, ...]]]:
        """Start anew in another process; threads cannot travel."""
        return (ObserverHub, (self._observers,))

    @property
    def listening(self) -> bool:
        """Whether there is anybody to tell."""
        return bool(self._observers)

    @property
    def failures(self) -> int:
        """Events that an observer raised on, or that were dropped for it."""
        return sum(worker.failures for worker in self._workers)

    def sample_started(self, event: SampleEvent) -> None:
        """Announce a request that goes out."""
        self._post("on_sample_start", event)

    def sample_ended(self, event: SampleEvent) -> None:
        """Announce what came of a request."""
        self._post("on_sample_end", event)

    def announce(self, assessment: Assessment) -> None:
        """Hand over the assessment without waiting at all."""
        self._post("on_assessment", assessment)

    def assessed(self, assessment: Assessment) -> None:
        """Hand over the assessment and give observers a moment to take it in."""
        flushed = self._post("on_assessment", assessment)
        deadline = time.monotonic() + _FLUSH_SECONDS
        for worker, done in flushed:
            worker.settle(done, timeout=max(0.0, deadline - time.monotonic()))

    async def aassessed(self, assessment: Assessment) -> None:
        """Do the same without blocking the event loop."""
        if self._workers:
            await asyncio.to_thread(self.assessed, assessment)

    def _post(self, name: str, event: object) -> list[tuple[_Worker, threading.Event]]:
        posted = ((worker, worker.post(name, event)) for worker in self._workers)
        return [(worker, done) for worker, done in posted if done is not None]


class _Event(NamedTuple):
    """One thing to tell, the context to tell it in, and a flag for when it is told."""

    name: str
    value: object
    context: contextvars.Context
    done: threading.Event


_WORKERS: weakref.WeakSet[_Worker] = weakref.WeakSet()


class _Worker:
    """One observer and the thread that serves it while there is something to tell."""

    def __init__(self, observer: Observer) -> None:
        self.failures = 0
        self._observer = observer
        self.begin()
        _WORKERS.add(self)

    def begin(self) -> None:
        """Start with an empty queue and no thread."""
        self._events: queue.Queue[_Event] = queue.Queue(_CAPACITY)
        self._lock, self._tally = threading.Lock(), threading.Lock()
        self._running = False
        self._stuck = False

    def post(self, name: str, event: object) -> threading.Event | None:
        """Queue an event and return a flag that is set once it was delivered."""
        if not hasattr(self._observer, name):
            return None
        # In the caller's context, so that the current span there is the current here.
        done, context = threading.Event(), contextvars.copy_context()
        with self._lock:
            try:
                self._events.put_nowait(_Event(name, event, context, done))
            except queue.Full:
                self._count("is too slow, an event was dropped")
                return None
            if not self._running:
                self._running = True
                threading.Thread(
                    target=self._serve, daemon=True, name="snne-guard-observer"
                ).start()
        return done

    def settle(self, done: threading.Event, *, timeout: float) -> None:
        """Wait for a delivery, unless this observer is known to hang."""
        if done.wait(0.0 if self._stuck else timeout):
            self._stuck = False
        elif not self._stuck:
            self._stuck = True
            self._count("did not return in time, the call went on without it")

    def _serve(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                try:
                    event = self._events.get(timeout=_IDLE_SECONDS)
                except queue.Empty:
                    with self._lock:
                        if self._events.empty():
                            self._running = False
                            return
                    continue
                self._deliver(runner, event)
                event.done.set()

    def _deliver(self, runner: asyncio.Runner, event: _Event) -> None:
        try:
            tell = getattr(self._observer, event.name)
            result: Any = event.context.run(tell, event.value)
            if inspect.isawaitable(result):
                runner.run(_settled(result), context=event.context)
        except BaseException as error:  # noqa: BLE001 - nothing may end this thread
            self._count(f"raised {type(error).__name__}")

    def _count(self, what: str) -> None:
        with self._tally:
            self.failures += 1
        # The observer's name and the kind of failure only: never what was asked.
        logger.warning("observer %s %s", type(self._observer).__name__, what)


async def _settled(result: Any) -> None:  # noqa: ANN401 - any awaitable
    await result


def _begin_again() -> None:
    """Let a forked process tell what happens in it; its parent tells the rest."""
    # Threads do not survive a fork, and a lock may be held for ever.
    for worker in _WORKERS:
        worker.begin()


if hasattr(os, "register_at_fork"):  # pragma: no branch - Windows does not fork
    os.register_at_fork(after_in_child=_begin_again)
