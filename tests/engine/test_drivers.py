"""Both drivers carry out the same calls: at once, in time, within the limit."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from snne_guard.engine import (
    Draw,
    GuardState,
    Limiter,
    Outcome,
    Request,
    Response,
    tasks,
    threads,
)
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment
from tests.support.observers import Watcher
from tests.support.senders import Scripted, ScriptedSender

NEVER = 60.0
"""Seconds that no test waits."""

Run = Callable[..., Outcome]


def guarding(limiter: Limiter | None = None, **options: Any) -> Request:
    """Return a request with options of the guard."""
    settings = GuardSettings(**options)
    return Request(settings=settings, state=GuardState(limiter))


def paris(*_: object) -> str:
    """Answer "It is Paris" to everything."""
    return "It is Paris"


def slow_samples(draw: Draw) -> float:
    return 0.0 if draw.role == "answer" else NEVER


def in_tasks(request: Request, sender: Any) -> Outcome:
    return asyncio.run(tasks.run(request, sender))


@pytest.fixture(params=[threads.run, in_tasks], ids=["threads", "tasks"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a test once with each driver."""
    driver: Run = request.param
    return driver


def test_draws_are_made_at_once(run: Run) -> None:
    sender = ScriptedSender(paris, seconds=0.3)
    assessment = run(guarding(threshold=0.4), sender).assessment
    assert (assessment.decision, assessment.n_used) == ("accept", 5)
    assert sender.most_open == 5
    assert (assessment.cost.calls, assessment.cost.attempts) == (5, 5)


# -- Limits ----------------------------------------------------------------------------


def place_in(limiter: Limiter, *, first: bool = False) -> Future[None]:
    place = limiter.acquire(first=first)
    assert place is not None
    return place


def test_answers_go_before_samples_and_in_their_order() -> None:
    limiter = Limiter(1)
    held, sample = place_in(limiter), place_in(limiter)
    older, newer = place_in(limiter, first=True), place_in(limiter, first=True)
    for releasing, served in ((held, older), (older, newer), (newer, sample)):
        assert not served.done()
        limiter.release(releasing)
        assert served.done()


def test_samples_that_still_wait_are_not_sent_once_the_call_has_ended() -> None:
    limiter, ended = Limiter(1), threading.Event()

    def script(draw: Draw, _: int) -> str:
        if draw.role == "sample":  # the first one holds the slot
            ended.wait(NEVER)
        return "Paris"

    sender = ScriptedSender(script)
    request = guarding(limiter, schedule="answer_first", sample_timeout=0.2)
    outcome = threads.run(request, sender)
    assert "samples_late" in outcome.assessment.reasons
    ended.set()
    place_in(limiter).result(timeout=NEVER)  # stands behind those that still wait
    assert len(sender.sent) < 5


def test_a_streamed_answer_holds_a_slot() -> None:
    limiter = Limiter(1)
    stream: Any = threads.stream(guarding(limiter), ScriptedSender(paris))
    assert next(stream) == "It"
    waiting = place_in(limiter)
    assert not waiting.done()
    stream.close()
    waiting.result(timeout=NEVER)


# -- How calls end ---------------------------------------------------------------------


def test_a_failed_answer_ends_the_wait_for_samples(run: Run) -> None:
    def script(draw: Draw, _: int) -> Scripted:
        return ValueError("bad key") if draw.role == "answer" else "Paris"

    began = time.monotonic()
    outcome = run(guarding(), ScriptedSender(script, seconds=slow_samples))
    assert time.monotonic() - began < NEVER / 2
    assert isinstance(outcome.error, ValueError)


def test_scoring_ends_at_the_timeout(run: Run) -> None:
    def slow(texts: object, *, question: str | None = None) -> None:
        time.sleep(NEVER)

    began = time.monotonic()
    request = guarding(timeout=0.5, similarity=slow, threshold=0.4)
    assessment = run(request, ScriptedSender(paris)).assessment
    assert time.monotonic() - began < NEVER / 2
    assert "scoring_failed" in assessment.reasons
    assert assessment.decision == "flag"


def test_a_stream_that_is_left_in_a_thread_ends() -> None:
    watcher = Watcher()
    sender = ScriptedSender(paris, seconds=slow_samples)
    stream: Any = threads.stream(guarding(observers=[watcher]), sender)
    assert next(stream) == "It"
    stream.close()
    assert watcher.only.reasons == ("cancelled",)


def test_a_function_that_raises_stop_iteration_does_not_hang(run: Run) -> None:
    def broken(_: Assessment) -> str:
        return next(iter(()))

    cities = iter(["Paris", "Rome", "Oslo"])
    request = guarding(threshold=0.0, on_uncertain=broken, n=3)
    outcome = run(request, ScriptedSender(lambda *_: next(cities)))
    assert isinstance(outcome.error, RuntimeError | StopIteration)


def test_an_interrupt_during_the_answer_is_no_failed_answer() -> None:
    request = guarding(fallback=object())
    outcome = threads.run(request, ScriptedSender(lambda *_: KeyboardInterrupt()))
    assert isinstance(outcome.error, KeyboardInterrupt)
    assert outcome.delivery == "nothing"
    assert "cancelled" in outcome.assessment.reasons


async def test_a_model_that_cancels_itself_does_not_cancel_the_caller() -> None:
    class Cancelling(ScriptedSender):
        async def asend(self, draw: Draw) -> Response:
            raise asyncio.CancelledError

    outcome = await tasks.run(guarding(), Cancelling(paris))
    assert isinstance(outcome.error, ConnectionAbortedError)
    live = tasks.stream(guarding(), Cancelling(paris))
    [outcome] = [item async for item in live]
    assert isinstance(outcome.error, ConnectionAbortedError)


# -- Observers -------------------------------------------------------------------------

_user = contextvars.ContextVar("_user", default="nobody")


@pytest.mark.parametrize("is_async", [False, True])
def test_observers_run_in_the_context_of_the_call(run: Run, is_async: bool) -> None:
    users: list[str] = []

    class Plain:
        def on_assessment(self, _: Assessment) -> None:
            users.append(_user.get())

    class Async:
        async def on_assessment(self, _: Assessment) -> None:
            await asyncio.sleep(0)
            users.append(_user.get())

    def call() -> None:
        _user.set("Ada")
        observer = Async() if is_async else Plain()
        run(guarding(observers=[observer]), ScriptedSender(paris))

    contextvars.copy_context().run(call)
    assert users == ["Ada"]


async def test_an_async_observer_waits_for_no_worker_thread() -> None:
    freed, seen = threading.Event(), list[Assessment]()

    class Async:
        async def on_assessment(self, assessment: Assessment) -> None:
            seen.append(assessment)

    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as pool:
        loop.set_default_executor(pool)
        loop.run_in_executor(None, freed.wait, NEVER)
        call = tasks.run(guarding(observers=[Async()]), ScriptedSender(paris))
        await asyncio.wait_for(call, 10)
        freed.set()
    assert len(seen) == 1


def test_an_observer_that_fails_breaks_nothing() -> None:
    class Broken:
        def on_assessment(self, assessment: Assessment) -> None:
            raise RuntimeError("disk full")

    watcher = Watcher()
    request = guarding(observers=[Broken(), watcher])
    outcome = threads.run(request, ScriptedSender(paris))
    assert outcome.delivery == "answer"
    assert watcher.only == outcome.assessment
