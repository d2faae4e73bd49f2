"""A guarded call in rounds: when it stops, and what it then says of itself."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from snne_guard.assess import (
    Assessor,
    AsyncSession,
    Brief,
    Judge,
    Session,
    Stopping,
    StopRule,
)
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.sampling import Draw, Reply, SamplingPlan, retry
from snne_guard.types import Assessment, Cost, FloatArray, Sample, Score
from tests.support.patience import in_time

WAYS = pytest.mark.parametrize("way", ["threads", "tasks"])
PARIS = Sample(text="Paris")
EMPTY = Sample(text=" ")


class BusyError(Exception):
    """A provider that asks to come back in a minute."""

    status_code = 429
    response = SimpleNamespace(headers={"retry-after": "60"})


def send_paris(draw: Draw) -> Reply:
    return Reply(samples=(PARIS,) * draw.n, cost=Cost(calls=1))


def at_once(score: Score, missing: int) -> bool:
    del score, missing
    return True


class Call:
    """One guarded call in rounds of 3, 5 and 10 members, by one of the twins."""

    def __init__(
        self,
        rule: StopRule | None = at_once,
        *,
        judge: Judge | None = None,
        **plan: Any,
    ) -> None:
        policy = Policy(threshold=Threshold.fixed(0.5), min_samples=5)
        judge = Judge(policy=policy) if judge is None else judge
        self.assessor = Assessor(
            plan=SamplingPlan(**{"n": 10, "rounds": (3, 5, 10), **plan}),
            judge=judge,
            stopping=None
            if rule is None
            else Stopping(judge=judge, certificate=False, rule=rule),
        )
        self.sent: list[Draw] = []

    def __call__(
        self,
        way: str,
        answer: Sample = PARIS,
        *,
        send: Callable[[Draw], Reply] = send_paris,
        **brief: Any,
    ) -> tuple[Assessment, Verdict]:
        def noting(draw: Draw) -> Reply:
            self.sent.append(draw)
            return send(draw)

        if way == "threads":
            with Session(self.assessor, Brief(**brief), noting) as session:
                return session.finish(answer)

        async def asend(draw: Draw) -> Reply:
            await asyncio.sleep(0)
            return noting(draw)

        async def run() -> tuple[Assessment, Verdict]:
            async with AsyncSession(self.assessor, Brief(**brief), asend) as session:
                return await session.finish(answer)

        return asyncio.run(run())


@WAYS
@pytest.mark.parametrize("answer_first", [False, True])
def test_a_call_that_stopped_says_so_and_what_it_saved(
    way: str, answer_first: bool
) -> None:
    call = Call()
    found, verdict = call(way, answer_first=answer_first)
    assert (found.decision, verdict.action) == ("accept", "deliver")
    # Three are fewer than min_samples, but all of those that were to decide.
    assert (found.n_requested, found.n_used, len(found.samples)) == (3, 3, 2)
    assert found.reasons == ("stopped_early",)
    assert (found.cost.rounds, found.cost.samples_saved) == (1, 7)
    assert len(call.sent) == 2


@WAYS
def test_the_rule_gets_the_score_so_far_and_what_is_missing(way: str) -> None:
    told: list[tuple[int, int, float | None]] = []

    def rule(score: Score, missing: int) -> bool:
        told.append((score.n, missing, score.uncertainty))
        return False

    found, _ = Call(rule)(way)
    assert told == [(3, 7, 0.0), (5, 5, 0.0)]
    assert (found.n_requested, found.n_used, found.reasons) == (10, 10, ())
    assert (found.cost.rounds, found.cost.samples_saved) == (3, 0)


@WAYS
def test_without_a_rule_all_rounds_are_drawn(way: str) -> None:
    found, _ = Call(None)(way)
    assert (found.n_used, found.cost.rounds) == (10, 3)


@WAYS
def test_samples_alone_are_a_round_too(way: str) -> None:
    found, _ = Call(include_answer=False)(way)
    assert (found.n_requested, found.n_used, found.cost.samples_saved) == (3, 3, 7)


@WAYS
def test_all_samples_before_the_stop_are_scored(way: str) -> None:
    def send(draw: Draw) -> Reply:
        texts = ["Paris", "Lyon"] if draw.index == 0 else ["Nice", "Paris"]
        return Reply(samples=tuple(Sample(text=text) for text in texts))

    def rule(score: Score, missing: int) -> bool:
        return score.n == 5 and missing == 5

    found, _ = Call(rule)(way, send=send, batch=2)
    assert found.scored == ("Paris", "Paris", "Lyon", "Nice", "Paris")


@WAYS
def test_an_answer_that_cannot_be_scored_needs_no_further_round(way: str) -> None:
    found, _ = Call()(way, EMPTY)
    assert found.reasons == ("stopped_early", "answer_empty")
    assert (found.n_used, found.cost.samples_saved) == (0, 7)


@WAYS
def test_a_rule_is_not_asked_about_a_set_of_one(way: str) -> None:
    def send(draw: Draw) -> Reply:
        sample = EMPTY if draw.index < 2 else PARIS
        return Reply(samples=(sample,) * draw.n)

    found, _ = Call()(way, send=send)
    assert (found.n_requested, found.n_used) == (5, 3)
    assert found.reasons == ("stopped_early", "empty_samples")


@WAYS
def test_a_rule_that_raises_stops_nothing_and_is_named_without_texts(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def rule(score: Score, missing: int) -> bool:
        raise ValueError(PARIS.text, score, missing)

    with caplog.at_level(logging.WARNING, logger="snne_guard"):
        found, _ = Call(rule)(way)
    assert (found.n_used, found.reasons) == (10, ())
    assert "a stopping rule failed with ValueError" in caplog.text
    assert "Paris" not in caplog.text


@WAYS
def test_where_scoring_fails_no_rule_is_asked(way: str) -> None:
    def broken(texts: list[str], /, *, question: str | None = None) -> FloatArray:
        raise ValueError(texts, question)

    judge = Judge(
        policy=Policy(threshold=Threshold.fixed(0.5)),
        similarity=broken,  # type: ignore[arg-type]  # never called with a Sequence
    )
    found, _ = Call(judge=judge)(way)
    assert (found.n_requested, found.reasons) == (10, ("scoring_failed",))


@WAYS
def test_a_skipped_answer_stops_nothing_early(way: str) -> None:
    found, _ = Call()(way, skip="not_sampled")
    assert found.reasons == ("not_sampled",)
    assert (found.cost.rounds, found.cost.samples_saved) == (0, 0)
    assert found.n_requested == 10


@WAYS
def test_a_late_round_is_late_and_nothing_is_saved(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_jitter", lambda _state: 60.0)

    def send(draw: Draw) -> Reply:
        if draw.index >= 2:
            raise BusyError  # is tried again after the time is up
        return send_paris(draw)

    def check(limit: float) -> None:
        asked: list[int] = []

        def never(score: Score, missing: int) -> bool:
            del score
            asked.append(missing)
            return False

        found, _ = Call(never, sample_timeout=limit)(way, send=send)
        assert asked == [7]
        assert (found.n_requested, found.n_used) == (10, 3)
        assert found.reasons == ("samples_late", "too_few_samples")
        assert (found.cost.rounds, found.cost.samples_saved) == (2, 0)

    in_time(check, seconds=0.5)


@WAYS
def test_a_rule_of_a_users_own_runs_beside_the_event_loop(way: str) -> None:
    threads: list[str] = []

    def rule(score: Score, missing: int) -> bool:
        del score, missing
        threads.append(threading.current_thread().name)
        return True

    Call(rule)(way)
    main = threading.main_thread().name
    assert [name == main for name in threads] == [way == "threads"]


@WAYS
def test_a_similarity_of_a_users_own_sees_each_set_once(way: str) -> None:
    asked: list[int] = []

    def own(texts: Any, /, *, question: str | None = None) -> FloatArray:
        del question
        asked.append(len(texts))
        return np.ones((len(texts), len(texts)))

    judge = Judge(policy=Policy(threshold=Threshold.fixed(0.5)), similarity=own)
    Call(lambda score, _missing: score.n == 5, judge=judge)(way)
    assert asked == [3, 5]


def test_log_probabilities_are_settled_by_the_whole_set_only() -> None:
    with_logprobs = Sample(text="Paris", token_logprobs=(-0.1,))
    methods: list[str] = []

    def rule(score: Score, missing: int) -> bool:
        del missing
        methods.append(score.method)
        return False

    call = Call(rule)
    found, _ = call("threads", with_logprobs)  # the samples have none
    assert methods == ["snne", "snne"]
    assert found.reasons == ("logprobs_missing",)
    assert call.assessor.memory.logprobs is True
    call.assessor.memory.logprobs = False
    found, _ = call("threads", with_logprobs)
    assert found.reasons == ()
