"""Samples of one guarded call: beside the answer or after it, within the limits."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.assess import (
    Assessor,
    AsyncSession,
    Brief,
    Judge,
    Session,
)
from snne_guard.decision import Policy
from snne_guard.sampling import Draw, Limiter, Reply, SamplingPlan
from snne_guard.sampling.within import off_loop
from snne_guard.types import FloatArray, Sample
from tests.assess.sessions import (
    LONG_CALL,
    PARIS,
    WAYS,
    Setting,
    Stalling,
    send_paris,
)

pytestmark = pytest.mark.usefixtures("brief_observers")


# --- schedules and limits ------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("answer_first", [False, True])
def test_samples_are_drawn_beside_the_answer_or_after_it(
    way: str, *, answer_first: bool
) -> None:
    sent = threading.Event()

    def send(draw: Draw) -> Reply:
        sent.set()
        return send_paris(draw)

    def before(session: Any) -> None:
        if answer_first:
            assert session._draws._open == 0
            assert not sent.is_set()
        else:
            assert sent.wait(60)

    found, _ = Setting(way).call(send=send, before=before, answer_first=answer_first)
    assert found.n_used == 5
    assert sent.is_set()


@WAYS
@pytest.mark.parametrize("limit", ["timeout", "sample_timeout"])
def test_what_has_arrived_at_the_limit_is_scored(way: str, limit: str) -> None:
    stalling = Stalling(way)

    def before(session: Any) -> None:
        stalling.until_the_rest_is_in(session)
        session._clock.started -= 1000  # as if the call had begun long ago

    limits: dict[str, Any] = {limit: 500}
    setting = Setting(way, **limits)
    found, _ = setting.call(send=stalling, before=before)
    stalling.gate.set()
    assert (found.decision, found.n_used) == ("accept", 4)
    assert found.reasons == ("samples_late",)
    assert found.cost.attempts == 5
    assert found.cost.calls == 4


@WAYS
def test_the_samples_own_limit_begins_with_the_samples(way: str) -> None:
    def before(session: Any) -> None:
        session._clock.started -= 1000

    setting = Setting(way, sample_timeout=500)
    found, _ = setting.call(before=before, answer_first=True)
    assert (found.n_used, found.reasons) == (5, ())


@WAYS
def test_the_limit_of_the_whole_call_holds_after_the_answer_too(way: str) -> None:
    stalling = Stalling(way)

    def before(session: Any) -> None:
        session._clock.started -= 1000

    setting = Setting(way, timeout=500, sample_timeout=700)
    found, _ = setting.call(send=stalling, before=before, answer_first=True)
    stalling.gate.set()
    assert found.reasons[0] == "samples_late"


@pytest.mark.parametrize(
    ("plan", "elapsed", "remaining", "patience"),
    [
        ({}, 10, None, None),
        ({"timeout": 30}, 10, 20, 20),
        ({"timeout": 5}, 10, 0, 0),
        ({"sample_timeout": 15}, 10, None, 5),
        ({"timeout": 30, "sample_timeout": 15}, 10, 20, 5),
        ({"timeout": 12, "sample_timeout": 60}, 10, 2, 2),
    ],
)
def test_how_long_samples_may_still_take(
    plan: dict[str, Any],
    elapsed: float,
    remaining: float | None,
    patience: float | None,
) -> None:
    session = Session(Setting("threads", **plan).assessor, Brief(), send_paris)
    session._clock.started -= elapsed
    for found, expected in (
        (session.remaining, remaining),
        (session._clock.patience(), patience),
    ):
        if expected is None:
            assert found is None
        else:
            assert found == pytest.approx(expected, abs=5)


@WAYS
def test_the_limiter_is_that_of_the_guard(way: str) -> None:
    setting = Setting(way)
    limiter = Limiter(1)
    setting.assessor = replace(setting.assessor, limiter=limiter)
    inside: list[int] = []

    def send(draw: Draw) -> Reply:
        inside.append(limiter._held)
        return send_paris(draw)

    setting.call(send=send)
    assert inside == [1, 1, 1, 1]


# --- where scoring runs --------------------------------------------------------------


def own_similarity(texts: Any, /, *, question: str | None = None) -> FloatArray:
    import numpy as np

    del question
    threads.append(threading.current_thread())
    return np.ones((len(texts), len(texts)))


threads: list[threading.Thread] = []


@pytest.mark.parametrize(
    ("answer", "options", "apart"),
    [
        (PARIS, {}, False),
        (Sample(text="word " * 1000), {}, True),
        (LONG_CALL, {"tool_calls": "score"}, True),
        (PARIS, {"similarity": own_similarity}, True),
    ],
)
async def test_long_work_and_the_users_code_do_not_hold_the_event_loop(
    answer: Sample,
    options: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    apart: bool,
) -> None:
    handed: list[str] = []

    async def noting(work: Any) -> Any:
        handed.append(work.func.__name__)
        return await off_loop(work)

    monkeypatch.setattr("snne_guard.assess.session.off_loop", noting)
    judge = Judge(policy=Policy(), **options)
    assessor = Assessor(plan=SamplingPlan(n=2), judge=judge)

    async def send(draw: Draw) -> Reply:
        return send_paris(draw)

    threads.clear()
    async with AsyncSession(assessor, Brief(), send) as session:
        found, _ = await session.finish(answer)
    assert found.uncertainty is not None
    assert handed == (["_judged"] if apart else [])
    assert threading.main_thread() not in threads
