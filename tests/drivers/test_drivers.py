"""Both drivers carry out the same calls: deadlines, limits, cancellation, nesting."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from snne_guard.call import GuardState, Outcome, Request
from snne_guard.drivers import DriverOptions, tasks, threads
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call
from snne_guard.errors import GuardTimeoutError
from snne_guard.observers import Observers
from snne_guard.sampling.replies import Draw, ProviderCapabilities
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment
from tests.support.senders import Said, ScriptedSender

Run = Callable[..., Outcome]


def in_threads(request: Request, sender: Any, **options: Any) -> Outcome:
    return threads.run(guarded_call(request), sender, driver_options(**options))


def in_tasks(request: Request, sender: Any, **options: Any) -> Outcome:
    call = guarded_call(request)
    return asyncio.run(tasks.run(call, sender, driver_options(**options)))


def driver_options(
    limiter: Limiter | None = None, observers: Any = (), *, retry: bool = False
) -> DriverOptions:
    return DriverOptions(
        limiter=limiter or Limiter(None), observers=Observers(observers), retry=retry
    )


@pytest.fixture(params=[in_threads, in_tasks], ids=["threads", "tasks"])
def run(request: pytest.FixtureRequest) -> Run:
    driver: Run = request.param
    return driver


def request_of(*, n_taken: bool = False, **options: Any) -> Request:
    return Request(
        settings=GuardSettings(**options),
        state=GuardState(),
        capabilities=ProviderCapabilities(n=n_taken),
    )


def paris(draw: Draw, place: int) -> Said:
    return "Paris"


def test_draws_are_made_at_once(run: Run) -> None:
    sender = ScriptedSender(paris, seconds=0.05)
    made = run(request_of(threshold=0.4), sender).assessment
    assert (made.decision, made.n_used, sender.most_open) == ("accept", 5, 5)
    assert (made.cost.calls, made.cost.attempts) == (5, 5)


def test_no_more_requests_are_in_flight_than_the_limit(run: Run) -> None:
    sender = ScriptedSender(paris, seconds=0.01)
    made = run(request_of(n=10), sender, limiter=Limiter(3)).assessment
    assert made.n_used == 10
    assert sender.most_open == 3


def test_the_answer_goes_before_samples_that_wait(run: Run) -> None:
    limiter = Limiter(1)
    held = limiter.acquire()
    waiting = limiter.acquire()
    answer = limiter.acquire(first=True)
    limiter.release(held)
    assert answer.done()
    assert not waiting.done()
    limiter.release(answer)
    limiter.release(waiting)
    assert (
        run(request_of(), ScriptedSender(paris), limiter=limiter).assessment.n_used == 5
    )


def test_late_samples_are_not_waited_for(run: Run) -> None:
    def script(draw: Draw, place: int) -> Said:
        if draw.role == "sample" and place == 2:
            time.sleep(0.001)
        return "Paris"

    class Slow(ScriptedSender):
        def send(self, draw: Draw) -> Any:
            if draw.role == "sample" and len(self.sent) >= 4:
                time.sleep(1.5)
            return super().send(draw)

        async def asend(self, draw: Draw) -> Any:
            if draw.role == "sample" and len(self.sent) >= 4:
                await asyncio.sleep(1.5)
            return await super().asend(draw)

    began = time.monotonic()
    made = run(request_of(sample_timeout=0.3), Slow(script, seconds=0.01)).assessment
    assert time.monotonic() - began < 1.2
    assert "samples_late" in made.reasons
    assert made.n_used >= 3


def test_a_call_ends_at_its_timeout(run: Run) -> None:
    began = time.monotonic()
    outcome = run(request_of(timeout=0.1), ScriptedSender(paris, seconds=2.0))
    assert time.monotonic() - began < 1.5
    assert isinstance(outcome.error, GuardTimeoutError)


def test_a_failed_answer_ends_the_wait_for_samples(run: Run) -> None:
    class Failing(ScriptedSender):
        def send(self, draw: Draw) -> Any:
            if draw.role == "answer":
                raise ValueError("bad key")
            return super().send(draw)

        async def asend(self, draw: Draw) -> Any:
            if draw.role == "answer":
                raise ValueError("bad key")
            return await super().asend(draw)

    began = time.monotonic()
    outcome = run(request_of(), Failing(paris, seconds=2.0))
    assert time.monotonic() - began < 1.5
    assert isinstance(outcome.error, ValueError)


def test_scoring_ends_at_the_timeout(run: Run) -> None:
    def slow(texts: Any, *, question: str | None = None) -> Any:
        time.sleep(2.0)

    began = time.monotonic()
    asked = request_of(timeout=0.2, similarity=slow, threshold=0.4)
    made = run(asked, ScriptedSender(paris)).assessment
    assert time.monotonic() - began < 1.5
    assert "scoring_failed" in made.reasons
    assert made.decision == "flag"


def test_transient_failures_are_sent_again_three_times_in_all(run: Run) -> None:
    failing = [0]

    class TooManyError(Exception):
        status_code = 429
        response = SimpleNamespace(headers={"retry-after": "0"})

    def script(draw: Draw, place: int) -> Said:
        failing[0] += 1
        return TooManyError() if failing[0] <= 2 else "Paris"

    made = run(
        request_of(n=2, schedule="answer_first"), ScriptedSender(script), retry=True
    ).assessment
    assert made.n_used == 2
    assert (made.cost.calls, made.cost.attempts) == (2, 4)


def test_what_is_not_transient_is_sent_once(run: Run) -> None:
    def script(draw: Draw, place: int) -> Said:
        return ValueError("400") if draw.role == "sample" else "Paris"

    made = run(request_of(), ScriptedSender(script), retry=True).assessment
    assert made.cost.attempts == 5
    assert {"samples_failed", "too_few_samples"} <= set(made.reasons)


# -- Observers -------------------------------------------------------------------------

_user = contextvars.ContextVar("_user", default="nobody")


@pytest.mark.parametrize("is_async", [False, True])
def test_observers_are_told_in_the_context_of_the_call(
    run: Run, is_async: bool
) -> None:
    seen: list[tuple[str, str | None]] = []

    class Plain:
        def on_assessment(self, assessment: Assessment) -> None:
            assert assessment.answer is not None
            seen.append((_user.get(), assessment.answer.text))

    class Async:
        async def on_assessment(self, assessment: Assessment) -> None:
            await asyncio.sleep(0)
            Plain().on_assessment(assessment)

    def call() -> None:
        _user.set("Ada")
        run(
            request_of(),
            ScriptedSender(paris),
            observers=[Async() if is_async else Plain()],
        )

    contextvars.copy_context().run(call)
    assert seen == [("Ada", "Paris")]


def test_an_observer_that_fails_breaks_nothing_and_is_counted() -> None:
    class Broken:
        def on_assessment(self, assessment: Assessment) -> None:
            raise RuntimeError("disk full")

    observers = Observers([Broken()])
    call = guarded_call(request_of())
    options = DriverOptions(limiter=Limiter(None), observers=observers, retry=False)
    outcome = threads.run(call, ScriptedSender(paris), options)
    assert outcome.delivery == "answer"
    assert observers.failures == 1


# -- Cancellation ----------------------------------------------------------------------


async def test_cancelling_a_task_cancels_its_draws_and_tells_observers() -> None:
    seen: list[Assessment] = []

    class Observer:
        def on_assessment(self, assessment: Assessment) -> None:
            seen.append(assessment)

    async def guarded(sender: ScriptedSender) -> None:
        call = guarded_call(request_of())
        options = driver_options(observers=[Observer()])
        outcome = await tasks.run(call, sender, options)
        if outcome.error is not None:
            raise outcome.error

    sender = ScriptedSender(paris, seconds=5.0)
    task = asyncio.create_task(guarded(sender))
    while sender.open < 5:  # noqa: ASYNC110 - the sender is used from threads as well
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (sender.cancelled, sender.open) == (5, 0)
    assert [one.reasons for one in seen] == [("cancelled",)]


async def test_a_model_that_cancels_itself_does_not_cancel_the_caller() -> None:
    class Cancelling(ScriptedSender):
        async def asend(self, draw: Draw) -> Any:
            raise asyncio.CancelledError

    call = guarded_call(request_of())
    outcome = await tasks.run(call, Cancelling(paris), driver_options())
    assert isinstance(outcome.error, ConnectionAbortedError)


async def test_cancelled_waiters_leave_the_limit_free() -> None:
    limiter = Limiter(1)
    sender = ScriptedSender(paris, seconds=0.01)

    async def one() -> None:
        call = guarded_call(request_of(n=3))
        await tasks.run(call, sender, driver_options(limiter=limiter))

    running = [asyncio.create_task(one()) for _ in range(20)]
    await asyncio.sleep(0.05)
    for task in running[::2]:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert limiter.acquire().done()
    assert sender.most_open == 1


# -- Streams ---------------------------------------------------------------------------


def words(draw: Draw, place: int) -> Said:
    return "It is Paris"


def test_chunks_flow_and_the_outcome_comes_last() -> None:
    sender = ScriptedSender(words)
    call = guarded_call(request_of(threshold=0.4))
    *chunks, outcome = threads.stream(call, sender, driver_options())
    assert chunks == ["It", "is", "Paris"]
    assert (outcome.assessment.decision, outcome.assessment.n_used) == ("accept", 5)


async def test_chunks_flow_in_tasks_too() -> None:
    call = guarded_call(request_of(threshold=0.4))
    stream = tasks.stream(call, ScriptedSender(words), driver_options())
    *chunks, outcome = [item async for item in stream]
    assert chunks == ["It", "is", "Paris"]
    assert outcome.assessment.decision == "accept"


async def test_a_stream_that_is_left_cancels_the_samples() -> None:
    sender = ScriptedSender(words, seconds=0.01)

    class SlowSamples(ScriptedSender):
        def astream(self) -> Any:
            return sender.astream()

    slow = SlowSamples(words, seconds=5.0)
    stream = tasks.stream(guarded_call(request_of()), slow, driver_options())
    assert await anext(stream) == "It"
    await stream.aclose()
    assert (slow.cancelled, slow.open) == (4, 0)


def test_a_stream_that_is_left_in_a_thread_ends() -> None:
    seen: list[Assessment] = []

    class Observer:
        def on_assessment(self, assessment: Assessment) -> None:
            seen.append(assessment)

    call = guarded_call(request_of())
    stream: Any = threads.stream(
        call, ScriptedSender(words), driver_options(observers=[Observer()])
    )
    assert next(stream) == "It"
    stream.close()
    assert [one.reasons for one in seen] == [("cancelled",)]


# -- Hazards ---------------------------------------------------------------------------


def test_twenty_nested_guards_do_not_starve_one_another(run: Run) -> None:
    class Nested(ScriptedSender):
        """Each answer is a guarded call of its own."""

        def send(self, draw: Draw) -> Any:
            in_threads(request_of(n=2), ScriptedSender(paris, seconds=0.01))
            return super().send(draw)

        async def asend(self, draw: Draw) -> Any:
            call = guarded_call(request_of(n=2))
            inner = ScriptedSender(paris, seconds=0.01)
            await tasks.run(call, inner, driver_options())
            return await super().asend(draw)

    assert run(request_of(n=20), Nested(paris)).assessment.n_used == 20


async def test_a_synchronous_call_inside_a_running_loop() -> None:
    assert in_threads(request_of(), ScriptedSender(paris)).assessment.n_used == 5


def test_a_hundred_calls_at_once_in_threads() -> None:
    found: list[int] = []

    def one() -> None:
        found.append(
            in_threads(
                request_of(n=3), ScriptedSender(paris, seconds=0.02)
            ).assessment.n_used
        )

    callers = [threading.Thread(target=one) for _ in range(100)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert found == [3] * 100


async def test_a_hundred_calls_at_once_in_tasks() -> None:
    async def one() -> int:
        call = guarded_call(request_of(n=3))
        sender = ScriptedSender(paris, seconds=0.02)
        return (await tasks.run(call, sender, driver_options())).assessment.n_used

    assert await asyncio.gather(*(one() for _ in range(100))) == [3] * 100


def test_the_loop_goes_on_while_long_texts_are_scored() -> None:
    def slow(texts: Any, *, question: str | None = None) -> Any:
        import numpy as np

        time.sleep(0.3)
        return np.ones((len(texts), len(texts)))

    async def both() -> float:
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.001)
                longest = max(longest, time.monotonic() - began)

        ticking = asyncio.create_task(tick())
        call = guarded_call(request_of(similarity=slow))
        await tasks.run(call, ScriptedSender(paris), driver_options())
        ticking.cancel()
        return longest

    assert asyncio.run(both()) < 0.25


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_can_call_with_the_same_limiter() -> None:
    limiter = Limiter(1)
    held = limiter.acquire()
    child = os.fork()
    if child == 0:
        made = in_threads(request_of(n=2), ScriptedSender(paris), limiter=limiter)
        os._exit(0 if made.assessment.n_used == 2 else 1)
    _, status = os.waitpid(child, 0)
    limiter.release(held)
    assert status == 0


_HANGING = """
import time
from tests.support.senders import ScriptedSender
from snne_guard.call import GuardState, Request
from snne_guard.drivers import DriverOptions, threads
from snne_guard.drivers.limits import Limiter
from snne_guard.engine import guarded_call
from snne_guard.observers import Observers
from snne_guard.settings import GuardSettings

