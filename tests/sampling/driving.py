"""Requests for samples sent by threads or by tasks, and notes of what they told."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from snne_guard.sampling import Collector, Draw, Limiter, Reply
from snne_guard.sampling.drive import TaskDraws, ThreadDraws
from snne_guard.types import Cost, Sample

__all__ = [
    "WAYS",
    "BusyError",
    "NoSeveralError",
    "Notes",
    "OddError",
    "Send",
    "Sent",
    "join_threads",
    "reply",
    "send_all",
]


WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


Send = Callable[[Draw], Reply]


class BusyError(Exception):
    """A provider that asks to come back in a minute."""

    status_code = 429
    response = SimpleNamespace(headers={"retry-after": "60"})


class OddError(BaseException):
    """Not even an Exception, as some libraries' own kind of cancellation."""


class Notes:
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.started: list[Draw] = []
        self.ended: list[tuple[Draw, list[str], BaseException | None]] = []
        self.costs: list[Cost | None] = []

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
        if ended:
            self.costs.append(cost)
            self.ended.append((draw, [sample.text for sample in samples], error))
        else:
            self.started.append(draw)


class Sent:
    """What a set of draws came to."""

    def __init__(self, n_samples: int, batch: int) -> None:
        self.collector = Collector(n_samples, batch=batch)
        self.notes = Notes()
        self.settled: bool | None = None

    @property
    def texts(self) -> list[str]:
        return [sample.text for sample in self.collector.samples]

    def options(self, **changed: Any) -> dict[str, Any]:
        return {
            "listener": self.notes,
            "limiter": Limiter(),
            "max_attempts": 3,
            "context": contextvars.copy_context(),
            **changed,
        }


def send_all(
    way: str, send: Send, *, n_samples: int = 4, batch: int = 1, **options: Any
) -> Sent:
    """Send everything by one of the twins and wait until it has settled."""
    sent = Sent(n_samples, batch)
    options = sent.options(**options)
    if way == "threads":
        draws = ThreadDraws(sent.collector, send, **options)
        draws.start()
        sent.settled = draws.wait(30)
        draws.stop()
        return sent

    async def asend(draw: Draw) -> Reply:
        await asyncio.sleep(0)
        return send(draw)

    async def tasks() -> None:
        draws = TaskDraws(sent.collector, asend, **options)
        draws.start()
        sent.settled = await draws.wait(30)
        await draws.stop()

    asyncio.run(tasks())
    return sent


def reply(draw: Draw, *, given: int | None = None) -> Reply:
    count = draw.n if given is None else given
    samples = tuple(Sample(text=f"s{draw.index + i}") for i in range(count))
    return Reply(samples=samples, cost=Cost(calls=1, completion_tokens=count))


def join_threads() -> None:
    """Wait until every drawing thread has ended."""
    for thread in threading.enumerate():
        if thread.name == "snne-guard-draw":
            thread.join(30)
            assert not thread.is_alive()


class NoSeveralError(TypeError):
    def __init__(self) -> None:
        super().__init__("got an unexpected keyword argument 'n'")
