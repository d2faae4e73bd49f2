"""Threads and tasks send alike, stop when told and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from snne_guard.sampling import Draw, Limiter, Reply
from snne_guard.sampling.drive import TaskDraws
from snne_guard.types import Cost
from tests.sampling.driving import (
    WAYS,
    NoSeveralError,
    OddError,
    Sent,
    reply,
    send_all,
)

pytestmark = pytest.mark.usefixtures("no_jitter")


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
