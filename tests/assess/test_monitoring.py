"""A guard and its monitor: what it is shown, what a stale calibration leads to."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from snne_guard import ConfigurationError, Monitor, MonitorStoreError, SqliteStore
from snne_guard.assess.build import build_assessor
from snne_guard.assess.monitoring import Monitored, watching
from snne_guard.assess.settings import complete
from snne_guard.decision import Calibration, MemoryStore, Threshold
from snne_guard.types import Assessment
from tests.assess.sessions import WAYS, Setting

pytestmark = pytest.mark.usefixtures("brief_observers")

CERTIFIED = Threshold(value=0.5, kind="error_rate", status="certified", level=0.1)


def seen(**fields: Any) -> Assessment:
    usual: dict[str, Any] = {
        "uncertainty": 0.2,
        "threshold": 0.5,
        "certified": True,
        "decision": "accept",
    }
    return Assessment(id="a1", answer=None, **{**usual, **fields})


def alarmed(**options: Any) -> Monitor:
    """Return a monitor that has given an alarm."""
    monitor = Monitor(alpha=0.1, audit_rate=1.0, **options)
    for number in range(6):
        monitor.note(str(number), uncertainty=None, accepted=True)
    for number in range(6):
        monitor.report(str(number), correct=False)
    return monitor


def test_what_is_accepted_is_counted_and_picked_for_audits() -> None:
    monitor = Monitor(alpha=0.1, audit_rate=1.0)
    found, doubt = Monitored(monitor=monitor).see(seen())
    assert (found.audit, found.certified, found.reasons, doubt) == (
        True,
        True,
        (),
        None,
    )
    assert monitor.pending() == ("a1",)
    found, doubt = Monitored(monitor=monitor).see(seen(decision="flag"))
    assert (found.audit, doubt) == (False, None)
    assert (monitor.status().n_scores, monitor.status().n_accepted) == (2, 1)


@pytest.mark.parametrize(
    "fields",
    [
        {"uncertainty": None, "decision": "unscored"},
        {"reasons": ("uncalibrated_set",), "decision": "flag"},
        {"reasons": ("uncalibrated_method", "other"), "decision": "flag"},
        {"reasons": ("uncalibrated_model",), "decision": "flag"},
    ],
)
def test_what_the_calibration_is_not_for_is_not_counted(fields: dict[str, Any]) -> None:
    monitor = Monitor()
    found, doubt = Monitored(monitor=monitor).see(seen(**fields))
    assert (found.audit, doubt) == (False, None)
    assert monitor.status().n_scores == 0


def test_other_models_count_where_they_are_accepted() -> None:
    monitor = Monitor()
    Monitored(monitor=monitor, any_model=True).see(
        seen(reasons=("uncalibrated_model",))
    )
    assert monitor.status().n_scores == 1


@pytest.mark.parametrize("on_stale", ["uncertain", "accept", "flag", "refuse", "raise"])
def test_a_stale_calibration_certifies_nothing_and_does_what_was_chosen(
    on_stale: Any,
) -> None:
    monitored = Monitored(monitor=alarmed(on_stale=on_stale))
    for look, reason in (
        (monitored.see, "calibration_stale"),
        (monitored.missed, "monitor_failed"),
    ):
        found, doubt = look(seen())
        assert (found.certified, found.reasons) == (False, (reason,))
        assert doubt == (None if on_stale == "accept" else on_stale)
    assert monitored.may_withhold is (on_stale in {"refuse", "raise"})


def test_half_of_the_way_to_an_alarm_is_said() -> None:
    monitor = Monitor(alpha=0.1, audit_rate=1.0)
    for number in range(5):
        monitor.note(str(number), uncertainty=None, accepted=True)
        monitor.report(str(number), correct=number < 2)
    assert monitor.status().state == "watch"
    found, doubt = Monitored(monitor=monitor).see(seen())
    assert (found.reasons, found.certified, doubt) == (
        ("calibration_watch",),
        True,
        None,
    )


class Broken(MemoryStore):
    """A store that fails; no SQLite file does so on demand."""

    def update(self, key: str, change: Callable[[str | None], str], /) -> None:
        raise MonitorStoreError(key, change)


@WAYS
@pytest.mark.parametrize(
    ("on_stale", "decision", "action"),
    [
        ("uncertain", "refuse", "refuse"),
        ("accept", "accept", "deliver"),
        ("flag", "flag", "deliver"),
    ],
)
def test_a_store_that_fails_loses_no_answer_and_does_not_fail_open(
    way: str, on_stale: Any, decision: str, action: str
) -> None:
    setting = Setting(way)
    monitor = Monitor(store=Broken(), on_stale=on_stale)
    setting.assessor = replace(setting.assessor, watch=Monitored(monitor=monitor))
    found, verdict = setting.call()
    assert (found.decision, verdict.action) == (decision, action)
    assert (found.reasons, found.certified) == (("monitor_failed",), False)
    assert found.audit is False


@WAYS
def test_what_waits_for_a_disk_is_waited_for_elsewhere(
    way: str, tmp_path: Path
) -> None:
    monitor = Monitor(store=SqliteStore(tmp_path / "monitor.db"), audit_rate=1.0)
    assert not Monitored(monitor=monitor).light
    assert Monitored(monitor=Monitor()).light
    setting = Setting(way)
    setting.assessor = replace(setting.assessor, watch=Monitored(monitor=monitor))
    found, _ = setting.call()
    assert (found.decision, found.audit) == ("accept", True)
    assert monitor.report(found.id, correct=True).n_reported == 1


@WAYS
def test_a_file_that_is_held_for_too_long_is_a_state_that_nobody_knows(
    way: str, tmp_path: Path
) -> None:
    path = tmp_path / "monitor.db"
    monitor = Monitor(store=SqliteStore(path, timeout=0.05))
    setting = Setting(way)
    setting.assessor = replace(setting.assessor, watch=Monitored(monitor=monitor))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        found, _ = setting.call()
    assert (found.decision, found.reasons) == ("refuse", ("monitor_failed",))
    found, _ = setting.call()  # it is free again
    assert (found.decision, found.reasons) == ("accept", ())


@pytest.mark.parametrize(
    ("threshold", "alpha"),
    [
        (CERTIFIED, 0.1),
        (replace(CERTIFIED, kind="joint_error"), None),
        (0.4, None),
        (None, None),
    ],
)
def test_a_guard_gives_its_monitor_what_its_threshold_promises(
    threshold: Any, alpha: float | None
) -> None:
    monitor = Monitor()
    given = complete({"threshold": threshold, "monitor": monitor}, owner="Guard")
    assessor, _ = build_assessor(given)
    assert isinstance(assessor.watch, Monitored)
    assert assessor.watch.monitor is monitor
    assert monitor.alpha == alpha
    assert build_assessor(complete({}, owner="Guard"))[0].watch is None


def options(monitor: Any, **given: Any) -> dict[str, Any]:
    return {"monitor": monitor, "fallback": None, **given}


def test_two_guards_that_promise_different_things_need_a_monitor_each() -> None:
    given = options(Monitor())
    assert watching(given, CERTIFIED) == watching(given, CERTIFIED)
    with pytest.raises(ConfigurationError, match="watches another calibration already"):
        watching(given, Threshold.fixed(0.4))


def test_a_monitor_compares_with_the_answers_of_the_calibration(tmp_path: Path) -> None:
    made = Calibration(settings={}, threshold=CERTIFIED, reference=(0.1, 0.2, 0.4))
    found = watching(options(Monitor(), calibration=made), made.threshold)
    assert found is not None
    assert found.monitor.status().n_reference == 3
    assert not found.any_model
    lenient = options(Monitor(), calibration=made, allow_mismatch=True)
    assert watching(lenient, CERTIFIED) == Monitored(
        monitor=lenient["monitor"], any_model=True
    )
    made.save(tmp_path / "guard.json")
    for again in (made, tmp_path / "guard.json"):
        reporting = Monitor.for_calibration(again, audit_rate=1.0)
        assert reporting.key == found.monitor.key


def test_options_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"monitor must be Monitor\(...\)"):
        watching(options("monitor.db"), CERTIFIED)
    handing = Monitor(on_stale="fallback")
    with pytest.raises(ConfigurationError, match="needs a fallback"):
        watching(options(handing), CERTIFIED)
    assert watching(options(handing, fallback="somebody"), CERTIFIED) is not None
