"""What the page about monitoring says is what the benchmark prints."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from benchmarks import monitor
from benchmarks.certificate import MissedTargets
from snne_guard.decision import OnStale
from snne_guard.decision.drift import DriftTest
from tests.examples.doc_pages import DOCS

PAGE = (DOCS / "monitoring.md").read_text(encoding="utf-8").splitlines()


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capsys.readouterr().out.splitlines() if line]


def test_the_table_of_audits_is_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = MissedTargets()
    monitor.report_audits(missed)
    lines = printed(capsys)
    assert len(lines) == 8
    assert [line for line in lines if line not in PAGE] == []
    assert missed.status() == 0


def test_the_false_alarms_are_what_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = MissedTargets()
    monitor.false_alarm_rows(missed, name="as drawn", steps=0)
    lines = printed(capsys)
    assert len(lines) == 3
    assert [line for line in lines if line not in PAGE] == []
    assert missed.status() == 0


def test_every_word_for_a_stale_calibration_is_on_the_page() -> None:
    table = PAGE[PAGE.index("| `on_stale` | what happens |") :][2:5]
    words = [word for row in table for word in get_args(OnStale) if f'"{word}"' in row]
    assert sorted(words) == sorted(get_args(OnStale))


def test_a_change_is_printed_as_a_row_of_the_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    missed = MissedTargets()
    monitor.shift_row(missed, monitor.SHIFTS[2], before=monitor.BEFORE, runs=20)
    (line,) = printed(capsys)
    assert line.startswith("| +0.19 | 500 | 0.2")
    assert missed.status() == 0


def test_too_many_false_alarms_or_late_ones_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # As if every score were a little higher than those before it.
    monkeypatch.setattr(monitor.Ranks, "p_values", lambda *_: np.full(10, 0.45))
    missed = MissedTargets()
    monitor.false_alarm_rows(missed, name="as drawn", steps=0, runs=10)
    monitor.shift_row(missed, monitor.SHIFTS[0], before=monitor.BEFORE, runs=10)
    assert missed.status() == 1
    assert "outside of the noise: false alarms at 0.05" in capsys.readouterr().out


def test_what_is_simulated_is_what_is_in_use() -> None:
    scores, chances = monitor.runs_of(0.11, runs=3, before=40, after=40, seed=5)
    found = monitor.martingales(scores, chances, reference=monitor.REFERENCE)
    for row, (us, draws) in enumerate(zip(scores, chances, strict=True)):
        test = DriftTest.after(us[: monitor.REFERENCE].tolist())
        for number in range(monitor.REFERENCE, len(us)):
            test.add(us[number], draws[number])
            assert test.value == pytest.approx(
                found[row, number - monitor.REFERENCE], rel=1e-5
            )
