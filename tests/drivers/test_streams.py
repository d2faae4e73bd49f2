"""Streams of both drivers, and calls that are cancelled or left."""

from __future__ import annotations

import asyncio
from typing import Any

from snne_guard.drivers import tasks, threads
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call
from snne_guard.sampling.replies import Draw, Reply
from tests.drivers.support import driver_options, guarding, paris
from tests.support.observers import Watcher
from tests.support.senders import ScriptedSender

NEVER = 60.0
"""Seconds that no test waits."""


def words(draw: Draw, place: int) -> str:
    del draw, place
    return "It is Paris"


def slow_samples(draw: Draw) -> float:
    return 0.0 if draw.role == "answer" else NEVER


def in_thread(sender: Any, **options: Any) -> Any:
    """Return the stream of a call in threads."""
    call = guarded_call(guarding(threshold=0.4))
    return threads.stream(call, sender, driver_options(**options))


def test_a_stream_that_is_left_in_a_thread_ends() -> None:
    watcher = Watcher()
    sender = ScriptedSender(words, seconds=slow_samples)
    stream = in_thread(sender, observers=[watcher])
    assert next(stream) == "It"
    stream.close()
    assert [each.reasons for each in watcher.assessments] == [("cancelled",)]


def test_a_streamed_answer_holds_a_slot() -> None:
    limiter = Limiter(1)
    stream = in_thread(ScriptedSender(words), limiter=limiter)
    assert next(stream) == "It"
    waiting = limiter.acquire()
    assert not waiting.done()
    stream.close()
    waiting.result(timeout=5)


async def test_a_model_that_cancels_itself_does_not_cancel_the_caller() -> None:
    class Cancelling(ScriptedSender):
        async def asend(self, draw: Draw) -> Reply:
            raise asyncio.CancelledError

    call = guarded_call(guarding())
    outcome = await tasks.run(call, Cancelling(paris), driver_options())
    assert isinstance(outcome.error, ConnectionAbortedError)
