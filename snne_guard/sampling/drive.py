"""Sending the requests of one guarded call, by threads or by tasks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import Context
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from snne_guard.sampling.breaker import Circuit, ShedError
from snne_guard.sampling.collect import Collector, Draw, Reply, count_by
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.retry import aretried, perhaps_billed, rejects, retried
from snne_guard.types import Cost, Sample

__all__ = ["DrawListener", "TaskDraws", "ThreadDraws"]


class DrawListener(Protocol):
    """Told of each request: when it goes out, and when it has ended."""

    def __call__(
        self,
        draw: Draw,
        /,
        *,
        ended: bool,
        samples: tuple[Sample, ...] = (),
        error: BaseException | None = None,
        cost: Cost | None = None,
    ) -> None:
        """Take note; must not raise and not wait."""
        ...


@dataclass(slots=True, kw_only=True)
class _Draws:
    """What threads and tasks share: the collector and what follows from a result."""

    collector: Collector
    listener: DrawListener
    limiter: Limiter
    max_attempts: int
    circuit: Circuit
    caller: str
    flying: set[int] = field(default_factory=set[int])

    def succeeded(self, draw: Draw, reply: Reply) -> list[Draw]:
        self.flying.discard(draw.index)
        self.circuit.ended()
        follow = self.collector.arrived(draw, reply)
        self.listener(draw, ended=True, samples=reply.samples, cost=reply.cost)
        return follow

    def admit(self) -> None:
        """Raise where a request may not go out, since the provider is failing."""
        if not self.circuit.admits(self.caller):
            raise ShedError

    def sent(self, draw: Draw) -> None:
        self.flying.add(draw.index)
        self.circuit.began()
        self.collector.sent()

    def came_to_nothing(self, draw: Draw, error: BaseException) -> None:
        self.flying.discard(draw.index)
        self.circuit.ended(error)
        if perhaps_billed(error):
            self.collector.lost()

    def failed(self, draw: Draw, error: BaseException) -> list[Draw]:
        follow = self.collector.failed(draw, error, rejects_n=rejects(error, "n"))
        self.listener(draw, ended=True, error=error)
        return follow


class ThreadDraws:
    """Sends each request in a thread of its own.

    The threads are daemons: a provider that never answers must not keep the process
    from ending. What arrives after ``stop`` is dropped.

    Args:
        collector: Says what to send and keeps what came back.
        send: Sends one request and returns its reply.
        listener: Told of each request.
        limiter: Cap on the requests in flight.
        max_attempts: Requests sent for one draw before it counts as failed.
        context: Context that each thread runs in a copy of.
        circuit: Whether the provider is failing.
        caller: Id of the guarded call.

    Attributes:
        unfinished: Whether a request was in flight when it was stopped.
    """

    def __init__(
        self,
        collector: Collector,
        send: Callable[[Draw], Reply],
        *,
        listener: DrawListener,
        limiter: Limiter,
        max_attempts: int,
        context: Context,
        circuit: Circuit | None = None,
        caller: str = "",
    ) -> None:
        self._draws = _Draws(
            collector=collector,
            listener=listener,
            limiter=limiter,
            max_attempts=max_attempts,
            circuit=circuit or Circuit(),
            caller=caller,
        )
        self._send, self._context = send, context
        self._lock = threading.Lock()
        self._open = 0
        self.unfinished = False
        self._settled = threading.Event()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Send the first requests."""
        with self._lock:
            self._launch(self._draws.collector.first())

    def wait(self, timeout: float | None) -> bool:
        """Return True once nothing is in flight, False after ``timeout`` seconds."""
        return self._settled.wait(timeout)

    def wait_rounds(
        self, patience: Callable[[], float | None], should_stop: Callable[[], bool]
    ) -> bool:
        """Wait for this round and send the next, until all have come back.

        Args:
            patience: Seconds that there are left.
            should_stop: Asked after each round but the last whether it was enough.

        Returns:
            False where the time was up first.
        """
        while self.wait(patience()):
            if self._draws.collector.complete or should_stop():
                return True
            if _is_up(patience()):
                return False
            with self._lock:
                self._settled.clear()
                self._launch(self._draws.collector.next_round())
        return False

    def stop(self) -> None:
        """Take in nothing more."""
        with self._lock:
            self.unfinished = self.unfinished or bool(self._draws.flying)
            self._stopped.set()

    def _launch(self, draws: list[Draw]) -> None:
        self._open += len(draws)
        for draw in draws:
            run = partial(self._context.copy().run, self._run, draw)
            thread = threading.Thread(target=run, daemon=True, name="snne-guard-draw")
            try:
                thread.start()
            except RuntimeError as error:  # the process may start no more threads
                self._open -= 1
                self._draws.failed(draw, error)
        if not self._open:
            self._settled.set()

    def _run(self, draw: Draw) -> None:
        self._draws.listener(draw, ended=False)
        count_by(partial(self._count, draw))
        try:
            reply = self._attempt(draw)
        except BaseException as error:  # noqa: BLE001 - recorded, and a thread has no caller
            settle = partial(self._draws.failed, draw, error)
        else:
            settle = partial(self._draws.succeeded, draw, reply)
        with self._lock:
            if self._stopped.is_set():
                return
            follow = settle()
            self._open -= 1
            self._launch(follow)

    def _attempt(self, draw: Draw) -> Reply:
        attempts = self._draws.max_attempts
        send = partial(self._send_in_place, draw)
        return retried(send, attempts=attempts, stop=self._stopped)

    def _send_in_place(self, draw: Draw) -> Reply:
        with self._draws.limiter.hold():
            self._draws.admit()
            self._count(draw)
            try:
                return self._send(draw)
            except BaseException as error:
                with self._lock:
                    if not self._stopped.is_set():
                        self._draws.came_to_nothing(draw, error)
                raise

    def _count(self, draw: Draw) -> None:
        with self._lock:
            if self._stopped.is_set():
                raise _StoppedError
            self._draws.sent(draw)


