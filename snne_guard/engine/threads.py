"""Carry out a guarded call in threads.

The threads are daemons of the call's own: nested guards cannot starve one another, and
a provider that hangs cannot keep the process from ending. A request that is past its
deadline is left behind; it ends by the client's own timeout.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, Self

from snne_guard.engine.call import guarded_call
from snne_guard.engine.observers import notify
from snne_guard.engine.protocol import (
    Draw,
    Draws,
    Failure,
    Outcome,
    Response,
    Sender,
    StreamingSender,
    Work,
    with_failed,
)
from snne_guard.engine.request import Request
from snne_guard.engine.retrying import retries

Results = list[Response | Failure | None]
"""What came of requests: None for one that was open at its deadline."""


def run(request: Request, sender: Sender) -> Outcome:
    """Carry out a call and return how it ended; what interrupted it is in there too."""
    (outcome,) = _carry_out(request, sender, stream_from=None)
    ended: Outcome = outcome
    return ended


def stream(request: Request, sender: StreamingSender) -> Generator[Any]:
    """Carry out a call that withholds nothing: yield its chunks, then the outcome."""
    return _carry_out(request, sender, stream_from=sender)


def _carry_out(
    request: Request, sender: Sender, *, stream_from: StreamingSender | None
) -> Generator[Any]:
    """Do what the engine wants until the call ends; yield chunks, then the outcome."""
    engine = guarded_call(request)
    with _InFlight(request, sender) as in_flight:
        try:
            wanted = next(engine)
            while True:
                try:
                    if isinstance(wanted, Work):
                        result: Any = _work(wanted)
                    elif stream_from is None or not has_answer(wanted):
                        result = in_flight.wait(wanted, in_flight.start(wanted))
                    else:
                        result = yield from _stream(wanted, stream_from, in_flight)
                except BaseException as error:  # noqa: BLE001 - the engine ends the call
                    # Thrown in, so that even an interrupted call has its record: the
                    # engine counts what is open and returns, which ends the loop.
                    wanted = engine.throw(error)
                else:
                    wanted = engine.send(result)
        # ``next``, ``send`` and ``throw`` can each be where the engine returns.
        except StopIteration as end:
            outcome: Outcome = end.value
    # Outside of ``with``, so that no observer waits for samples that are left behind.
    request.state.collect(outcome.assessment)
    notify(request.settings.observers, outcome.assessment)
    if isinstance(outcome.error, GeneratorExit):
        raise outcome.error  # a generator that is being closed may not yield
    yield outcome


def _stream(
    wanted: Draws, sender: StreamingSender, in_flight: _InFlight
) -> Generator[Any, None, Results]:
    """Yield the answer's chunks while samples are drawn; return all results."""
    answer_draw, *samples = wanted
    futures = in_flight.start(samples)
    try:
        with in_flight.slot(answer_draw), closing(sender.stream(answer_draw)) as chunks:
            yield from chunks
        answer = sender.streamed_answer()
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return [Failure(error=error), *(None for _ in futures)]
    return [answer, *in_flight.wait(samples, futures)]


def _work(wanted: Work) -> Any:  # noqa: ANN401 - whatever the function returns
    try:
        if wanted.deadline is None or wanted.quick:
            return wanted.function()
        remaining = seconds_until_first([wanted.deadline])
        return in_daemon_thread(wanted.function).result(remaining)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)


class _InFlight:
    """The requests in flight of one call; leaving stops the driver's own retries."""

    def __init__(self, request: Request, sender: Sender) -> None:
        self._state = request.state
        self._sender = sender
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def start(self, draws: Sequence[Draw]) -> list[Future[Response | Failure]]:
        """Send each request in a thread of its own.

        Without deadlines and limit the answer needs none: it is sent from this one.
        """
        waits = self._state.limiter.size is not None or any(
            each.deadline for each in draws
        )
        here = draws[:1] if has_answer(draws) and not waits else draws[:0]
        away = draws[len(here) :]
        # Samples leave first: sending the answer from here blocks until it has come.
        futures = [in_daemon_thread(partial(self._send, draw)) for draw in away]
        return [*map(self._send_here, here), *futures]

    def wait(
        self, draws: Sequence[Draw], futures: Sequence[Future[Response | Failure]]
    ) -> Results:
        """Return the outcomes of requests at their deadlines."""
        until = {
            future: draw.deadline for future, draw in zip(futures, draws, strict=True)
        }
        answer = futures[0] if has_answer(draws) else None
        waiting = set(futures)
        while waiting:
            seconds = seconds_until_first(until[future] for future in waiting)
            done, waiting = wait(waiting, seconds, FIRST_COMPLETED)
            if answer in done and isinstance(answer.result(), Failure):
                break
            waiting = {future for future in waiting if not is_past(until[future])}
        return [future.result() if future.done() else None for future in futures]

    @contextmanager
    def slot(self, draw: Draw) -> Generator[None]:
        """Hold one of the guard's slots; answers go ahead of samples."""
        limiter = self._state.limiter_of(draw)
        if limiter.size is None:
            yield
            return
        slot = limiter.acquire(first=draw.role == "answer")
        try:
            slot.result()
            yield
        finally:
            limiter.release(slot)

    def _send_here(self, draw: Draw) -> Future[Response | Failure]:
        sent: Future[Response | Failure] = Future()
        sent.set_result(self._send(draw))
        return sent

    def _send(self, draw: Draw) -> Response | Failure:
        attempts = 0

        def attempt() -> Response:
            nonlocal attempts
            with self.slot(draw):
                if self._ended.is_set():  # nobody waits for it any more
                    msg = "the call ended before the request was sent"
                    raise CancelledError(msg)
                attempts += 1
                return self._sender.send(draw)

        try:
            response = retries(self._ended)(attempt) if draw.retry else attempt()
        except KeyboardInterrupt:  # it ends the call, not one request
            raise
        except BaseException as error:  # noqa: BLE001 - a failure is an outcome
            return Failure(error=error, attempts=attempts)
        return with_failed(response, attempts - 1)


def in_daemon_thread(function: Callable[[], Any]) -> Future[Any]:
    """Run a function in a daemon thread and in a copy of the caller's context."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def work() -> None:
        try:
            result = function()
        except StopIteration as error:  # asyncio's futures cannot hold it
            future.set_exception(RuntimeError(f"a function raised {error!r}"))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits
            future.set_exception(error)
        else:
            future.set_result(result)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
    return future


def has_answer(draws: Sequence[Draw]) -> bool:
    """Look for the answer among some requests; it is the first then."""
    return any(draw.role == "answer" for draw in draws)


def seconds_until_first(deadlines: Iterable[float | None]) -> float | None:
    """Return the seconds until the first of some deadlines, None where none is set."""
    given = [deadline for deadline in deadlines if deadline is not None]
    return max(0.0, min(given) - time.monotonic()) if given else None


def is_past(deadline: float | None) -> bool:
    """Recognise a deadline that has passed; None never does."""
    return deadline is not None and deadline <= time.monotonic()
