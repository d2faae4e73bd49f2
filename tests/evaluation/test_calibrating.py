"""Graded recordings to a calibration."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Recording
from snne_guard.evaluation.calibrating import calibrate
from snne_guard.evaluation.grade import resolve_grader


def rows(n: int = 120, **fields: Any) -> list[Recording]:
    """Every third answer is wrong, and all its samples differ."""
    known: dict[str, Any] = {"main_answer": "a", "settings": {"model": "m"}}
    return [
        Recording.from_dict(
            known
            | {
                "id": str(i),
                "question": f"What is {i}?",
                "samples": ["a", "a"] if i % 3 else ["b", "c"],
                "label": 1 if i % 3 else 0,
            }
            | fields
        )
        for i in range(n)
    ]


def test_a_clear_case_is_certified_and_survives_its_file(tmp_path: Path) -> None:
    result = calibrate(rows(), error_rate=0.1, refuse=0.9)
    made = result.calibration
    assert (made.threshold.value, made.threshold.n_accepted) == (0.0, 80)
    assert made.threshold.certified
    assert made.settings["n"] == 3
    assert made.refuse == 0.9
    assert made.graders == {"label": 120}
    assert sorted(set(made.reference)) == [0.0, 1.0]
    assert made.p_wrong(0.0) == pytest.approx(0.0, abs=0.05)
    assert made.p_wrong(1.0) == pytest.approx(1.0, abs=0.05)
    assert (result.n_ungraded, result.warnings) == (0, ())
    made.save(tmp_path / "guard.json")
    assert Calibration.load(tmp_path / "guard.json") == made


def test_labels_win_over_a_grader_and_the_ungraded_are_left_out() -> None:
    known: dict[str, Any] = {
        "question": "Why?",
        "main_answer": "a",
        "samples": ["a", "a"],
        "settings": {"model": "m"},
    }
    ungraded = Recording.from_dict(known | {"id": "x"})
    gradable = Recording.from_dict(known | {"id": "y", "answers": ["a"]})
    some = [*rows(60), ungraded, gradable]
    without = calibrate(some, error_rate=0.2)
    assert (len(without.correct), without.n_ungraded) == (60, 2)
    graded = calibrate(some, error_rate=0.2, grader=resolve_grader("contains"))
    assert (len(graded.correct), graded.n_ungraded) == (61, 1)
    assert graded.calibration.graders == {"label": 60, "contains": 1}


def test_few_or_one_sided_labels_give_no_probability() -> None:
    assert calibrate(rows(45), error_rate=0.2).calibration.probability is None
    # The wrong answers are those that cannot be scored.
    odd = [
        Recording.from_dict(one.to_dict() | {"main_answer": "a" if one.label else " "})
        for one in rows(90)
    ]
    result = calibrate(odd, error_rate=0.2)
    assert result.unscored == {"answer_unreadable": 30}
    assert result.calibration.probability is None
    assert all(map(math.isfinite, result.calibration.reference))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"settings": None}, "do not name their model"),
        ({"drawn": {"models": ["m-1", "m-2"]}}, "several models replied (m-1, m-2)"),
    ],
)
def test_a_reader_is_warned(fields: dict[str, Any], told: str) -> None:
    [warning] = calibrate(rows(**fields), error_rate=0.1).warnings
    assert told in warning


@pytest.mark.parametrize(
    ("options", "error", "told"),
    [
        ({}, ConfigurationError, "either error_rate or coverage"),
        ({"error_rate": 0.1, "coverage": 0.5}, ConfigurationError, "got 0.1 and 0.5"),
        ({"error_rate": 40}, ConfigurationError, "error_rate to be .*, got 40"),
        ({"coverage": 1}, ConfigurationError, "coverage to be .*, got 1"),
        ({"error_rate": 0.1, "n": 9}, InputError, "at least 8 samples"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    options: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        calibrate(rows(), **options)


def test_grades_that_can_guarantee_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="none of the 120 answers has a grade: grade"):
        calibrate(rows(label=None), error_rate=0.1)
    with pytest.raises(InputError, match="expected at least one recording, got none"):
        calibrate([], error_rate=0.1)
    with pytest.raises(InputError, match="all 120 are correct"):
        calibrate(rows(label=1), error_rate=0.1)
    with pytest.raises(ConfigurationError, match="'rouge_l' says how good"):
        calibrate(
            rows(label=None, answers=["a"]),
            error_rate=0.1,
            grader=resolve_grader("rouge_l"),
        )
