"""Asking a model the questions of a preflight, by threads or by tasks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context
from dataclasses import replace
from typing import Protocol

from snne_guard.assess.preflight import Examiner, LateError, Preflight
from snne_guard.sampling.collect import Draw, Reply, count_by
from snne_guard.sampling.probes import Ask, Seen
from snne_guard.sampling.retry import aretried, retried
from snne_guard.sampling.within import cancelled_by_caller_only

__all__ = ["AsyncExamination", "AsyncProbe", "Examination", "Probe"]

_ATTEMPTS = 2


class Probe(Protocol):
    """Sends one request, through the code that draws samples."""

    def send(self, draw: Draw, /) -> Reply:
        """Send it."""
        ...

    def look(self, reply: Reply, /) -> Seen:
        """Return what there is to be seen of its reply."""
        ...


class AsyncProbe(Protocol):
    """The twin of ``Probe`` for tasks."""

    async def send(self, draw: Draw, /) -> Reply:
        """Send it."""
        ...

    def look(self, reply: Reply, /) -> Seen:
        """Return what there is to be seen of its reply."""
        ...


class Examination(Examiner):
    """Asks a model in threads and says what was found out."""

    def run(self, begin: Callable[[Ask], Probe], context: Context) -> Preflight:
        """Ask, and return what was found out.

        Args:
            begin: Makes the probe of one request; called where ``run`` is.
            context: Context that the requests run in a copy of.

        Raises:
            GuardTimeoutError: If not even the first reply came in time.
            Exception: What the provider raised instead of it.
        """
        stop = threading.Event()
        ask = self.next(None)
        try:
            while ask is not None:
                ask = self.next(self._asked(ask, begin(ask), context.copy(), stop))
        finally:
            stop.set()
        return self.report()

    def _asked(
        self, ask: Ask, probe: Probe, context: Context, stop: threading.Event
    ) -> Seen:
        future: Future[Seen] = Future()

        def work() -> None:
            future.set_result(context.run(self._ask, ask, probe, stop))

        if self.remaining:
            thread = threading.Thread(target=work, daemon=True, name="snne-guard-probe")
            thread.start()
        try:
            return future.result(self.remaining)
        except TimeoutError:
            return Seen(error=LateError())

    def _ask(self, ask: Ask, probe: Probe, stop: threading.Event) -> Seen:
        count_by(self.count)
        begun = time.monotonic()
        try:
            with cancelled_by_caller_only():
                reply = self._send(probe, Draw(index=ask.index, n=ask.n), stop)
        except Exception as error:  # noqa: BLE001 - part of what is found out
            return Seen(error=error)
        return replace(probe.look(reply), seconds=time.monotonic() - begun)

    def _send(self, probe: Probe, draw: Draw, stop: threading.Event) -> Reply:
        def send() -> Reply:
            with self.assessor.limiter.hold():
                self.count()
                return probe.send(draw)

        attempts = min(_ATTEMPTS, self.assessor.plan.max_attempts)
        return retried(send, attempts=attempts, stop=stop)


class AsyncExamination(Examiner):
    """The twin of ``Examination`` for tasks."""

    async def run(
        self, begin: Callable[[Ask], AsyncProbe], context: Context
    ) -> Preflight:
        """Ask, and return what was found out.

        Args:
            begin: Makes the probe of one request; called where ``run`` is.
            context: Context that the requests run in a copy of.

        Raises:
            GuardTimeoutError: If not even the first reply came in time.
            Exception: What the provider raised instead of it.
        """
        ask = self.next(None)
        while ask is not None:
            ask = self.next(await self._asked(ask, begin(ask), context.copy()))
        return self.report()

    async def _asked(self, ask: Ask, probe: AsyncProbe, context: Context) -> Seen:
        if not self.remaining:
            return Seen(error=LateError())
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._ask(ask, probe), context=context)
        try:
            done, _ = await asyncio.wait([task], timeout=self.remaining)
        finally:
            task.cancel()
            await asyncio.wait([task])
        return task.result() if done else Seen(error=LateError())

    async def _ask(self, ask: Ask, probe: AsyncProbe) -> Seen:
        count_by(self.count)
        begun = time.monotonic()
        try:
            with cancelled_by_caller_only():
                reply = await self._send(probe, Draw(index=ask.index, n=ask.n))
        except Exception as error:  # noqa: BLE001 - part of what is found out
            return Seen(error=error)
        return replace(probe.look(reply), seconds=time.monotonic() - begun)

    async def _send(self, probe: AsyncProbe, draw: Draw) -> Reply:
        async def send() -> Reply:
            async with self.assessor.limiter.ahold():
                self.count()
                return await probe.send(draw)

        attempts = min(_ATTEMPTS, self.assessor.plan.max_attempts)
        return await aretried(send, attempts=attempts)