request = Request(settings=GuardSettings(timeout=0.2), state=GuardState())
sender = ScriptedSender(lambda draw, place: "Paris", seconds=600)
options = DriverOptions(limiter=Limiter(None), observers=Observers(), retry=False)
outcome = threads.run(guarded_call(request), sender, options)
print(type(outcome.error).__name__)
"""


def test_a_provider_that_hangs_does_not_keep_the_process_from_ending() -> None:
    command = [sys.executable, "-c", _HANGING]
    ended = subprocess.run(  # noqa: S603 - our own program
        command, capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout.split() == ["GuardTimeoutError"]


# -- What others found -----------------------------------------------------------------


def test_a_streamed_answer_holds_a_slot() -> None:
    limiter = Limiter(1)
    call = guarded_call(request_of(n=2))
    sender = ScriptedSender(words)
    stream = threads.stream(call, sender, driver_options(limiter=limiter))
    assert next(stream) == "It"
    waiting = limiter.acquire()
    assert not waiting.done()
    stream.close()
    assert waiting.done()


def test_samples_that_still_wait_are_not_sent_once_the_call_has_ended() -> None:
    limiter = Limiter(1)
    sender = ScriptedSender(paris, seconds=0.2)
    made = in_threads(
        request_of(sample_timeout=0.3), sender, limiter=limiter
    ).assessment
    assert "samples_late" in made.reasons
    time.sleep(0.5)
    assert len(sender.sent) < 5
    assert limiter.acquire().done()


def test_a_function_that_raises_stop_iteration_does_not_hang(run: Run) -> None:
    def broken(_: Assessment) -> str:
        return next(iter(()))

    asked = request_of(threshold=0.0, on_uncertain=broken, n=3)
    cities = iter(["Paris", "Rome", "Oslo"])
    outcome = run(asked, ScriptedSender(lambda _draw, _place: next(cities)))
    assert isinstance(outcome.error, RuntimeError | StopIteration)


def test_answers_that_wait_are_served_in_their_order() -> None:
    limiter = Limiter(1)
    held = limiter.acquire()
    older, newer = limiter.acquire(first=True), limiter.acquire(first=True)
    limiter.release(held)
    assert older.done()
    assert not newer.done()
