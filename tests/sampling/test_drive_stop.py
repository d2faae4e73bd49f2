"""Threads and tasks that are stopped send nothing more and leave nothing behind."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from snne_guard.sampling import Draw, Limiter, Reply
from snne_guard.sampling.collect import one_more_request
from snne_guard.sampling.drive import TaskDraws, ThreadDraws
from snne_guard.types import Cost
from tests.sampling.driving import (
    BusyError,
    Sent,
    join_threads,
    reply,
)

pytestmark = pytest.mark.usefixtures("no_jitter")


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
