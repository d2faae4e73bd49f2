"""Guarded calls whose answer and samples a test hands in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from snne_guard.assess import (
    Assessor,
    AsyncSession,
    Brief,
    Judge,
    ObserverHub,
    Session,
)
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.sampling import Draw, Reply, SamplingPlan
from snne_guard.types import Assessment, Cost, Sample
from tests.support.guarding import Witness

__all__ = [
    "ANSWER_COST",
    "CALLING",
    "LONG_CALL",
    "PARIS",
    "WAYS",
    "Setting",
    "Stalling",
    "events",
    "send_paris",
    "used_up",
]


WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
PARIS = Sample(text="Paris")
CALLING = Sample(text="", tool_calls='[{"args":{},"name":"add"}]')
LONG_CALL = Sample(text="", tool_calls='["' + "x" * 5000 + '"]')
ANSWER_COST = Cost(calls=1, attempts=1, prompt_tokens=5, completion_tokens=2)


def send_paris(draw: Draw) -> Reply:
    cost = Cost(calls=1, prompt_tokens=5, completion_tokens=draw.n)
    return Reply(samples=(PARIS,) * draw.n, cost=cost)


class Setting:
    """An assessor with a witness, and both twins behind one face."""

    def __init__(self, way: str, *, judge: Judge | None = None, **plan: Any) -> None:
        self.way, self.witness = way, Witness()
        policy = Policy(threshold=Threshold.fixed(0.5), on_uncertain="refuse")
        self.assessor = Assessor(
            plan=SamplingPlan(**plan),
            judge=Judge(policy=policy) if judge is None else judge,
            observers=ObserverHub([self.witness]),
        )
        self.sessions: list[Session | AsyncSession] = []

    def call(
        self,
        answer: Sample = PARIS,
        *,
        send: Callable[[Draw], Reply] = send_paris,
        before: Callable[[Any], None] | None = None,
        error: BaseException | None = None,
        **brief: Any,
    ) -> tuple[Assessment, Verdict]:
        """Make one guarded call; ``before`` runs between the answer and the finish."""
        asked = Brief(**{"id": "an id", **brief})

        def act(session: Any) -> None:
            self.sessions.append(session)
            session.answer_started()
            if error is not None:
                session.answer_ended(None, cost=Cost(attempts=1), error=error)
                raise error
            session.answer_ended(answer, cost=ANSWER_COST)

        if self.way == "threads":
            with Session(self.assessor, asked, send) as session:
                act(session)
                if before is not None:
                    before(session)
                found, verdict = session.finish(answer)
                session.report(found)
                return found, verdict
        return asyncio.run(self._acall(answer, asked, send, act, before))

    async def _acall(
        self, answer: Sample, asked: Brief, send: Any, act: Any, before: Any
    ) -> tuple[Assessment, Verdict]:
        async def asend(draw: Draw) -> Reply:
            await asyncio.sleep(0)
            reply = send(draw)
            if isinstance(reply, Reply):
                return reply
            await asyncio.Event().wait()
            raise AssertionError

        async with AsyncSession(self.assessor, asked, asend) as session:
            act(session)
            if before is not None:
                await asyncio.to_thread(before, session)
            found, verdict = await session.finish(answer)
            await session.report(found)
            return found, verdict


class Stalling:
    """Sends all but one, which never comes back; knows when the rest has arrived."""

    def __init__(self, way: str, rest: int = 3) -> None:
        self.way, self.rest = way, rest
        self.gate, self.arrived = threading.Event(), threading.Semaphore(0)

    def __call__(self, draw: Draw) -> Any:
        if draw.index:
            return send_paris(draw)
        if self.way == "tasks":
            return None  # the setting waits in its stead, without blocking the loop
        self.gate.wait(60)
        return send_paris(draw)

    def until_the_rest_is_in(self, session: Any) -> None:
        for _ in range(60_000):
            if len(session._collector.samples) == self.rest:
                return
            self.gate.wait(0.001)
        raise AssertionError


def used_up(session: Any) -> None:
    """Let the time run out when all requests for samples have come back."""
    pause = threading.Event()
    for _ in range(60_000):
        if session._draws._settled.is_set():
            session._clock.started -= 1000
            return
        pause.wait(0.001)
    raise AssertionError


def events(witness: Witness) -> list[tuple[str, str, int, int]]:
    started = [("start", e.role, e.index, e.n) for e in witness.started]
    ended = [("end", e.role, e.index, len(e.samples)) for e in witness.ended]
    return sorted(started + ended)
