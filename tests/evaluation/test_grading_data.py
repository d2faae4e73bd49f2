"""Our graders against the scores and labels that real recordings bring along."""

from __future__ import annotations

from dataclasses import replace

import pytest

from snne_guard.evaluation import (
    GRADERS,
    Recording,
    grade_all,
    read_recordings,
    squad_normalised,
)
from tests.support.shared_folder import SHARED

DATA = SHARED / "data"

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="the recorded generations are not here"
)


def rows_of(name: str) -> list[Recording]:
    read = read_recordings(DATA / f"{name}.jsonl", strict=True)
    return [row for _, row in read if isinstance(row, Recording)]


def test_every_score_and_label_of_a_recording_comes_out_again() -> None:
    graders = {
        "svamp": GRADERS["numeric"](),
        "mt_de_en": GRADERS["rouge_l"](threshold=0.5),
    }
    rows = rows_of("recorded_qwen15")
    for row in rows:
        grader = graders.get(row.extra["dataset"], GRADERS["squad_f1"]())
        grade = grader(row)
        assert grade is not None
        # The file has four decimals.
        assert round(grade.quality, 4) == row.extra["score"], row.id
        assert grade.correct == row.label, row.id
    assert len(rows) == 488


def test_the_labels_of_solutions_that_are_written_out() -> None:
    grader = GRADERS["numeric"]()
    compared = 0
    for row in rows_of("generations_gsm8k_4systems"):
        answers = [row.main_answer, *row.samples]
        labels = [row.label, *row.extra["sample_labels"]]
        for answer, label in zip(answers, labels, strict=True):
            grade = grader(replace(row, main_answer=answer))
            assert grade is not None
            assert grade.correct == label, (row.id, answer)
            compared += 1
    assert compared == 4 * 348


def test_labels_by_f1_or_containment() -> None:
    rows = rows_of("generations_uqnlg_triviaqa")
    grades = grade_all(rows, GRADERS["squad_f1"]())
    differ = 0
    for row, grade in zip(rows, grades, strict=True):
        assert grade is not None
        assert row.answers
        answer = squad_normalised(row.main_answer)
        contained = any(squad_normalised(text) in answer for text in row.answers)
        differ += max(grade.correct or 0, int(contained)) != row.label
    # Their containment is of words, and their punctuation becomes a space.
    assert differ <= 5
    assert len(rows) == 296
