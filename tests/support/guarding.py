"""Scripts that tell answers from samples, and one way to call a guard in every way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.runnables import Runnable, RunnableConfig

from snne_guard import Assessment
from snne_guard.types import SampleEvent
from tests.support.chat_server import ChatServer, Request, Script, always, cycle

T = TypeVar("T")

WAYS = ("invoke", "ainvoke", "stream", "astream", "batch", "abatch")
"""Every way to call a runnable."""

WHOLE = ("invoke", "ainvoke")
"""The two twins."""

AGREE = ["Paris", "Paris", "Paris", "Paris"]
"""Four samples that agree with one another."""

DIFFER = ["Lyon", "Nice", "Lille", "Metz"]
"""Four that have no word in common."""


def is_sample(request: Request) -> bool:
    """Return whether a request is for samples: those are drawn at temperature 1."""
    return request.temperature == 1.0


def samples_of(server: ChatServer) -> list[Request]:
    """Return the requests for samples that a server has seen."""
    return [request for request in server.requests if is_sample(request)]


def split(answer: str | Script, samples: Sequence[str] | Script) -> Script:
    """Answer requests for the answer and requests for samples by different scripts."""
    to_answer = always(answer) if isinstance(answer, str) else answer
    to_sample = samples if callable(samples) else cycle(samples)
    return lambda request: (to_sample if is_sample(request) else to_answer)(request)


def ask(
    guard: Runnable[Any, Any],
    value: Any,
    way: str,
    config: RunnableConfig | None = None,
    **kwargs: Any,
) -> AIMessage:
    """Call a guard in one of the ways and return the whole message."""
    if way == "invoke":
        return _message(guard.invoke(value, config, **kwargs))
    if way == "batch":
        return _message(guard.batch([value], config, **kwargs)[0])
    if way == "stream":
        return _joined(list(guard.stream(value, config, **kwargs)))
    return run_in_loop(_aask(guard, value, way, config, **kwargs))


def run_in_loop(asking: Coroutine[Any, Any, T]) -> T:
    """Run in the loop that all calls share, and return what comes of it."""
    return _loop().run(asking, context=copy_context())


@cache
def _loop() -> asyncio.Runner:
    # One loop for all calls: an async client's connections do not outlive theirs.
    return asyncio.Runner()


async def _aask(
    guard: Runnable[Any, Any],
    value: Any,
    way: str,
    config: RunnableConfig | None,
    **kwargs: Any,
) -> AIMessage:
    if way == "ainvoke":
        return _message(await guard.ainvoke(value, config, **kwargs))
    if way == "abatch":
        return _message((await guard.abatch([value], config, **kwargs))[0])
    return _joined([chunk async for chunk in guard.astream(value, config, **kwargs)])


def _joined(chunks: list[Any]) -> AIMessage:
    whole: AIMessageChunk = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    assert chunks[-1].chunk_position == "last"
    assert [chunk.chunk_position for chunk in chunks[:-1]] == [None] * (len(chunks) - 1)
    return whole


def _message(value: Any) -> AIMessage:
    assert isinstance(value, AIMessage)
    return value


def record(message: AIMessage) -> dict[str, Any]:
    """Return the assessment that a message carries."""
    found = message.response_metadata["snne_guard"]
    assert isinstance(found, dict)
    return found


class Witness:
    """An observer that keeps everything that it is told."""

    def __init__(self) -> None:
        self.started: list[SampleEvent] = []
        self.ended: list[SampleEvent] = []
        self.assessments: list[Assessment] = []

    def on_sample_start(self, event: SampleEvent) -> None:
        self.started.append(event)

    def on_sample_end(self, event: SampleEvent) -> None:
        self.ended.append(event)

    def on_assessment(self, assessment: Assessment) -> None:
        self.assessments.append(assessment)

    @property
    def last(self) -> Assessment:
        return self.assessments[-1]


async def until(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Wait until something holds that other threads bring about."""

    def wait() -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not come about in time"
            time.sleep(0.005)

    await asyncio.to_thread(wait)
