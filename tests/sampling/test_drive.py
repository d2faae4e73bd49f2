"""Threads and tasks send alike, stop when told and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tenacity import RetryCallState

from snne_guard.sampling import Collector, Draw, Limiter, Reply, retry
from snne_guard.sampling.collect import one_more_request
from snne_guard.sampling.drive import TaskDraws, ThreadDraws
from snne_guard.types import Cost, Sample

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


@pytest.fixture(autouse=True)
def no_jitter(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_state: RetryCallState) -> float:
        return 0.0

    monkeypatch.setattr(retry, "_jitter", none)


@WAYS
def test_every_request_is_sent_once_and_told_of(way: str) -> None:
    sent = send_all(way, reply)
    assert sent.settled is True
    assert sent.texts == ["s0", "s1", "s2", "s3"]
    assert sent.collector.cost == Cost(calls=4, attempts=4, completion_tokens=4)
    assert {draw.index for draw in sent.notes.started} == {0, 1, 2, 3}
    assert sorted((d.index, texts, error) for d, texts, error in sent.notes.ended) == [
        (0, ["s0"], None),
        (1, ["s1"], None),
        (2, ["s2"], None),
        (3, ["s3"], None),
    ]
    assert sent.notes.costs == [Cost(calls=1, completion_tokens=1)] * 4


@WAYS
def test_nothing_to_send_is_settled_at_once(way: str) -> None:
    sent = send_all(way, reply, n_samples=0)
    assert (sent.settled, sent.texts) == (True, [])


@WAYS
def test_a_provider_that_ignores_n_is_topped_up(way: str) -> None:
    sent = send_all(way, lambda draw: reply(draw, given=1), batch=4)
    assert sent.texts == ["s0", "s1", "s2", "s3"]
    assert [draw.n for draw in sent.notes.started] == [4, 1, 1, 1]
    assert sent.collector.cost == Cost(calls=4, attempts=4, completion_tokens=4)


@WAYS
def test_a_provider_that_rejects_n_is_asked_for_less(way: str) -> None:
    def send(draw: Draw) -> Reply:
        if draw.n > 1:
            raise NoSeveralError
        return reply(draw)

    sent = send_all(way, send, batch=4)
    assert sent.texts == ["s0", "s1", "s2", "s3"]
    assert sorted(draw.n for draw in sent.notes.started) == [1, 1, 1, 1, 2, 2, 4]
    assert sent.collector.errors == []
    assert sent.collector.cost.attempts == 7
    assert [type(error) for _, _, error in sent.notes.ended].count(NoSeveralError) == 3


class NoSeveralError(TypeError):
    def __init__(self) -> None:
        super().__init__("got an unexpected keyword argument 'n'")


@WAYS
def test_a_request_that_is_rejected_unexplained_is_tried_with_one_reply(
    way: str,
) -> None:
    def send(draw: Draw) -> Reply:
        raise NotImplementedError

    sent = send_all(way, send, batch=4)
    assert [draw.n for draw in sent.notes.started] == [4, 1]
    assert len(sent.collector.errors) == 1


@WAYS
def test_the_other_replies_follow_once_one_has_come(way: str) -> None:
    def send(draw: Draw) -> Reply:
        if draw.n > 2:
            raise NotImplementedError
        return reply(draw)

    sent = send_all(way, send, batch=5, n_samples=5)
    assert sent.texts == ["s0", "s1", "s2", "s3", "s4"]
    assert sorted(draw.n for draw in sent.notes.started) == [1, 2, 2, 5]
    assert sent.collector.errors == []


@WAYS
def test_what_is_transient_is_sent_again(way: str) -> None:
    attempts = dict.fromkeys(range(4), 0)

    def send(draw: Draw) -> Reply:
        attempts[draw.index] += 1
        if attempts[draw.index] <= draw.index % 3:
            raise ConnectionResetError
        return reply(draw)

    sent = send_all(way, send)
    assert sent.texts == ["s0", "s1", "s2", "s3"]
    assert attempts == {0: 1, 1: 2, 2: 3, 3: 1}
    assert sent.collector.cost.attempts == 7
    assert len(sent.notes.started) == 4


@WAYS
@pytest.mark.parametrize(
    "fault",
    [ValueError("no"), asyncio.CancelledError(), OddError(), ConnectionResetError()],
)
def test_one_that_fails_for_good_loses_no_other(way: str, fault: BaseException) -> None:
    def send(draw: Draw) -> Reply:
        if draw.index == 2:
            raise fault
        return reply(draw)

    sent = send_all(way, send)
    assert sent.settled is True
    assert sent.texts == ["s0", "s1", "s3"]
    assert sent.collector.errors == [fault]
    assert [(d.index, e) for d, _, e in sent.notes.ended if e] == [(2, fault)]


def test_an_interrupt_in_a_task_is_not_swallowed() -> None:
    def send(_draw: Draw) -> Reply:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send_all("tasks", send, n_samples=1)


@WAYS
def test_the_limiter_caps_what_is_in_flight(way: str) -> None:
    together = threading.Barrier(2)
    inside: set[int] = set()
    most: list[int] = []

    def send(draw: Draw) -> Reply:
        inside.add(draw.index)
        most.append(len(inside))
        if way == "threads":
            together.wait(30)  # passes only if two are in at once
        inside.discard(draw.index)
        return reply(draw)

    sent = send_all(way, send, n_samples=6, limiter=Limiter(2))
    assert len(sent.texts) == 6
    assert max(most) <= 2


async def test_the_limiter_caps_the_tasks_in_flight() -> None:
    sent, together = Sent(6, 1), asyncio.Barrier(2)
    inside: set[int] = set()
    most: list[int] = []

    async def send(draw: Draw) -> Reply:
        inside.add(draw.index)
        await together.wait()
        most.append(len(inside))
        inside.discard(draw.index)
        return reply(draw)

    draws = TaskDraws(sent.collector, send, **sent.options(limiter=Limiter(2)))
    draws.start()
    assert await draws.wait(30)
    assert len(sent.texts) == 6
    assert max(most) == 2


@WAYS
def test_each_request_runs_in_a_copy_of_the_context(way: str) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    context = contextvars.copy_context()
    context.run(variable.set, "from the call")
    seen: list[str] = []

    def send(draw: Draw) -> Reply:
        seen.append(variable.get())
        variable.set(f"by {draw.index}")
        return reply(draw)

    send_all(way, send, context=context)
    assert seen == ["from the call"] * 4
    assert context[variable] == "from the call"


def test_a_thread_that_cannot_start_is_a_failed_sample(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, started = threading.Thread.start, list[int]()

    def limited(thread: threading.Thread) -> None:
        if thread.name == "snne-guard-draw":
            started.append(1)
            if len(started) % 2 == 0:
                msg = "can't start new thread"
                raise RuntimeError(msg)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    sent = send_all("threads", reply)
    assert sent.settled is True
    assert sent.texts == ["s0", "s2"]
    assert [str(e) for e in sent.collector.errors] == ["can't start new thread"] * 2


def test_no_thread_can_start_and_it_is_settled_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def never(_thread: threading.Thread) -> None:
        raise RuntimeError

    monkeypatch.setattr(threading.Thread, "start", never)
    sent = send_all("threads", reply)
    assert (sent.settled, sent.texts, len(sent.collector.errors)) == (True, [], 4)


def test_a_threads_reply_after_the_stop_is_dropped() -> None:
    sent, gate = Sent(4, 4), threading.Event()
    arrived = threading.Event()

    def send(draw: Draw) -> Reply:
        arrived.set()
        gate.wait(30)
        return reply(draw, given=1)

    draws = ThreadDraws(sent.collector, send, **sent.options())
    draws.start()
    assert arrived.wait(30)
    assert draws.wait(0.01) is False
    draws.stop()
    gate.set()
    join_threads()
    assert sent.texts == []
    assert sent.notes.ended == []
    assert len(sent.notes.started) == 1
    assert sent.collector.cost == Cost(attempts=1)


def test_threads_that_wait_for_a_place_send_nothing_after_the_stop() -> None:
    sent, gate = Sent(3, 1), threading.Event()
    arrived, asked = threading.Event(), list[int]()

    def send(draw: Draw) -> Reply:
        asked.append(draw.index)
        arrived.set()
        gate.wait(30)
        return reply(draw)

    draws = ThreadDraws(sent.collector, send, **sent.options(limiter=Limiter(1)))
    draws.start()
    assert arrived.wait(30)
    draws.stop()
    gate.set()
    join_threads()
    assert len(asked) == 1
    assert sent.collector.cost == Cost(attempts=1)
    assert sent.collector.errors == []


def test_a_thread_sends_no_further_request_after_the_stop() -> None:
    sent, gate = Sent(1, 1), threading.Event()
    arrived, went_out = threading.Event(), list[int]()

    def send(draw: Draw) -> Reply:
        arrived.set()
        gate.wait(30)
        one_more_request()
        went_out.append(draw.index)
        return reply(draw)

    draws = ThreadDraws(sent.collector, send, **sent.options())
    draws.start()
    assert arrived.wait(30)
    draws.stop()
    gate.set()
    join_threads()
    assert draws.unfinished
    assert went_out == []
    assert sent.collector.cost == Cost(attempts=1)


async def test_a_task_sends_no_further_request_after_the_stop() -> None:
    went_out: list[int] = []

    async def try_again(draw: Draw) -> Reply:
        one_more_request()
        went_out.append(draw.index)
        return reply(draw)

    sent, faults = await stubborn(try_again)
    await asyncio.sleep(0)
    assert (went_out, faults) == ([], [])
    assert sent.collector.cost == Cost(attempts=1)


def test_the_stop_ends_threads_that_wait_to_try_again() -> None:
    sent, failed = Sent(1, 1), threading.Event()

    def send(_draw: Draw) -> Reply:
        failed.set()
        raise BusyError

    limiter = Limiter(1)
    draws = ThreadDraws(sent.collector, send, **sent.options(limiter=limiter))
    draws.start()
    assert failed.wait(30)
    with limiter.hold():  # free once the request has failed
        pass
    draws.stop()
    join_threads()
    assert sent.collector.cost == Cost(attempts=1)
    assert draws.unfinished is False  # nothing was under way


async def test_the_stop_ends_every_task() -> None:
    sent, ended = Sent(3, 1), list[int]()
    everyone = asyncio.Barrier(4)

    async def send(draw: Draw) -> Reply:
        try:
            await everyone.wait()
            await asyncio.Event().wait()
        finally:
            ended.append(draw.index)
        raise AssertionError

    draws = TaskDraws(sent.collector, send, **sent.options())
    draws.start()
    await asyncio.wait_for(everyone.wait(), 30)
    assert await draws.wait(0.01) is False
    await asyncio.wait_for(draws.stop(), 30)
    assert sorted(ended) == [0, 1, 2]
    assert len(asyncio.all_tasks()) == 1
    assert (sent.texts, sent.notes.ended, sent.collector.errors) == ([], [], [])
    assert draws.unfinished is True


async def test_the_stop_ends_tasks_that_wait_to_try_again() -> None:
    sent, failed = Sent(1, 1), asyncio.Event()

    async def send(_draw: Draw) -> Reply:
        failed.set()
        raise BusyError

    draws = TaskDraws(sent.collector, send, **sent.options())
    draws.start()
    await asyncio.wait_for(failed.wait(), 30)
    await asyncio.wait_for(draws.stop(), 30)
    assert len(asyncio.all_tasks()) == 1
    assert draws.unfinished is False  # nothing was under way


async def stubborn(
    ending: Callable[[Draw], Awaitable[Reply]],
) -> tuple[Sent, list[dict[str, Any]]]:
    """Stop a client that ignores its cancellation and ends as it likes."""
    sent, faults = Sent(4, 4), list[dict[str, Any]]()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, fault: faults.append(fault))

    async def send(draw: Draw) -> Reply:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return await ending(draw)
        raise AssertionError

    draws = TaskDraws(sent.collector, send, **sent.options())
    draws.start()
    await asyncio.wait_for(begun.wait(), 30)
    await asyncio.wait_for(draws.stop(), 30)
    return sent, faults


async def test_a_reply_in_spite_of_the_cancellation_sends_nothing_more() -> None:
    async def give_one(draw: Draw) -> Reply:
        return reply(draw, given=1)

    sent, faults = await stubborn(give_one)
    assert len(asyncio.all_tasks()) == 1
    assert (sent.texts, sent.notes.ended, faults) == ([], [], [])


async def test_a_failure_in_spite_of_the_cancellation_is_not_left_to_the_loop() -> None:
    async def fail(_draw: Draw) -> Reply:
        msg = "a text that quotes the prompt"
        raise RuntimeError(msg)

    sent, faults = await stubborn(fail)
    await asyncio.sleep(0)
    assert (sent.collector.errors, faults) == ([], [])


async def test_stopping_twice_or_before_the_start_is_no_fault() -> None:
    sent = Sent(2, 1)

    async def send(draw: Draw) -> Reply:
        return reply(draw)

    draws = TaskDraws(sent.collector, send, **sent.options())
    await draws.stop()
    await draws.stop()
    assert sent.texts == []
