"""One guarded call: what is drawn, scored or skipped, and what observers are told."""

from __future__ import annotations

import contextvars
from dataclasses import replace

import pytest

from snne_guard.assess import (
    CHOSEN_SKIPS,
    Brief,
    Judge,
)
from snne_guard.decision import Policy
from snne_guard.sampling import Draw, Reply
from snne_guard.types import Cost, SampleEvent
from tests.assess.sessions import (
    ANSWER_COST,
    CALLING,
    PARIS,
    WAYS,
    Setting,
    events,
    send_paris,
)

pytestmark = pytest.mark.usefixtures("brief_observers")

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


def test_a_sample_event_says_which_replies_it_is_about() -> None:
    setting = Setting("threads")
    setting.call(batch=3)
    asked = [e for e in setting.witness.started if e.role == "sample"]
    assert sorted((e.index, e.n) for e in asked) == [(0, 3), (3, 1)]
    assert all(isinstance(e, SampleEvent) for e in asked)
