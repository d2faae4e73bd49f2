"""Carry out a guarded call in asyncio tasks.

Draws in flight end with the call: they are cancelled and awaited. What scores long
texts, and the user's own functions, run in daemon threads, off the event loop.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

from snne_guard.call import Call, Draws, Outcome, Work
from snne_guard.drivers.door import Door, StreamingDoor
from snne_guard.drivers.limits import Limiter
from snne_guard.drivers.threads import counted, in_daemon_thread
from snne_guard.observers import Observers
from snne_guard.sampling.replies import Draw, Failure, Reply
from snne_guard.sampling.retrying import asynchronous_retrying

__all__ = ["run", "stream"]


async def run(
    call: Call, door: Door, *, limiter: Limiter, observers: Observers, retry: bool
) -> Outcome:
    """Carry out a call and return how it ended, as ``threads.run`` does."""
    requests = _Requests(door, limiter, retry=retry)
    try:
        wanted = next(call)
        while True:
            try:
                result = await _carry_out(wanted, requests)
            except BaseException as error:  # noqa: BLE001 - the engine ends the call
                wanted = call.throw(error)
            else:
                wanted = call.send(result)
    except StopIteration as end:
        outcome: Outcome = end.value
    finally:
        await requests.end()
    await observers.atell(outcome.assessment)
    return outcome


async def stream(
    call: Call,
    door: StreamingDoor,
    *,
    limiter: Limiter,
    observers: Observers,
    retry: bool,
) -> AsyncGenerator[Any]:
    """Carry out a call whose answer cannot be withheld, as ``threads.stream`` does."""
    requests = _Requests(door, limiter, retry=retry)
    try:
        wanted = next(call)
        while True:
            try:
                if isinstance(wanted, Draws) and wanted.draws[0].role == "answer":
                    answer = _Answer(wanted, door, requests)
                    async with aclosing(answer.chunks()) as chunks:
                        async for chunk in chunks:
                            yield chunk
                    result: Any = await answer.results()
                else:
                    result = await _carry_out(wanted, requests)
            except BaseException as error:  # noqa: BLE001 - the engine ends the call
                wanted = call.throw(error)
            else:
                wanted = call.send(result)
    except StopIteration as end:
        outcome: Outcome = end.value
    finally:
        await requests.end()
    await observers.atell(outcome.assessment)
    if isinstance(outcome.error, GeneratorExit):
        raise outcome.error
    yield outcome


class _Requests:
    """The requests in flight of one call."""

    def __init__(self, door: Door, limiter: Limiter, *, retry: bool) -> None:
        self._door = door
        self._retry = retry
        self._limiter = limiter
        self._tasks: list[asyncio.Task[Reply | Failure]] = []

    async def end(self) -> None:
        """Cancel what is still in flight and wait until it has ended."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def start(self, draw: Draw) -> asyncio.Task[Reply | Failure]:
        """Send a request in a task of its own."""
        task = asyncio.create_task(self._send(draw))
        self._tasks.append(task)
        return task

    async def wait(
        self, wanted: Draws, tasks: list[asyncio.Task[Reply | Failure]]
    ) -> list[Reply | Failure | None]:
        """Return what came of requests by their deadlines."""
        until = dict(zip(tasks, wanted.deadlines, strict=True))
        answers = {
            task
            for task, draw in zip(tasks, wanted.draws, strict=True)
            if draw.role == "answer"
        }
        waiting = set(tasks)
        while waiting:
            limits = [until[task] for task in waiting]
            given = [limit for limit in limits if limit is not None]
            seconds = max(0.0, min(given) - time.monotonic()) if given else None
            done, waiting = await asyncio.wait(
                waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if any(isinstance(task.result(), Failure) for task in done & answers):
                break
            now = time.monotonic()
            waiting = {one for one in waiting if (until[one] or math.inf) > now}
        return [task.result() if task.done() else None for task in tasks]

    @asynccontextmanager
    async def slot(self, *, first: bool = True) -> AsyncGenerator[None]:
        """Hold a place among the requests in flight, as answers do before samples."""
        place = self._limiter.acquire(first=first)
        try:
            await asyncio.wrap_future(place)
            yield
        finally:
            self._limiter.release(place)

    async def _send(self, draw: Draw) -> Reply | Failure:
        attempts = 0

        async def attempt() -> Reply:
            nonlocal attempts
            async with self.slot(first=draw.role == "answer"):
                attempts += 1
                return await self._door.asend(draw)

        try:
            reply = await (
                asynchronous_retrying()(attempt) if self._retry else attempt()
            )
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
        return counted(reply, attempts)


class _Answer:
    """An answer that is streamed while its samples are drawn."""

    def __init__(self, wanted: Draws, door: StreamingDoor, requests: _Requests) -> None:
        self._door, self._requests = door, requests
        self._samples = replace(
            wanted, draws=wanted.draws[1:], deadlines=wanted.deadlines[1:]
        )
        self._tasks = [requests.start(draw) for draw in self._samples.draws]
        self._reply: Reply | Failure | None = None

    async def chunks(self) -> AsyncGenerator[Any]:
        """Yield the chunks as they come."""
        seen: list[Any] = []
        try:
            slot, stream = self._requests.slot(), aclosing(self._door.astream())
            async with slot, stream as chunks:
                async for chunk in chunks:
                    seen.append(chunk)
                    yield chunk
            self._reply = counted(self._door.join(seen), 1)
        except Exception as error:  # noqa: BLE001 - a failure is an outcome
            self._reply = Failure(error=error)

    async def results(self) -> list[Reply | Failure | None]:
        """Return the answer and its samples, once the chunks are through."""
        if isinstance(self._reply, Failure):
            return [self._reply, *(None for _ in self._tasks)]
        return [self._reply, *await self._requests.wait(self._samples, self._tasks)]


async def _carry_out(wanted: Draws | Work, requests: _Requests) -> Any:  # noqa: ANN401
    if isinstance(wanted, Draws):
        return await requests.wait(
            wanted, [requests.start(draw) for draw in wanted.draws]
        )
    try:
        if wanted.quick:
            return wanted.function()
        remaining = None
        if wanted.deadline is not None:
            remaining = max(0.0, wanted.deadline - time.monotonic())
        future = asyncio.wrap_future(in_daemon_thread(wanted.function))
        return await asyncio.wait_for(future, remaining)
    except Exception as error:  # noqa: BLE001 - a failure is an outcome
        return Failure(error=error)
