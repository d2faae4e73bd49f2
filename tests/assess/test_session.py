"""One guarded call: limits, skips, breaking off, and what observers are told."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.assess import (
    CHOSEN_SKIPS,
    Assessor,
    AsyncSession,
    Brief,
    Judge,
    ObserverHub,
    Session,
    observe,
)
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.sampling import Draw, Limiter, Reply, SamplingPlan
from snne_guard.types import Assessment, Cost, FloatArray, Sample, SampleEvent
from tests.support.guarding import Witness

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


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "_FLUSH_SECONDS", 60.0)
    monkeypatch.setattr(observe, "_IDLE_SECONDS", 0.01)


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


def events(witness: Witness) -> list[tuple[str, str, int, int]]:
    started = [("start", e.role, e.index, e.n) for e in witness.started]
    ended = [("end", e.role, e.index, len(e.samples)) for e in witness.ended]
    return sorted(started + ended)


# --- the usual call ------------------------------------------------------------------


@WAYS
def test_everything_that_was_drawn_is_scored_counted_and_told(way: str) -> None:
    setting = Setting(way)
    found, verdict = setting.call(question="Capital?", reasons=("temperature_unset",))
    assert (found.decision, verdict.action) == ("accept", "deliver")
    assert (found.n_requested, found.n_used, found.uncertainty) == (5, 5, 0.0)
    assert found.reasons == ("temperature_unset",)
    assert (found.id, found.question) == ("an id", "Capital?")
    assert replace(found.cost, seconds=0.0) == Cost(
        calls=5, attempts=5, prompt_tokens=25, completion_tokens=6, rounds=1
    )
    (session,) = setting.sessions
    assert session.samples_cost == Cost(
        calls=4, attempts=4, prompt_tokens=20, completion_tokens=4
    )
    assert 0 < found.cost.seconds <= session.elapsed
    assert setting.witness.assessments == [found]
    assert events(setting.witness) == [
        ("end", "answer", 0, 1),
        *[("end", "sample", index, 1) for index in range(4)],
        ("start", "answer", 0, 1),
        *[("start", "sample", index, 1) for index in range(4)],
    ]
    assert {e.assessment_id for e in setting.witness.started} == {"an id"}


@WAYS
def test_samples_are_asked_for_in_batches_where_they_come_so(way: str) -> None:
    setting = Setting(way)
    found, _ = setting.call(batch=4)
    assert (found.n_used, found.cost.attempts) == (5, 2)
    assert setting.assessor.memory.batch is None


@WAYS
def test_the_batch_that_came_is_remembered(way: str) -> None:
    def ignoring(_draw: Draw) -> Reply:
        return Reply(samples=(PARIS,), cost=Cost(calls=1))

    setting = Setting(way)
    assert setting.assessor.batch(supported=True) == 4
    found, _ = setting.call(batch=4, send=ignoring)
    assert (found.n_used, found.cost.attempts) == (5, 5)
    assert setting.assessor.batch(supported=True) == 1
    assert setting.assessor.batch(supported=False) == 1


@WAYS
def test_samples_that_fail_are_named_and_nothing_is_learnt_of_them(way: str) -> None:
    def fail(draw: Draw) -> Reply:
        msg = f"no {draw.index}"
        raise ValueError(msg)

    setting = Setting(way)
    found, _ = setting.call(send=fail, batch=2)
    (session,) = setting.sessions
    assert sorted(map(str, session.errors)) == ["no 0", "no 2"]
    assert found.reasons == ("samples_failed", "too_few_samples")
    assert found.decision == "refuse"
    assert setting.assessor.memory.batch is None
    ended = [e for e in setting.witness.ended if e.role == "sample"]
    assert sorted(str(e.error) for e in ended) == ["no 0", "no 2"]


@WAYS
def test_log_probabilities_are_settled_for_the_guard(way: str) -> None:
    def certain(_draw: Draw) -> Reply:
        return Reply(samples=(replace(PARIS, token_logprobs=(-0.1,)),))

    setting = Setting(way)
    first, _ = setting.call(send=certain)
    assert (first.method, first.reasons) == ("snne", ("logprobs_missing",))
    assert setting.assessor.memory.logprobs is True
    second, _ = setting.call(replace(PARIS, token_logprobs=(-0.2,)), send=certain)
    assert (second.method, second.reasons) == ("wsnne", ())


@WAYS
def test_requests_run_in_the_context_of_the_call(way: str) -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    context = contextvars.copy_context()
    context.run(variable.set, "from the call")
    seen: list[str] = []

    def send(draw: Draw) -> Reply:
        seen.append(variable.get())
        return send_paris(draw)

    Setting(way).call(send=send, context=context)
    assert seen == ["from the call"] * 4


def test_each_call_has_an_id_of_its_own() -> None:
    ids = {Brief().id for _ in range(100)}
    assert len(ids) == 100
    assert all(len(found) == 32 for found in ids)


# --- skips ---------------------------------------------------------------------------


@WAYS
@pytest.mark.parametrize("reason", [*sorted(CHOSEN_SKIPS), "side_effects"])
def test_a_call_that_is_skipped_draws_nothing(way: str, reason: str) -> None:
    setting, sent = Setting(way), list[Draw]()

    def send(draw: Draw) -> Reply:
        sent.append(draw)
        return send_paris(draw)

    found, verdict = setting.call(send=send, skip=reason)
    chosen = reason != "side_effects"
    assert (found.decision, verdict.action) == (
        ("unscored", "deliver") if chosen else ("refuse", "refuse")
    )
    assert (found.reasons, found.samples, sent) == ((reason,), (), [])
    assert replace(found.cost, seconds=0.0) == ANSWER_COST
    assert (found.n_used, found.uncertainty) == (0, None)
    assert setting.witness.assessments == [found]


@WAYS
@pytest.mark.parametrize("answer_first", [False, True])
def test_an_answer_that_calls_tools_passes_unscored(
    way: str, *, answer_first: bool
) -> None:
    setting = Setting(way)
    found, verdict = setting.call(CALLING, answer_first=answer_first)
    assert (found.decision, verdict.action) == ("unscored", "deliver")
    assert found.reasons == ("tool_calls",)
    assert found.answer == CALLING


@WAYS
def test_an_answer_that_calls_tools_is_scored_where_the_user_says_so(way: str) -> None:
    judge = Judge(policy=Policy(), tool_calls="score")

    def send(draw: Draw) -> Reply:
        return Reply(samples=(CALLING,) * draw.n)

    found, _ = Setting(way, judge=judge).call(CALLING, send=send)
    assert (found.n_used, found.uncertainty) == (5, 0.0)


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
    to_thread = asyncio.to_thread

    async def noting(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        handed.append(work.__name__)
        return await to_thread(work, *args, **kwargs)

    monkeypatch.setattr(asyncio, "to_thread", noting)
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


def test_a_sample_event_says_which_replies_it_is_about() -> None:
    setting = Setting("threads")
    setting.call(batch=3)
    asked = [e for e in setting.witness.started if e.role == "sample"]
    assert sorted((e.index, e.n) for e in asked) == [(0, 3), (3, 1)]
    assert all(isinstance(e, SampleEvent) for e in asked)
