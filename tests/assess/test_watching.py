"""What watches a guard sees each verdict first, and may doubt what is accepted."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from snne_guard.assess import Judge, books
from snne_guard.assess.watching import Doubt
from snne_guard.decision import Policy, Threshold
from snne_guard.sampling import Draw, Reply
from snne_guard.types import Assessment, Cost, Sample
from tests.assess.sessions import CALLING, WAYS, Setting

pytestmark = pytest.mark.usefixtures("brief_observers")


class Looking:
    """Picks everything for an audit, and answers with one doubt."""

    def __init__(
        self,
        doubt: Doubt | None = None,
        *,
        may_withhold: bool = False,
        light: bool = True,
    ) -> None:
        self.doubt, self.may_withhold, self.light = doubt, may_withhold, light
        self.seen: list[Assessment] = []
        self.threads: list[int] = []

    def see(self, assessment: Assessment) -> tuple[Assessment, Doubt | None]:
        self.seen.append(assessment)
        self.threads.append(threading.get_ident())
        reasons = (*assessment.reasons, "looked_at")
        return replace(assessment, audit=True, reasons=reasons), self.doubt

    def missed(self, assessment: Assessment) -> tuple[Assessment, Doubt | None]:
        reasons = (*assessment.reasons, "missed_it")
        return replace(assessment, reasons=reasons), self.doubt


class Failing(Looking):
    def see(self, assessment: Assessment) -> tuple[Assessment, Doubt | None]:
        raise OSError(assessment.id)


def watched(way: str, watch: Looking, **plan: Any) -> Setting:
    setting = Setting(way, **plan)
    setting.assessor = replace(setting.assessor, watch=watch)
    return setting


def apart(draw: Draw) -> Reply:
    cities = ("Lyon", "Nice", "Lille", "Metz")
    drawn = cities[draw.index : draw.index + draw.n]
    return Reply(samples=tuple(Sample(text=city) for city in drawn), cost=Cost(calls=1))


@WAYS
@pytest.mark.parametrize("light", [True, False])
def test_it_sees_the_verdict_before_observers_do_and_adds_to_it(
    way: str, *, light: bool
) -> None:
    watch = Looking(light=light)
    setting = watched(way, watch)
    found, verdict = setting.call()
    (seen,) = watch.seen
    assert (seen.decision, seen.uncertainty, seen.audit) == ("accept", 0.0, None)
    assert (found.decision, verdict.action) == ("accept", "deliver")
    assert (found.audit, found.reasons) == (True, ("looked_at",))
    assert found.to_metadata()["audit"] is True
    assert setting.witness.assessments == [found]
    # What may wait for a disk does so in a thread of its own, not on the loop.
    on_loop = way == "threads" or light
    assert (watch.threads == [threading.get_ident()]) is on_loop


@WAYS
@pytest.mark.parametrize(
    ("doubt", "decision", "action"),
    [
        ("uncertain", "refuse", "refuse"),
        ("flag", "flag", "deliver"),
        ("refuse", "refuse", "refuse"),
        ("raise", "refuse", "raise"),
        ("fallback", "fallback", "fallback"),
    ],
)
def test_a_doubt_keeps_an_answer_from_being_accepted(
    way: str, doubt: Doubt, decision: str, action: str
) -> None:
    setting = watched(way, Looking(doubt))
    certified = Policy(threshold=Threshold.fixed(0.5), on_uncertain="refuse")
    setting.assessor = replace(setting.assessor, judge=Judge(policy=certified))
    found, verdict = setting.call()
    assert (found.decision, verdict.action) == (decision, action)
    assert (verdict.decision, found.certified) == (decision, False)
    assert (found.uncertainty, found.threshold) == (0.0, 0.5)


@WAYS
def test_a_doubt_changes_nothing_of_what_is_not_accepted(way: str) -> None:
    watch = Looking("flag")
    found, verdict = watched(way, watch).call(send=apart)
    assert (found.decision, verdict.action) == ("refuse", "refuse")
    assert found.audit
    skipped, _ = watched(way, watch).call(skip="not_sampled")
    assert (skipped.decision, skipped.reasons) == (
        "unscored",
        ("not_sampled", "looked_at"),
    )


class Stuck(Looking):
    """Does not come back before it is let go."""

    def __init__(self, doubt: Doubt | None = None) -> None:
        super().__init__(doubt, light=False)
        self.go = threading.Event()

    def see(self, assessment: Assessment) -> tuple[Assessment, Doubt | None]:
        assert self.go.wait(60)
        return super().see(assessment)


@WAYS
@pytest.mark.parametrize(
    ("doubt", "decision"), [(None, "accept"), ("uncertain", "refuse")]
)
def test_one_that_fails_loses_no_answer_and_says_itself_what_follows(
    way: str, doubt: Doubt | None, decision: str, caplog: pytest.LogCaptureFixture
) -> None:
    found, verdict = watched(way, Failing(doubt)).call()
    assert (found.decision, verdict.decision) == (decision, decision)
    assert (found.reasons, found.audit) == (("missed_it",), None)
    assert [record.getMessage() for record in caplog.records] == [
        "the monitor failed with OSError"
    ]


@WAYS
def test_one_that_is_slow_is_not_waited_for_beyond_the_time_limit(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(books, "_GRACE", 0.05)
    stuck = Stuck("uncertain")
    found, verdict = watched(way, stuck, timeout=0.05).call()
    stuck.go.set()
    assert (found.decision, verdict.action) == ("refuse", "refuse")
    assert "missed_it" in found.reasons


@WAYS
def test_within_the_time_limit_it_is_waited_for(way: str) -> None:
    found, _ = watched(way, Looking(light=False), timeout=60.0).call()
    assert (found.reasons, found.audit) == (("looked_at",), True)


@WAYS
def test_an_answer_with_a_policy_of_its_own_is_none_of_its_business(way: str) -> None:
    watch = Looking("uncertain")
    setting = watched(way, watch)
    own = Policy(threshold=Threshold.fixed(0.9))
    judge = replace(setting.assessor.judge, tool_calls=own)
    setting.assessor = replace(setting.assessor, judge=judge)

    def call_too(draw: Draw) -> Reply:
        return Reply(samples=(CALLING,) * draw.n, cost=Cost(calls=1))

    found, _ = setting.call(CALLING, send=call_too)
    assert (found.decision, found.threshold, watch.seen) == ("accept", 0.9, [])
    found, _ = setting.call()
    assert (found.decision, len(watch.seen)) == ("refuse", 1)


@pytest.mark.parametrize("withholds", [True, False])
def test_answers_are_held_back_where_it_may_withhold(*, withholds: bool) -> None:
    setting = watched("threads", Looking(may_withhold=withholds))
    flags = Judge(policy=Policy(threshold=Threshold.fixed(0.5)))
    assert replace(setting.assessor, judge=flags).may_withhold is withholds
    assert not replace(setting.assessor, judge=flags, watch=None).may_withhold

    assert setting.assessor.may_withhold
