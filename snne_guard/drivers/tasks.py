"""Carry out a guarded call in asyncio tasks.

Draws in flight end with the call: they are cancelled and awaited. What scores long
texts, and the user's own functions, run in daemon threads, off the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self

from snne_guard.call import Call, Draws, Outcome, Sender, StreamingSender, Work
from snne_guard.drivers import DriverOptions
from snne_guard.drivers.threads import (
    Results,
    in_daemon_thread,
    is_past,
    seconds_until_first,
)
from snne_guard.sampling.replies import Draw, Failure, Reply, with_failed
from snne_guard.sampling.retrying import asynchronous_retrying

__all__ = ["run", "stream"]


async def run(call: Call, sender: Sender, options: DriverOptions) -> Outcome:
    """Carry out a call and return how it ended, as ``threads.run`` does."""
    items = _carry_out(call, _InFlight(sender, options), stream_from=None)
    async with aclosing(items):
        outcome: Outcome = await anext(items)
    return outcome


def stream(
    call: Call, sender: StreamingSender, options: DriverOptions
) -> AsyncGenerator[Any]:
    """Carry out a call whose answer cannot be withheld, as ``threads.stream`` does."""
    return _carry_out(call, _InFlight(sender, options), stream_from=sender)


async def _carry_out(
    call: Call, in_flight: _InFlight, *, stream_from: StreamingSender | None
) -> AsyncGenerator[Any]:
    """Do what the engine wants until the call ends, as in ``threads``."""
    async with in_flight:
        try:
            wanted = next(call)
            while True:
                try:
                    if not isinstance(wanted, Draws):
                        result: Any = await _work(wanted)
                    elif stream_from is None or not wanted.with_answer:
                        result = await in_flight.wait(wanted, in_flight.start(wanted))
                    else:
                        answer = _StreamedAnswer(wanted, stream_from, in_flight)
                        async with aclosing(answer.chunks()) as chunks:
                            async for chunk in chunks:
                                yield chunk
                        result = await answer.results()
                except BaseException as error:  # noqa: BLE001 - the engine ends the call
                    wanted = call.throw(error)
                else:
                    wanted = call.send(result)
        except StopIteration as end:
            outcome: Outcome = end.value
    await in_flight.options.observers.anotify(outcome.assessment)
    if isinstance(outcome.error, GeneratorExit):
        raise outcome.error
    yield outcome


class _StreamedAnswer:
    """An answer that is streamed while its samples are drawn."""

    def __init__(
        self, wanted: Draws, sender: StreamingSender, in_flight: _InFlight
    ) -> None:
        self._sender, self._in_flight = sender, in_flight
        self._samples = wanted.samples
        self._tasks = in_flight.start(self._samples)
        self._reply: Reply | Failure | None = None

    async def chunks(self) -> AsyncGenerator[Any]:
        """Yield the chunks as they come."""
        try:
            slot, stream = self._in_flight.slot(), aclosing(self._sender.astream())
            async with slot, stream as chunks:
                async for chunk in chunks:
                    yield chunk
            self._reply = self._sender.streamed()
        except Exception as error:  # noqa: BLE001 - a failure is an outcome
            self._reply = Failure(error=error)

    async def results(self) -> Results:
        """Return the answer and its samples, once the chunks are through."""
        if isinstance(self._reply, Failure):
            return [self._reply, *(None for _ in self._tasks)]
        samples = await self._in_flight.wait(self._samples, self._tasks)
        return [self._reply, *samples]


async def _work(wanted: Work) -> Any:  # noqa: ANN401 - whatever the function returns
    try:
        if wanted.quick:
            return wanted.function()
        future = asyncio.wrap_future(in_daemon_thread(wanted.function))
        return await asyncio.wait_for(future, seconds_until_first([wanted.deadline]))
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)


class _InFlight:
    """The requests in flight of one call; leaving cancels and awaits them."""

    def __init__(self, sender: Sender, options: DriverOptions) -> None:
        self.options = options
        self._sender = sender
        self._tasks: list[asyncio.Task[Reply | Failure]] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, wanted: Draws) -> list[asyncio.Task[Reply | Failure]]:
        """Send each request in a task of its own."""
        tasks = [asyncio.create_task(self._send(draw)) for draw in wanted.draws]
        self._tasks += tasks
        return tasks

    async def wait(
        self, wanted: Draws, tasks: Sequence[asyncio.Task[Reply | Failure]]
    ) -> Results:
        """Return what came of requests by their deadlines."""
        until = dict(zip(tasks, wanted.deadlines, strict=True))
        answer = tasks[0] if wanted.with_answer else None
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
    async def slot(self, *, first: bool = True) -> AsyncGenerator[None]:
        """Hold one of the guard's slots; answers go ahead of samples."""
        slot = self.options.limiter.acquire(first=first)
        try:
            if slot is not None and not slot.done():
                await asyncio.wrap_future(slot)
            yield
        finally:
            self.options.limiter.release(slot)

    async def _send(self, draw: Draw) -> Reply | Failure:
        attempts = 0

        async def attempt() -> Reply:
            nonlocal attempts
            async with self.slot(first=draw.role == "answer"):
                attempts += 1
                return await self._sender.asend(draw)

        try:
            retry = self.options.retry
            reply = await (asynchronous_retrying()(attempt) if retry else attempt())
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            # Nobody cancelled the call: passed on, it would look as if somebody had.
            cancelled = ConnectionAbortedError("the model cancelled its own request")
            cancelled.__cause__ = error
            return Failure(error=cancelled, attempts=attempts)
        except Exception as error:  # noqa: BLE001 - a failure is an outcome
            return Failure(error=error, attempts=attempts)
        return with_failed(reply, attempts - 1)
