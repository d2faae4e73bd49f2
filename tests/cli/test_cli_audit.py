"""``snne-guard audit``: what monitors have seen, and reports by the ids of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from snne_guard import Monitor, SqliteStore
from snne_guard.cli import build_app


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["audit", *map(str, arguments)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "monitor.db"


@pytest.fixture
def monitor(path: Path) -> Monitor:
    """Return a monitor with six answers that wait; another one is in the file too."""
    store = SqliteStore(path)
    Monitor(name="another", store=store).note("b1", uncertainty=0.2, accepted=False)
    found = Monitor(name="chat", alpha=0.1, audit_rate=1.0, store=store)
    for number in range(6):
        found.note(f"a{number}", uncertainty=None, accepted=True)
    return found


@pytest.mark.usefixtures("monitor")
def test_it_shows_what_was_seen_and_what_waits(path: Path) -> None:
    result = run(path)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith("another/")
    assert lines[2] == "  answers: 1 scored, 0 accepted, 0 picked for an audit"
    assert lines[4].startswith("chat/")
    assert lines[4].endswith(": ok")
    assert lines[5] == "  nothing speaks against the calibration"
    assert lines[7:] == [
        "  0 reported, 0 of them wrong, 6 waiting",
        "  wait for --right or --wrong:",
        *(f"    a{number}" for number in range(6)),
    ]


def test_reports_are_counted_by_the_monitor_that_picked(
    path: Path, monitor: Monitor
) -> None:
    result = run(path, "--right", "a0", "--wrong", "a1", "--right", "a2")
    assert result.exit_code == 0, result.output
    assert (monitor.status().n_reported, monitor.status().n_wrong) == (3, 1)
    assert monitor.pending() == ("a3", "a4", "a5")
    assert run(path, "--wrong", "a1").exit_code == 0  # again: nothing changes
    assert monitor.status().n_reported == 3


def test_a_stale_calibration_is_status_1(path: Path, monitor: Monitor) -> None:
    wrong = [part for number in range(6) for part in ("--wrong", f"a{number}")]
    result = run(path, *wrong)
    assert result.exit_code == 1
    assert "stale since 20" in result.stdout
    assert "6 of 6 audited answers were wrong" in result.stdout
    assert monitor.status().state == "stale"
    told = [json.loads(line) for line in run(path, "--json").stdout.splitlines()]
    assert [line["state"] for line in told] == ["ok", "stale"]
    assert (told[1]["n_wrong"], told[1]["pending"]) == (6, [])


@pytest.mark.usefixtures("monitor")
def test_what_cannot_be_reported_is_named_and_the_rest_counts(path: Path) -> None:
    run(path, "--right", "a0")
    result = run(path, "--right", "nobody", "--wrong", "a0", "--right", "a1")
    assert result.exit_code == 2
    assert "waits for a report on 'nobody'" in result.stderr
    assert "'a0' was reported to be right before" in result.stderr
    assert "  2 reported, 0 of them wrong, 4 waiting" in result.stdout.splitlines()


def test_bad_usage_is_status_2_and_makes_no_file(path: Path, tmp_path: Path) -> None:
    missing = run(path)
    assert missing.exit_code == 2
    assert "No such file" in missing.stderr
    assert not path.exists()
    SqliteStore(path)
    both = run(path, "--right", "a", "--wrong", "a")
    assert both.exit_code == 2
    assert "both right and wrong: a" in both.stderr
    other = tmp_path / "other"
    other.write_text("this is no file of monitors" * 100)
    foreign = run(other)
    assert foreign.exit_code == 2
    assert "cannot be used: file is not a database" in foreign.stderr


def test_a_file_that_nobody_has_written_to_is_said(path: Path) -> None:
    SqliteStore(path)
    result = run(path)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no monitor has written to" in result.stderr
    assert run(path, "--json").output == ""
