"""A monitor: its states, its audits, its reports, and what it is bound to."""

from __future__ import annotations

import math
import pickle
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from snne_guard import ConfigurationError, InputError, Monitor, MonitorStoreError
from snne_guard.decision import MemoryStore, monitor_state, monitor_status

STEADY = [step / 500 for step in range(500)]


def shown(monitor: Monitor, scores: list[float], *, accepted: bool = False) -> None:
    for number, score in enumerate(scores):
        monitor.note(f"{score}-{number}", uncertainty=score, accepted=accepted)


def audited(monitor: Monitor, verdicts: list[bool]) -> None:
    """Report on answers that are all picked for an audit."""
    for number, correct in enumerate(verdicts):
        name = f"audited-{monitor.status().n_picked}-{number}"
        assert monitor.note(name, uncertainty=None, accepted=True).audit
        monitor.report(name, correct=correct)


def test_a_new_monitor_knows_nothing_against_the_calibration() -> None:
    status = Monitor(reference=STEADY, alpha=0.1).status()
    assert (status.state, status.reason) == (
        "ok",
        "nothing speaks against the calibration",
    )
    assert (status.n_reference, status.n_scores, status.drift_evidence) == (500, 0, 1.0)
    assert (status.n_accepted, status.n_reported, status.audit_evidence) == (0, 0, 1.0)
    assert status.since is None
    assert Monitor(reference=STEADY).status().audit_evidence is None


def test_scores_that_rise_are_watched_and_then_stale() -> None:
    monitor = Monitor(reference=STEADY, alpha=0.1, seed=0)
    seen = []
    for number in range(100):
        status = monitor.note(str(number), uncertainty=0.95, accepted=False)
        seen.append(status.state)
    assert seen == sorted(seen, key=["ok", "watch", "stale"].index)
    assert set(seen) == {"ok", "watch", "stale"}
    assert status.reason.startswith(
        f"after {status.n_scores} answers the uncertainties are higher than before: "
    )
    assert status.reason.endswith(", alarm at 20")
    assert status.n_scores == seen.index("stale") + 1  # no more bets after an alarm
    assert status.since is not None
    assert datetime.fromisoformat(status.since).tzinfo is not None


def test_a_stale_calibration_stays_stale_until_it_is_reset() -> None:
    monitor = Monitor(reference=STEADY, seed=0)
    shown(monitor, [0.95] * 100)
    shown(monitor, STEADY)
    assert monitor.status().state == "stale"
    monitor.reset()
    assert monitor.status().state == "ok"
    assert monitor.status().n_scores == 0


def test_wrong_answers_are_watched_and_then_stale() -> None:
    monitor = Monitor(alpha=0.1, audit_rate=1.0)
    audited(monitor, [True, True, False, False, False])
    assert monitor.status().state == "watch"
    assert monitor.status().reason.startswith(
        "3 of 5 audited answers were wrong, and 10 % of all accepted ones may be: "
    )
    audited(monitor, [False])
    status = monitor.status()
    assert (status.state, status.n_reported, status.n_wrong) == ("stale", 6, 4)
    assert status.audit_evidence is not None
    assert status.audit_evidence >= 20
    assert status.drift_evidence == 1.0


def test_without_a_promise_reports_are_counted_and_nothing_follows() -> None:
    monitor = Monitor(audit_rate=1.0)
    audited(monitor, [False] * 50)
    status = monitor.status()
    assert (status.state, status.n_wrong, status.audit_evidence) == ("ok", 50, None)


def test_levels_decide_when_there_is_an_alarm() -> None:
    strict = Monitor(alpha=0.1, audit_rate=1.0, audit_level=1e-6)
    audited(strict, [False] * 8)
    assert strict.status().state == "watch"
    loose = Monitor(reference=STEADY, drift_level=0.5, seed=0)
    shown(loose, [0.95] * 20)
    assert loose.status().state == "stale"


def test_audits_are_a_share_of_accepted_answers_whatever_their_uncertainty() -> None:
    def picked(score: float) -> list[bool]:
        monitor = Monitor(audit_rate=0.2, seed=1, drift_level=1e-290)
        return [
            monitor.note(f"a{n}", uncertainty=score, accepted=True).audit
            for n in range(500)
        ]

    assert sum(picked(0.1)) == pytest.approx(100, abs=4 * math.sqrt(500 * 0.16))
    assert picked(0.1) == picked(0.9)


