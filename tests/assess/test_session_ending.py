"""Guarded calls that break off, are cancelled or stopped: what is told of them."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest

from snne_guard.assess import (
    Assessor,
    AsyncSession,
    Brief,
    Judge,
    ObserverHub,
    Session,
)
from snne_guard.decision import Policy
from snne_guard.sampling import Draw, Reply, SamplingPlan
from snne_guard.types import Assessment, Cost
from tests.assess.sessions import (
    ANSWER_COST,
    PARIS,
    WAYS,
    Setting,
    send_paris,
)

pytestmark = pytest.mark.usefixtures("brief_observers")

# --- breaking off --------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize(
    ("error", "reason"),
    [(ConnectionResetError("no"), "answer_failed"), (KeyboardInterrupt(), "cancelled")],
)
def test_a_call_that_breaks_off_is_told_with_what_it_cost(
    way: str, error: BaseException, reason: str
) -> None:
    setting = Setting(way)
    with pytest.raises(type(error)):
        setting.call(error=error, reasons=("first",), question="Capital?")
    for thread in threading.enumerate():
        if thread.name == "snne-guard-observer":
            thread.join(30)
    (found,) = setting.witness.assessments
    assert (found.answer, found.decision, found.threshold) == (None, None, 0.5)
    assert found.reasons == ("first", reason)
    assert (found.id, found.question, found.n_requested) == ("an id", "Capital?", 5)
    assert found.cost.attempts >= 1
    failed = [e for e in setting.witness.ended if e.role == "answer"]
    assert [(e.samples, e.error) for e in failed] == [((), error)]


@WAYS
def test_an_error_after_the_report_is_not_told_again(way: str) -> None:
    setting, late = Setting(way), RuntimeError("after the report")

    def threads() -> None:
        with Session(setting.assessor, Brief(), send_paris) as session:
            session.report(session.finish(PARIS)[0])
            raise late

    async def tasks() -> None:
        async def asend(draw: Draw) -> Reply:
            return send_paris(draw)

        async with AsyncSession(setting.assessor, Brief(), asend) as session:
            await session.report((await session.finish(PARIS))[0])
            raise late

    with pytest.raises(RuntimeError, match="after the report"):
        threads() if way == "threads" else asyncio.run(tasks())
    assert [found.decision for found in setting.witness.assessments] == ["accept"]


async def test_cancelling_ends_what_is_in_flight_and_tells_what_it_cost() -> None:
    told, ended = threading.Event(), list[int]()
    found: list[Assessment] = []

    class Teller:
        def on_assessment(self, assessment: Assessment) -> None:
            found.append(assessment)
            told.set()

    judge = Judge(policy=Policy())
    assessor = Assessor(
        plan=SamplingPlan(), judge=judge, observers=ObserverHub([Teller()])
    )
    arrived = asyncio.Event()

    async def send(draw: Draw) -> Reply:
        if draw.index == 0:
            return send_paris(draw)
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(draw.index)
        raise AssertionError

    async def call() -> None:
        async with AsyncSession(assessor, Brief(), send) as session:
            session.answer_ended(PARIS, cost=ANSWER_COST)
            await session.finish(PARIS)

    task = asyncio.create_task(call())
    await asyncio.wait_for(arrived.wait(), 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
    assert sorted(ended) == [1, 2, 3]
    assert len(asyncio.all_tasks()) == 1
    assert await asyncio.to_thread(told.wait, 30)
    assert (found[0].reasons, found[0].threshold) == (("cancelled",), None)
    assert found[0].samples == (PARIS,)
    assert replace(found[0].cost, seconds=0.0) == Cost(
        calls=2,
        attempts=5,
        prompt_tokens=10,
        completion_tokens=3,
        rounds=1,
        lower_bound=True,  # three were in flight
    )


async def test_a_call_without_a_finish_leaves_nothing_in_flight() -> None:
    ended: list[int] = []
    everyone = asyncio.Barrier(5)

    async def send(draw: Draw) -> Reply:
        await everyone.wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(draw.index)
        raise AssertionError

    assessor = Setting("tasks").assessor
    async with AsyncSession(assessor, Brief(), send):
        await asyncio.wait_for(everyone.wait(), 30)
    assert sorted(ended) == [0, 1, 2, 3]


async def test_a_session_may_be_stopped_before_its_end() -> None:
    ended: list[int] = []
    everyone = asyncio.Barrier(5)

    async def send(draw: Draw) -> Reply:
        await everyone.wait()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(draw.index)
        raise AssertionError

    async with AsyncSession(Setting("tasks").assessor, Brief(), send) as session:
        await asyncio.wait_for(everyone.wait(), 30)
        await asyncio.wait_for(session.stop(), 30)
        assert sorted(ended) == [0, 1, 2, 3]


def test_a_threads_session_may_be_stopped_before_its_end() -> None:
    gate, begun = threading.Event(), threading.Semaphore(0)

    def send(draw: Draw) -> Reply:
        begun.release()
        gate.wait(60)
        return send_paris(draw)

    with Session(Setting("threads").assessor, Brief(), send) as session:
        for _ in range(4):
            assert begun.acquire(timeout=30)
        session.stop()
        gate.set()
        for thread in threading.enumerate():
            if thread.name == "snne-guard-draw":
                thread.join(30)
        assert session.samples_cost == Cost(attempts=4)
