"""Samples in rounds: what is sent when, and what ends it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.sampling import Collector, Draw, Limiter, Reply
from snne_guard.sampling.drive import TaskDraws, ThreadDraws
from snne_guard.types import Cost, Sample

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])


def reply(draw: Draw, *, given: int | None = None) -> Reply:
    count = draw.n if given is None else given
    samples = tuple(Sample(text=f"s{draw.index + i}") for i in range(count))
    return Reply(samples=samples, cost=Cost(calls=1))


class Rounds:
    """Sends rounds by one of the twins; keeps what went out and what was there."""

    def __init__(self, rounds: tuple[int, ...], *, batch: int = 1) -> None:
        self.collector = Collector(rounds[-1], batch=batch, rounds=rounds)
        self.sent: list[Draw] = []
        self.there: list[list[str]] = []
        self.patience: float | None = 30.0
        self.stop_after: int | None = None

    def should_stop(self) -> bool:
        self.there.append([sample.text for sample in self.collector.samples])
        return len(self.there) == self.stop_after

    def run(self, way: str, send: Callable[[Draw], Reply]) -> bool:
        def noting(draw: Draw) -> Reply:
            self.sent.append(draw)
            return send(draw)

        if way == "threads":
            draws = ThreadDraws(
                self.collector,
                noting,
                listener=_deaf,
                limiter=Limiter(),
                max_attempts=1,
                context=contextvars.copy_context(),
            )
            draws.start()
            settled = draws.wait_rounds(lambda: self.patience, self.should_stop)
            draws.stop()
            return settled
        return asyncio.run(self._arun(noting))

    async def _arun(self, send: Callable[[Draw], Reply]) -> bool:
        async def asend(draw: Draw) -> Reply:
            await asyncio.sleep(0)
            return send(draw)

        async def should_stop() -> bool:
            await asyncio.sleep(0)
            return self.should_stop()

        asking: Callable[[], Awaitable[bool]] = should_stop
        draws = TaskDraws(
            self.collector,
            asend,
            listener=_deaf,
            limiter=Limiter(),
            max_attempts=1,
            context=contextvars.copy_context(),
        )
        draws.start()
        settled = await draws.wait_rounds(lambda: self.patience, asking)
        await draws.stop()
        return settled


def _deaf(_draw: Draw, /, **_told: object) -> None:
    return


@WAYS
def test_a_round_goes_out_once_the_one_before_has_come_back(way: str) -> None:
    rounds = Rounds((2, 4, 9))
    assert rounds.run(way, reply) is True
    names = [f"s{index}" for index in range(9)]
    assert rounds.there == [names[:2], names[:4]]
    assert [sample.text for sample in rounds.collector.samples] == names
    assert (rounds.collector.rounds, rounds.collector.asked) == (3, 9)
    assert sorted(draw.index for draw in rounds.sent) == [*range(9)]


@WAYS
def test_where_it_was_enough_nothing_more_is_sent(way: str) -> None:
    rounds = Rounds((2, 4, 9))
    rounds.stop_after = 2
    assert rounds.run(way, reply) is True
    assert (len(rounds.sent), rounds.collector.asked, rounds.collector.rounds) == (
        4,
        4,
        2,
    )
    assert not rounds.collector.complete


@WAYS
def test_each_round_is_one_request_where_several_replies_come_in_one(way: str) -> None:
    rounds = Rounds((2, 4, 9), batch=9)
    assert rounds.run(way, reply) is True
    assert [(draw.index, draw.n) for draw in rounds.sent] == [(0, 2), (2, 2), (4, 5)]
    assert rounds.collector.batch == 9  # nothing showed that nine would be too many


@WAYS
def test_a_provider_that_ignores_n_is_topped_up_in_the_round(way: str) -> None:
    rounds = Rounds((2, 5), batch=5)
    assert rounds.run(way, lambda draw: reply(draw, given=1)) is True
    assert rounds.there == [["s0", "s1"]]
    assert [draw.n for draw in rounds.sent] == [2, 1, 1, 1, 1]


@WAYS
def test_a_failed_sample_ends_no_round_and_the_next_one_goes_out(way: str) -> None:
    def send(draw: Draw) -> Reply:
        if draw.index == 1:
            raise ValueError
        return reply(draw)

    rounds = Rounds((2, 4))
    assert rounds.run(way, send) is True
    assert rounds.there == [["s0"]]
    assert [s.text for s in rounds.collector.samples] == ["s0", "s2", "s3"]
    assert len(rounds.collector.errors) == 1


@WAYS
def test_no_round_goes_out_when_the_time_is_up(way: str) -> None:
    rounds = Rounds((2, 4))
    should_stop = rounds.should_stop

    def slow() -> bool:
        rounds.patience = 0.0
        return should_stop()

    rounds.should_stop = slow  # type: ignore[method-assign]  # the time passes in it
    assert rounds.run(way, reply) is False
    assert (len(rounds.sent), rounds.collector.rounds) == (2, 1)


def test_a_stalled_round_ends_with_the_time() -> None:
    gate, rounds = threading.Event(), Rounds((1, 2))
    rounds.patience = 0.05

    def send(draw: Draw) -> Reply:
        gate.wait(30)
        return reply(draw)

    assert rounds.run("threads", send) is False
    gate.set()
    assert (rounds.there, rounds.collector.samples) == ([], ())


@given(
    steps=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    batch=st.integers(1, 12),
)
def test_rounds_ask_for_each_reply_once(steps: list[int], batch: int) -> None:
    totals = [sum(steps[: place + 1]) for place in range(len(steps))]
    collector = Collector(totals[-1], batch=batch, rounds=totals)
    asked: list[int] = []
    draws = collector.first()
    for place, total in enumerate(totals):
        asked += [i for draw in draws for i in range(draw.index, draw.index + draw.n)]
        assert asked == [*range(total)]
        assert (collector.asked, collector.rounds) == (total, place + 1)
        assert all(draw.n <= batch for draw in draws)
        if not collector.complete:
            draws = collector.next_round()
    assert collector.complete
    assert collector.rounds == len(totals)
