"""Asking a model the questions of ``guard.preflight()``, by threads or by tasks."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from typing import Any, cast

from langchain_core.outputs import ChatGeneration, LLMResult

from snne_guard.langchain.core import Request
from snne_guard.langchain.preflight import Examiner, LateError, Preflight
from snne_guard.sampling.collect import Draw, Reply, count_by
from snne_guard.sampling.langchain import AsyncSamples, Samples
from snne_guard.sampling.langchain_runs import AsyncRunLog, RunLog
from snne_guard.sampling.probes import Ask, Seen
from snne_guard.sampling.retry import aretrying, retrying
from snne_guard.types import Sample

__all__ = ["AsyncExamination", "Examination"]

_ATTEMPTS = 2


class Examination(Examiner):
    """Asks a model in threads and says what was found out."""

    def __init__(self, request: Request, *, timeout: float) -> None:
        super().__init__(request, timeout=timeout)
        self._stop = threading.Event()

    def run(self) -> Preflight:
        """Ask, and return what was found out.

        Raises:
            GuardTimeoutError: If the first reply did not come in time.
        """
        try:
            asks = self.next(None)
            while asks:
                asks = self.next(self._wave(asks))
        finally:
            self._stop.set()
        return self.report()

    def _wave(self, asks: Sequence[Ask]) -> list[Seen]:
        if not self.remaining:
            return [Seen(error=LateError()) for _ in asks]
        futures = [self._launch(ask) for ask in asks]
        wait(futures, timeout=self.remaining)
        return [
            future.result() if future.done() else Seen(error=LateError())
            for future in futures
        ]

    def _launch(self, ask: Ask) -> Future[Seen]:
        log = _Log(**self.log_options())
        samples = Samples(**self.sampler(ask)).listen(log)
        future: Future[Seen] = Future()
        context = self.request.context.copy()

        def work() -> None:
            future.set_result(context.run(self._ask, samples, log, ask))

        threading.Thread(target=work, daemon=True, name="snne-guard-probe").start()
        return future

    def _ask(self, samples: Samples, log: _Log, ask: Ask) -> Seen:
        count_by(self.count)
        begun = time.monotonic()
        try:
            reply = self._send(samples, Draw(index=ask.index, n=ask.n))
        except Exception as error:  # noqa: BLE001 - part of what is found out
            return Seen(error=error)
        return _seen(reply, log.result, seconds=time.monotonic() - begun)

    def _send(self, samples: Samples, draw: Draw) -> Reply:
        attempts = min(_ATTEMPTS, self.assessor.plan.max_attempts)
        for attempt in retrying(
            attempts=attempts, stop=self._stop
        ):  # pragma: no branch - it ends by return or an error
            with attempt, self.assessor.limiter.hold():
                self.count()
                return samples.send(draw)
        raise AssertionError  # pragma: no cover - the loop returns or raises


class AsyncExamination(Examiner):
    """The twin of ``Examination`` for tasks."""

    async def run(self) -> Preflight:
        """Ask, and return what was found out.

        Raises:
            GuardTimeoutError: If the first reply did not come in time.
        """
        asks = self.next(None)
        while asks:
            asks = self.next(await self._wave(asks))
        return self.report()

    async def _wave(self, asks: Sequence[Ask]) -> list[Seen]:
        if not self.remaining:
            return [Seen(error=LateError()) for _ in asks]
        loop = asyncio.get_running_loop()
        tasks = [
            loop.create_task(self._launch(ask), context=self.request.context.copy())
            for ask in asks
        ]
        try:
            await asyncio.wait(tasks, timeout=self.remaining)
            late = [not task.done() for task in tasks]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        return [
            Seen(error=LateError()) if is_late else task.result()
            for task, is_late in zip(tasks, late, strict=True)
        ]

    async def _launch(self, ask: Ask) -> Seen:
        log = _AsyncLog(**self.log_options())
        samples = AsyncSamples(**self.sampler(ask)).listen(log)
        count_by(self.count)
        begun = time.monotonic()
        try:
            reply = await self._send(samples, Draw(index=ask.index, n=ask.n))
        except Exception as error:  # noqa: BLE001 - part of what is found out
            return Seen(error=error)
        return _seen(reply, log.result, seconds=time.monotonic() - begun)

    async def _send(self, samples: AsyncSamples, draw: Draw) -> Reply:
        attempts = min(_ATTEMPTS, self.assessor.plan.max_attempts)
        async for attempt in aretrying(
            attempts=attempts
        ):  # pragma: no branch - it ends by return or an error
            with attempt:
                async with self.assessor.limiter.ahold():
                    self.count()
                    return await samples.send(draw)
        raise AssertionError  # pragma: no cover - the loop returns or raises


class _Log(RunLog):
    """Keeps the whole result: a sample has no tokens and no id."""

    result: LLMResult | None = None

    def close(self, run: Any, result: LLMResult) -> None:
        self.result = result
        super().close(run, result)


class _AsyncLog(AsyncRunLog):
    """The twin of ``_Log``."""

    result: LLMResult | None = None

    async def close(self, run: Any, result: LLMResult) -> None:
        self.result = result
        await super().close(run, result)


def _seen(reply: Reply, result: LLMResult | None, *, seconds: float = 0.0) -> Seen:
    generations = [
        generation
        for generation in (result.generations[0] if result else ())
        if isinstance(generation, ChatGeneration)
    ]
    ids = [g.message.response_metadata.get("id") for g in generations]
    pairs = zip(generations, reply.samples, strict=False)
    return Seen(
        reply=reply,
        garbled=any(_is_garbled(*pair) for pair in pairs),
        response_id=next((one for one in ids if isinstance(one, str)), None),
        seconds=seconds,
    )


def _is_garbled(generation: ChatGeneration, sample: Sample) -> bool:
    """Return whether log-probabilities came of which none can be one."""
    if sample.misaligned or sample.token_logprobs is not None:
        return False
    info = {
        **(generation.generation_info or {}),
        **generation.message.response_metadata,
    }
    found: object = info.get("logprobs")
    if isinstance(found, Mapping):
        found = cast("Mapping[str, object]", found).get("content")
    return bool(found)
