"""What a monitor writes down, read again; and everything else, refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from snne_guard import MonitorStoreError
from snne_guard.decision.drift import DriftTest
from snne_guard.decision.monitor_state import MonitorState


def state() -> MonitorState:
    made = MonitorState(seed="s", drift=DriftTest.after([0.1, 0.5]))
    made.drift.add(0.3, 0.5)
    made.n_accepted, made.n_picked = 5, 2
    made.pending.extend(["a", "b"])
    made.report("a", correct=False)
    made.alarm, made.since = "drift", "2026-01-01T00:00:00+00:00"
    return made


def test_what_is_written_is_read_again() -> None:
    again = MonitorState.from_text(state().to_text())
    assert again == state()
    assert again.pending.maxlen == 1000
    again.drift.add(0.3, 0.5)
    assert again.drift.n_scores == 2


def test_chances_follow_from_seed_purpose_and_number() -> None:
    made = state()
    draws = [made.chance("tie", number) for number in range(2000)]
    assert made.chance("tie", 0) == draws[0] != made.chance("audit", 0)
    assert all(0.0 <= draw < 1.0 for draw in draws)
    assert abs(sum(draws) / 2000 - 0.5) < 0.03


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kind": "another"}, "not one of this library"),
        ({"version": 2}, "its format is 2, and this version reads format 1"),
        ({"version": None}, "its format is None"),
        ({"alpha": 1.0}, "'alpha' in it makes no sense"),
        ({"drift_level": None}, "'drift_level' in it makes no sense"),
        ({"seed": 1}, "'seed' in it makes no sense"),
        ({"n_wrong": -1}, "'n_wrong' in it makes no sense"),
        ({"n_right": True}, "'n_right' in it makes no sense"),
        ({"pending": "a"}, "'pending' in it"),
        ({"pending": [1]}, "'pending' in it"),
        ({"reported": []}, "'reported' in it"),
        ({"reported": {"a": 1}}, "'reported' in it"),
        ({"alarm": "fire"}, "'alarm' in it"),
        ({"since": 5}, "'since' in it"),
        ({"drift": None}, "'drift' in it makes no sense"),
        ({"drift": {}}, "there is no 'counts' in it"),
    ],
)
def test_a_state_that_was_changed_is_refused(change: dict[str, Any], why: str) -> None:
    fields = json.loads(state().to_text()) | change
    with pytest.raises(MonitorStoreError, match=why):
        MonitorState.from_text(json.dumps(fields))


@pytest.mark.parametrize(
    "change",
    [
        {"counts": [0] * 10},
        {"counts": [0.0] * 1024},
        {"counts": [-1, *[0] * 1023]},
        {"counts": 3},
        {"capital": [1.0] * 5},
        {"capital": [float("inf")] * 6},
        {"capital": [float("nan")] * 6},
        {"n_scores": 0.5},
    ],
)
def test_a_martingale_that_was_changed_is_refused(change: dict[str, Any]) -> None:
    fields = json.loads(state().to_text())
    fields["drift"] |= change
    (name,) = change
    with pytest.raises(MonitorStoreError, match=f"{name!r} in it makes no sense"):
        MonitorState.from_text(json.dumps(fields))


def test_counts_that_do_not_add_up_are_refused() -> None:
    fields = json.loads(state().to_text())
    fields["drift"]["n_scores"] += 1
    with pytest.raises(MonitorStoreError, match="its counts do not add up"):
        MonitorState.from_text(json.dumps(fields))


@pytest.mark.parametrize("cut", [0, 1, 100, -1])
def test_a_state_that_was_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(MonitorStoreError, match="it is no JSON"):
        MonitorState.from_text(state().to_text()[:cut])


@pytest.mark.parametrize("text", ["[]", "null", '"x"', "{}"])
def test_json_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(MonitorStoreError, match="not one of this library"):
        MonitorState.from_text(text)


@pytest.mark.parametrize("name", ["seed", "drift", "pending"])
def test_a_field_that_is_missing_is_named(name: str) -> None:
    fields = json.loads(state().to_text())
    del fields[name]
    with pytest.raises(MonitorStoreError, match=f"there is no '{name}' in it"):
        MonitorState.from_text(json.dumps(fields))