@pytest.mark.parametrize(("rate", "picked"), [(0.0, 0), (1.0, 20)])
def test_none_or_all_may_be_audited(rate: float, picked: int) -> None:
    monitor = Monitor(audit_rate=rate)
    shown(monitor, [0.5] * 10, accepted=False)
    assert monitor.status().n_accepted == 0
    shown(monitor, [0.1] * 20, accepted=True)
    assert monitor.status().n_picked == picked
    assert len(monitor.pending()) == picked


@pytest.mark.parametrize(
    ("on_stale", "audit"), [("uncertain", False), ("accept", True)]
)
def test_what_is_not_accepted_for_an_alarm_is_not_audited(
    on_stale: Any, audit: bool
) -> None:
    monitor = Monitor(reference=STEADY, seed=0, audit_rate=1.0, on_stale=on_stale)
    shown(monitor, [0.95] * 100)
    noted = monitor.note("late", uncertainty=0.95, accepted=True)
    assert (noted.state, noted.audit) == ("stale", audit)


def test_a_report_counts_once_and_cannot_be_taken_back() -> None:
    monitor = Monitor(alpha=0.1, audit_rate=1.0)
    monitor.note("a1", uncertainty=0.1, accepted=True)
    monitor.note("a2", uncertainty=0.1, accepted=True)
    assert monitor.pending() == ("a1", "a2")
    assert monitor.report("a1", correct=False).n_wrong == 1
    assert monitor.report("a1", correct=False).n_reported == 1
    with pytest.raises(InputError, match="'a1' was reported to be wrong before"):
        monitor.report("a1", correct=True)
    monitor.report("a2", correct=True)
    with pytest.raises(InputError, match="'a2' was reported to be right before"):
        monitor.report("a2", correct=False)
    assert monitor.pending() == ()
    with pytest.raises(InputError, match="'a3' waits for an audit"):
        monitor.report("a3", correct=True)
    with pytest.raises(InputError, match="correct must be True or False; got 'yes'"):
        monitor.report("a2", correct="yes")  # type: ignore[arg-type]
    status = monitor.status()
    assert (status.n_reported, status.n_wrong, status.n_pending) == (2, 1, 0)


def test_an_answer_that_was_not_picked_cannot_be_reported() -> None:
    monitor = Monitor(alpha=0.1, audit_rate=0.0)
    monitor.note("a1", uncertainty=0.1, accepted=True)
    with pytest.raises(InputError, match="it was not picked"):
        monitor.report("a1", correct=True)


def test_only_so_many_audits_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    assert monitor_state.KEPT == 1000
    monkeypatch.setattr(monitor_state, "KEPT", 20)
    monitor = Monitor(alpha=0.5, audit_rate=1.0)
    for number in range(22):
        monitor.note(f"a{number}", uncertainty=None, accepted=True)
    assert len(monitor.pending()) == 20
    with pytest.raises(InputError, match=r"'a1' waits .* or 20 others were since"):
        monitor.report("a1", correct=True)
    for number in range(2, 22):
        monitor.report(f"a{number}", correct=True)
    monitor.note("last", uncertainty=None, accepted=True)
    monitor.report("last", correct=True)
    with pytest.raises(InputError, match="'a2' waits"):  # forgotten by now
        monitor.report("a2", correct=True)
    assert monitor.report("a3", correct=True).n_reported == 21


def test_a_score_that_is_none_leaves_everything_as_it_was() -> None:
    monitor = Monitor(reference=STEADY, audit_rate=1.0)
    with pytest.raises(InputError, match=r"in \[0, 1\]; got nan"):
        monitor.note("a1", uncertainty=math.nan, accepted=True)
    assert monitor.status().n_accepted == 0
    for wrong in ("", None, 5):
        with pytest.raises(InputError, match="an id must be a text"):
            monitor.note(wrong, uncertainty=0.1, accepted=True)  # type: ignore[arg-type]
    assert monitor.pending() == ()
    assert Monitor(reference=np.array([0.1, 0.2])).status().n_reference == 2
    assert Monitor(reference=np.array([])).key == Monitor().key
    assert Monitor(reference=[0.1, math.inf]).status().n_reference == 1
    with pytest.raises(InputError):
        Monitor(reference=[0.1, -1.0])


