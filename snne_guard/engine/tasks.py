"""Carry out a guarded call in asyncio tasks.

Draws in flight end with the call: they are cancelled and awaited. What scores long
texts, and the user's own functions, run in daemon threads, off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self

from snne_guard.engine.call import guarded_call
from snne_guard.engine.observers import anotify
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
from snne_guard.engine.retrying import retries_in_task
from snne_guard.engine.threads import (
    Results,
    has_answer,
    in_daemon_thread,
    is_past,
    seconds_until_first,
)


async def run(request: Request, sender: Sender) -> Outcome:
    """Carry out a call and return how it ended, as ``threads.run`` does."""
    items = _carry_out(request, sender, stream_from=None)
    async with aclosing(items):
        outcome: Outcome = await anext(items)
    return outcome


def stream(request: Request, sender: StreamingSender) -> AsyncGenerator[Any]:
    """Carry out a call whose answer cannot be withheld, as ``threads.stream`` does."""
    return _carry_out(request, sender, stream_from=sender)


async def _carry_out(
    request: Request, sender: Sender, *, stream_from: StreamingSender | None
) -> AsyncGenerator[Any]:
    """Do what the engine wants until the call ends, as in ``threads``."""
    engine = guarded_call(request)
    async with _InFlight(request, sender) as in_flight:
        try:
            wanted = next(engine)
            while True:
                try:
                    if isinstance(wanted, Work):
                        result: Any = await _work(wanted)
                    elif stream_from is None or not has_answer(wanted):
                        result = await in_flight.wait(wanted, in_flight.start(wanted))
                    else:
                        result = []
                        chunks = _stream(wanted, stream_from, in_flight, result)
                        async with aclosing(chunks):
                            async for chunk in chunks:
                                yield chunk
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
    await anotify(request.settings.observers, outcome.assessment)
    if isinstance(outcome.error, GeneratorExit):
        raise outcome.error  # a generator that is being closed may not yield
    yield outcome


async def _stream(
    wanted: Draws, sender: StreamingSender, in_flight: _InFlight, results: Results
) -> AsyncGenerator[Any]:
    """Yield the answer's chunks while samples are drawn; add all results to a list."""
    answer_draw, *samples = wanted
    tasks = in_flight.start(samples)
    try:
        streamed = sender.astream(answer_draw)
        async with in_flight.slot(answer_draw), aclosing(streamed) as chunks:
            async for chunk in chunks:
                yield chunk
        answer = sender.streamed_answer()
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an outcome
        results += [Failure(error=_raised(error)), *(None for _ in tasks)]
    else:
        results += [answer, *await in_flight.wait(samples, tasks)]


def _raised(error: Exception | asyncio.CancelledError) -> Exception:
    """Return the exception of a model; a cancellation of the call goes on.

    Passed on, a cancellation by the model would look as if somebody had cancelled the
    call.
    """
    if isinstance(error, Exception):
        return error
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise error
    cancelled = ConnectionAbortedError("the model cancelled its own request")
    cancelled.__cause__ = error
    return cancelled


async def _work(wanted: Work) -> Any:  # noqa: ANN401 - whatever the function returns
    try:
        if wanted.quick:
            return wanted.function()
        seconds = seconds_until_first([wanted.deadline])
        return await asyncio.wait_for(in_thread(wanted.function), seconds)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)


async def in_thread(function: Callable[[], Any]) -> Any:  # noqa: ANN401 - as above
    """Return the result of a user's function, which may hold up its thread."""
    return await asyncio.wrap_future(in_daemon_thread(function))


class _InFlight:
    """The requests in flight of one call; leaving cancels and awaits them."""

    def __init__(self, request: Request, sender: Sender) -> None:
        self._state = request.state
        self._sender = sender
        self._tasks: list[asyncio.Task[Response | Failure]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, draws: Sequence[Draw]) -> list[asyncio.Task[Response | Failure]]:
        """Send each request in a task of its own."""
        tasks = [asyncio.create_task(self._send(draw)) for draw in draws]
        self._tasks += tasks
        return tasks

    async def wait(
        self, draws: Sequence[Draw], tasks: Sequence[asyncio.Task[Response | Failure]]
    ) -> Results:
        """Return the outcomes of requests at their deadlines."""
        until = {task: draw.deadline for task, draw in zip(tasks, draws, strict=True)}
        answer = tasks[0] if has_answer(draws) else None
        waiting = set(tasks)
        while waiting:
            seconds = seconds_until_first(until[task] for task in waiting)
            done, waiting = await asyncio.wait(
                waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if answer in done and isinstance(answer.result(), Failure):
                break
            waiting = {task for task in waiting if not is_past(until[task])}
        return [task.result() if task.done() else None for task in tasks]

    @asynccontextmanager
    async def slot(self, draw: Draw) -> AsyncGenerator[None]:
        """Hold one of the guard's slots; answers go ahead of samples."""
        limiter = self._state.limiter_of(draw)
        if limiter.size is None:
            yield
            return
        slot = limiter.acquire(first=draw.role == "answer")
        try:
            if not slot.done():
                await asyncio.wrap_future(slot)
            yield
        finally:
            limiter.release(slot)

    async def _send(self, draw: Draw) -> Response | Failure:
        attempts = 0

        async def attempt() -> Response:
            nonlocal attempts
            async with self.slot(draw):
                attempts += 1
                return await self._sender.asend(draw)

        try:
            response = await (retries_in_task()(attempt) if draw.retry else attempt())
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - an outcome
            return Failure(error=_raised(error), attempts=attempts)
        return with_failed(response, attempts - 1)
