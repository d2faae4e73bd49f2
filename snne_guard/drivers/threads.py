"""Carry out a guarded call in threads.

The threads are daemons of the call's own: nested guards cannot starve one another, and
a provider that hangs cannot keep the process from ending. A request that is past its
deadline is left behind; it ends by the client's own timeout.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import CancelledError, Future
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, Self

from snne_guard.call import Call, Draws, Outcome, Work
from snne_guard.drivers.door import Door, StreamingDoor
from snne_guard.drivers.limits import Limiter
from snne_guard.observers import Observers
from snne_guard.sampling.replies import Draw, Failure, Reply
from snne_guard.sampling.retrying import retrying

__all__ = ["in_daemon_thread", "run", "stream"]


def run(
    call: Call, door: Door, *, limiter: Limiter, observers: Observers, retry: bool
) -> Outcome:
    """Carry out a call and return how it ended.

    Args:
        call: What ``guarded_call`` returned.
        door: Sends the requests.
        limiter: How many requests may be in flight, those of other calls included.
        observers: Who is told of the assessment.
        retry: Whether to retry draws, where neither model nor client does so itself.

    Raises:
        BaseException: What interrupted the call, such as ``KeyboardInterrupt``.
    """
    with _Requests(door, limiter, retry=retry) as requests:
        try:
            wanted = next(call)
            while True:
                try:
                    result = _carry_out(wanted, requests)
                except BaseException as error:  # noqa: BLE001 - the engine ends the call
                    wanted = call.throw(error)
                else:
                    wanted = call.send(result)
        except StopIteration as end:
            outcome: Outcome = end.value
    observers.tell(outcome.assessment)
    return outcome


def stream(
    call: Call,
    door: StreamingDoor,
    *,
    limiter: Limiter,
    observers: Observers,
    retry: bool,
) -> Generator[Any]:
    """Carry out a call whose answer cannot be withheld.

    Yields:
        The answer's chunks as they come, then the ``Outcome``.
    """
    with _Requests(door, limiter, retry=retry) as requests:
        try:
            wanted = next(call)
            while True:
                try:
                    if isinstance(wanted, Draws) and wanted.draws[0].role == "answer":
                        result: Any = yield from _stream_answer(wanted, door, requests)
                    else:
                        result = _carry_out(wanted, requests)
                except BaseException as error:  # noqa: BLE001 - the engine ends the call
                    wanted = call.throw(error)
                else:
                    wanted = call.send(result)
        except StopIteration as end:
            outcome: Outcome = end.value
    observers.tell(outcome.assessment)
    if isinstance(outcome.error, GeneratorExit):
        raise outcome.error
    yield outcome


def in_daemon_thread(function: Callable[[], Any]) -> Future[Any]:
    """Run a function in a daemon thread and in a copy of the caller's context."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = function()
        except StopIteration as error:  # which a future of asyncio never ends with
            future.set_exception(RuntimeError(f"a function raised {error!r}"))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
    return future


class _Requests:
    """The requests in flight of one call; leaving ends their retries and waits."""

    def __init__(self, door: Door, limiter: Limiter, *, retry: bool) -> None:
        self._door = door
        self._retry = retry
        self._limiter = limiter
        self._ended = threading.Event()
        self._changed = threading.Condition()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def start(self, draw: Draw) -> Future[Reply | Failure]:
        """Send a request in a thread of its own."""
        future = in_daemon_thread(lambda: self._send(draw))
        future.add_done_callback(self._wake)
        return future

    def wait(
        self, wanted: Draws, futures: list[Future[Reply | Failure]]
    ) -> list[Reply | Failure | None]:
        """Return what came of requests by their deadlines."""
        with self._changed:
            while not _settled(wanted, futures):
                self._changed.wait(_next_deadline(wanted, futures))
        return [future.result() if future.done() else None for future in futures]

    @contextmanager
    def slot(self, *, first: bool = True) -> Generator[None]:
        """Hold a place among the requests in flight, as answers do before samples."""
        place = self._limiter.acquire(first=first)
        try:
            place.result()
            yield
        finally:
            self._limiter.release(place)

    def _wake(self, _: Future[Any]) -> None:
        with self._changed:
            self._changed.notify_all()

    def _send(self, draw: Draw) -> Reply | Failure:
        attempts = 0

        def attempt() -> Reply:
            nonlocal attempts
            with self.slot(first=draw.role == "answer"):
                if self._ended.is_set():  # nobody waits for it any more
                    msg = "the call ended before the request was sent"
                    raise CancelledError(msg)
                attempts += 1
                return self._door.send(draw)

        try:
            reply = retrying(self._ended)(attempt) if self._retry else attempt()
        except BaseException as error:  # noqa: BLE001 - a failure is an outcome
            return Failure(error=error, attempts=attempts)
        return counted(reply, attempts)


def counted(reply: Reply, attempts: int) -> Reply:
    """Return a reply whose cost includes the requests that it took.

    The door counts those that failed within a draw: a rejected parameter, for example.
    """
    attempts += reply.cost.attempts
    return replace(reply, cost=replace(reply.cost, calls=1, attempts=attempts))


def _carry_out(wanted: Draws | Work, requests: _Requests) -> Any:  # noqa: ANN401
    if isinstance(wanted, Draws):
        return requests.wait(wanted, [requests.start(draw) for draw in wanted.draws])
    try:
        if wanted.deadline is None or wanted.quick:
            return wanted.function()
        remaining = max(0.0, wanted.deadline - time.monotonic())
        return in_daemon_thread(wanted.function).result(remaining)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)


def _stream_answer(
    wanted: Draws, door: StreamingDoor, requests: _Requests
) -> Generator[Any, None, list[Reply | Failure | None]]:
    """Yield the answer's chunks while samples are drawn; return all results."""
    samples = replace(wanted, draws=wanted.draws[1:], deadlines=wanted.deadlines[1:])
    futures = [requests.start(draw) for draw in samples.draws]
    chunks: list[Any] = []
    try:
        with requests.slot(), closing(door.stream()) as stream:
            for chunk in stream:
                chunks.append(chunk)
                yield chunk
        answer: Reply | Failure = counted(door.join(chunks), 1)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return [Failure(error=error), *(None for _ in futures)]
    return [answer, *requests.wait(samples, futures)]


def _settled(wanted: Draws, futures: list[Future[Reply | Failure]]) -> bool:
    """Return whether nothing is left to wait for."""
    now = time.monotonic()
    for draw, future in zip(wanted.draws, futures, strict=True):
        failed = future.done() and isinstance(future.result(), Failure)
        if draw.role == "answer" and failed:
            return True
    return all(
        future.done() or (deadline is not None and deadline <= now)
        for future, deadline in zip(futures, wanted.deadlines, strict=True)
    )


def _next_deadline(
    wanted: Draws, futures: list[Future[Reply | Failure]]
) -> float | None:
    """Return the seconds until the next deadline of an open request."""
    now = time.monotonic()
    open_until = [
        deadline - now
        for future, deadline in zip(futures, wanted.deadlines, strict=True)
        if not future.done() and deadline is not None and deadline > now
    ]
    return min(open_until) if open_until else None