@pytest.mark.parametrize(
    "options",
    [
        {"alpha": 0.0},
        {"alpha": True},
        {"alpha": "0.1"},
        {"drift_level": 1},
        {"audit_level": math.nan},
        {"audit_rate": 1.5},
        {"on_stale": "ignore"},
        {"name": ""},
        {"name": 7},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigurationError, match=f"{name} must be"):
        Monitor(**options)


def test_it_takes_from_a_calibration_what_it_was_not_given() -> None:
    monitor = Monitor()
    monitor.bind(reference=STEADY, alpha=0.1)
    monitor.bind(reference=STEADY, alpha=0.1)  # by a second guard, the same
    assert monitor.status().n_reference == 500
    assert monitor.alpha == 0.1
    assert monitor.key == Monitor(reference=STEADY, alpha=0.1).key
    with pytest.raises(ConfigurationError, match="'default' watches another"):
        monitor.bind(reference=STEADY, alpha=0.2)
    assert monitor.alpha == 0.1
    own = Monitor(reference=[0.5], alpha=0.3)
    own.bind(reference=STEADY, alpha=0.1)
    assert (own.alpha, own.status().n_reference) == (0.3, 1)


def test_calibrations_in_one_store_do_not_disturb_each_other() -> None:
    store = MemoryStore()
    old = Monitor(reference=STEADY, alpha=0.1, store=store, audit_rate=1.0)
    new = Monitor(reference=STEADY[1:], alpha=0.1, store=store, audit_rate=1.0)
    old.note("a1", uncertainty=0.1, accepted=True)
    assert new.status().n_scores == 0
    with pytest.raises(InputError, match="another calibration was watched then"):
        new.report("a1", correct=True)
    again = Monitor(reference=STEADY, alpha=0.1, store=store)
    assert again.report("a1", correct=True).n_reported == 1


def test_a_store_that_holds_something_else_is_an_error_and_stays_as_it_is() -> None:
    store = MemoryStore()
    monitor = Monitor(store=store)
    store.update(monitor.key, lambda _: "something else")
    for call in (
        monitor.status,
        monitor.pending,
        lambda: monitor.note("a", uncertainty=0.1, accepted=True),
        lambda: monitor.report("a", correct=True),
    ):
        with pytest.raises(MonitorStoreError, match="it is no JSON"):
            call()
    assert store._texts[monitor.key] == "something else"


def test_a_store_that_tries_again_counts_once() -> None:
    class Twice(MemoryStore):
        def update(self, key: str, change: Any, /) -> None:
            super().update(key, lambda text: (change(text), change(text))[1])

    monitor = Monitor(store=Twice(), audit_rate=0.5, seed=2)
    once = Monitor(audit_rate=0.5, seed=2)
    for number in range(20):
        assert monitor.note(str(number), uncertainty=0.3, accepted=True) == once.note(
            str(number), uncertainty=0.3, accepted=True
        )
    assert monitor.pending() == once.pending()


def test_a_pickled_monitor_is_the_same_one_with_a_memory_of_its_own() -> None:
    monitor = Monitor(reference=STEADY, alpha=0.1, audit_rate=1.0)
    monitor.note("a1", uncertainty=0.1, accepted=True)
    again = pickle.loads(pickle.dumps(monitor))  # noqa: S301 - our own bytes
    assert again.key == monitor.key
    assert again.status().n_scores == 0


def test_a_clock_that_jumps_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Back(datetime):
        """A clock that goes back a year at each look."""

        looks = 2026

        @classmethod
        def now(cls, tz: Any = None) -> Back:
            Back.looks -= 1
            return cls(Back.looks, 1, 1, tzinfo=tz)

    def states() -> list[str]:
        monitor = Monitor(reference=STEADY, seed=0)
        return [
            monitor.note(str(number), uncertainty=0.95, accepted=False).state
            for number in range(60)
        ]

    steady = states()
    monkeypatch.setattr(monitor_status, "datetime", Back)
    assert states() == steady
    assert Back.looks == 2025  # looked at once, for the time of the alarm


def test_it_shows_what_it_watches_and_where() -> None:
    shown = repr(Monitor(name="chat"))
    assert shown.startswith("Monitor(key='chat/")