class TaskDraws:
    """Sends each request in a task of its own.

    Args:
        collector: Says what to send and keeps what came back.
        send: Sends one request and returns its reply.
        listener: Told of each request.
        limiter: Cap on the requests in flight.
        max_attempts: Requests sent for one draw before it counts as failed.
        context: Context that each task runs in a copy of.
        circuit: Whether the provider is failing.
        caller: Id of the guarded call.

    Attributes:
        unfinished: Whether a request was in flight when it was stopped.
    """

    def __init__(
        self,
        collector: Collector,
        send: Callable[[Draw], Awaitable[Reply]],
        *,
        listener: DrawListener,
        limiter: Limiter,
        max_attempts: int,
        context: Context,
        circuit: Circuit | None = None,
        caller: str = "",
    ) -> None:
        self._draws = _Draws(
            collector=collector,
            listener=listener,
            limiter=limiter,
            max_attempts=max_attempts,
            circuit=circuit or Circuit(),
            caller=caller,
        )
        self._send, self._context = send, context
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = 0
        self.unfinished = False
        self._settled = asyncio.Event()
        self._stopped = False

    def start(self) -> None:
        """Send the first requests."""
        self._launch(self._draws.collector.first())

    async def wait(self, timeout: float | None) -> bool:  # noqa: ASYNC109 - mirrors the thread twin
        """Return True once nothing is in flight, False after ``timeout`` seconds."""
        if self._settled.is_set():  # wait_for asks too late where no time is left
            return True
        try:
            await asyncio.wait_for(self._settled.wait(), timeout)
        except TimeoutError:
            return False
        return True

    async def wait_rounds(
        self,
        patience: Callable[[], float | None],
        should_stop: Callable[[], Awaitable[bool]],
    ) -> bool:
        """Wait for this round and send the next, until all have come back.

        Args:
            patience: Seconds that there are left.
            should_stop: Asked after each round but the last whether it was enough.

        Returns:
            False where the time was up first.
        """
        while await self.wait(patience()):
            if self._draws.collector.complete or await should_stop():
                return True
            if _is_up(patience()):
                return False
            self._settled.clear()
            self._launch(self._draws.collector.next_round())
        return False

    async def stop(self) -> None:
        """End what is in flight and wait until it has ended."""
        self.unfinished = self.unfinished or bool(self._draws.flying)
        self._stopped = True
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _launch(self, draws: list[Draw]) -> None:
        self._open += len(draws)
        if not self._open:
            self._settled.set()
        for draw in draws:
            task = asyncio.get_running_loop().create_task(
                self._run(draw), context=self._context.copy()
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, draw: Draw) -> None:
        self._draws.listener(draw, ended=False)
        count_by(partial(self._count, draw))
        try:
            reply = await self._attempt(draw)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - recorded; a client may cancel itself
            settle = partial(self._draws.failed, draw, error)
        else:
            settle = partial(self._draws.succeeded, draw, reply)
        # A client may also ignore that we have cancelled it.
        if self._stopped:
            return
        follow = settle()
        self._open -= 1
        self._launch(follow)

    async def _attempt(self, draw: Draw) -> Reply:
        send = partial(self._send_in_place, draw)
        return await aretried(send, attempts=self._draws.max_attempts)

    async def _send_in_place(self, draw: Draw) -> Reply:
        async with self._draws.limiter.ahold():
            self._draws.admit()
            self._count(draw)
            try:
                return await self._send(draw)
            except BaseException as error:
                if not self._stopped:
                    self._draws.came_to_nothing(draw, error)
                raise

    def _count(self, draw: Draw) -> None:
        if self._stopped:
            raise _StoppedError
        self._draws.sent(draw)


def _is_up(patience: float | None) -> bool:
    """Return whether a request sent now would be cut off at once."""
    return patience is not None and patience <= 0


class _StoppedError(Exception):
    """The guarded call ended before this request could be sent."""
