"""The commands ``calibrate`` and ``drift``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard.decision import Calibration
from snne_guard.evaluation import Recording, read_recordings, shard_of
from snne_guard.self_check import SelfCheck
from tests.cli.support import run
from tests.evaluation.support import EXAMPLE, write_labels


def write(path: Path, n: int = 120, *, shift: int = 0, **fields: Any) -> Path:
    """Write recordings of which every third is wrong, and its samples differ."""
    lines = []
    for i in range(n):
        right = i % 3 > shift
        known: dict[str, Any] = {
            "id": str(i),
            "question": f"What is {i}?",
            "main_answer": "a",
            "samples": ["a", "a"] if right else ["b", "c"],
            "label": int(right),
            "settings": {"model": "m"},
        }
        lines.append(json.dumps(known | fields))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write(tmp_path / "answers.jsonl")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "guard.json"


def test_the_example_gives_a_file_that_a_guard_starts_from(out: Path) -> None:
    options = ("--error-rate", 0.2, "--grader", "contains", "--out", out)
    found = run("calibrate", EXAMPLE, *options)
    assert found.exit_code == 0, found.output
    assert "CERTIFIED\nWith 90% confidence, at most 20%" in found.stdout
    assert "200 answers, 95 of them wrong (contains 200)" in found.stdout
    assert f"SNNEGuard(model, calibration='{out}')" in found.stdout
    assert "warning: a program graded (contains)" in found.stderr
    assert Calibration.load(out).threshold.certified
    again = run("drift", out, EXAMPLE)
    assert again.exit_code == 0, again.output
    assert again.stdout.startswith("No change was found: mean u")
    assert "2 answers without a score were left out." in again.stdout


def test_a_csv_file_is_calibrated_by_its_columns(
    recording: Path, tmp_path: Path, out: Path
) -> None:
    table = tmp_path / "t.csv"
    lines = ["Frage,Antwort,Probe 1,Probe 2,richtig"]
    for row in map(json.loads, recording.read_text().splitlines()):
        samples = ",".join(row["samples"])
        lines.append(f"{row['question']},{row['main_answer']},{samples},{row['label']}")
    table.write_text("\n".join(lines))
    named = ["question=Frage", "main_answer=Antwort", "label=richtig"]
    named += ["samples=Probe 1", "samples=Probe 2"]
    columns = [each for one in named for each in ("--column", one)]
    rate = ("--error-rate", 0.2, "--model", "m", "--out", out)
    found = run("calibrate", table, *columns, *rate)
    assert found.exit_code == 0, found.output
    made = Calibration.load(out).threshold
    assert run("calibrate", recording, *rate).exit_code == 0
    assert Calibration.load(out).threshold == made
    refused = run("calibrate", table, *rate)
    assert refused.exit_code == 2
    assert "t.csv, line 2: question: Field required" in refused.stderr


def test_labels_that_allow_nothing_end_with_status_3(
    recording: Path, out: Path
) -> None:
    found = run("calibrate", recording, "--error-rate", 0.01, "--out", out)
    assert found.exit_code == 3
    assert "TOO FEW LABELS" in found.stdout
    assert "a guard with it accepts nothing" in found.stdout
    assert Calibration.load(out).threshold.value == -1.0


def test_a_question_counts_once_in_all_files(recording: Path, out: Path) -> None:
    copy = write(recording.with_name("copy.jsonl"))
    found = run("calibrate", recording, copy, "--error-rate", 0.3, "--out", out)
    assert found.exit_code == 2
    assert "copy.jsonl, line 1: id: '0' is a duplicate" in found.stderr
    assert not out.exists()


def test_labels_beside_the_recording_win(recording: Path, out: Path) -> None:
    rows = [Recording.from_dict(json.loads(x)) for x in recording.open()]
    write_labels(recording, 0, rows[:10])
    result = run("calibrate", recording, "--error-rate", 0.3, "--out", out)
    assert "120 answers, 46 of them wrong" in result.stdout


def test_what_is_missing_is_told_before_anything_is_written(
    tmp_path: Path, recording: Path, out: Path
) -> None:
    bare = write(tmp_path / "bare.jsonl", label=None)
    for options, told in (
        ((bare, "--error-rate", 0.1), "none of the 120 answers has a grade: grade by "),
        ((recording,), "expected either --error-rate or --coverage"),
        (
            (recording, "--error-rate", 40),
            "'--error-rate': Input should be less than or equal",
        ),
        (
            (recording, "--coverage", -1),
            "'--coverage': Input should be greater than or equal",
        ),
        ((bare, "--error-rate", 0.1, "--grader", "judge:"), "got ''"),
    ):
        found = run("calibrate", *options, "--out", out)
        assert found.exit_code == 2
        assert told in found.stderr
        assert not out.exists()


def test_a_coverage_needs_no_labels(tmp_path: Path, out: Path) -> None:
    recording = write(tmp_path / "bare.jsonl", label=None)
    found = run(
        *("calibrate", recording, "--coverage", 0.6, "--refuse-above", 0.9),
        *("--without-answer", "--n", 3, "--out", out),
    )
    assert found.exit_code == 0, found.output
    assert "COVERAGE" in found.stdout
    made = Calibration.load(out)
    assert (made.refuse, made.settings["include_answer"]) == (0.9, False)
    assert made.settings["n"] == 3


def test_a_part_of_the_questions_and_views_is_calibrated(
    tmp_path: Path, out: Path
) -> None:
    prompt = SelfCheck().prompt
    settings = {"model": "m", "views": ["plain", "examples"], "self_check": prompt}
    recording = write(tmp_path / "a.jsonl", settings=settings, self_check=0.8)
    options = (recording, "--error-rate", 0.3, "-o", out, "--self-check")
    found = run("calibrate", *options, "--views", " examples", "--shard", "3/3")
    assert found.exit_code == 0, found.output
    part = sum(shard_of(row.id, 3) == 3 for row in read_recordings(recording))
    assert f"{part} answers, " in found.stdout
    made = Calibration.load(out).settings
    assert (made["n"], made["views"], made["self_check"]) == (3, ["examples"], prompt)
    assert run("drift", out, recording).exit_code == 0  # it takes the same samples


def test_drift_is_seen_and_told(recording: Path, out: Path) -> None:
    run("calibrate", recording, "--error-rate", 0.1, "-o", out)
    harder = write(recording.with_name("new.jsonl"), 90, shift=1, label=None)
    found = run("drift", out, harder)
    assert found.exit_code == 3, found.output
    assert "The uncertainties have changed" in found.stdout
    assert "calibrate again" in found.stdout


def test_drift_refuses_recordings_that_were_drawn_in_another_way(
    recording: Path, out: Path
) -> None:
    run("calibrate", recording, "--error-rate", 0.1, "-o", out)
    other = write(recording.with_name("new.jsonl"), settings={"model": "k"})
    found = run("drift", out, other)
    assert found.exit_code == 2
    assert "model='m', here model='k'" in found.stderr


def test_drift_takes_a_recording_without_a_model_for_the_calibrations(
    tmp_path: Path, out: Path
) -> None:
    bare = write(tmp_path / "bare.jsonl", settings=None)
    run("calibrate", bare, "--error-rate", 0.1, "--model", "m", "-o", out)
    assert Calibration.load(out).settings["model"] == "m"
    assert run("drift", out, bare).exit_code == 0
