"""How the graders of answers are typed; checked, never run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

from snne_guard.evaluation import (
    GRADERS,
    AgreementOfGraders,
    Grade,
    Grader,
    JudgeGrader,
    Recording,
    ReferenceGrader,
    agreement,
    grade_all,
    resolve_grader,
)


def grades(rows: list[Recording]) -> None:
    def share(recording: Recording) -> float:
        return len(recording.main_answer) / 100

    def first_letter(answer: str, references: Sequence[str]) -> float | None:
        return float(answer[:1] == references[0][:1])

    named: Grader = ReferenceGrader(name="initial", measure=first_letter)
    assert_type(resolve_grader(named), Grader)
    assert_type(resolve_grader(share, threshold=0.5), Grader)
    resolve_grader(3)  # type: ignore[arg-type]  # no grader
    assert_type(GRADERS["squad_f1"](), Grader)
    assert_type(grade_all(rows, JudgeGrader(str.upper)), list[Grade | None])
    found = agreement(grade_all(rows, named), [None])
    assert_type(found, AgreementOfGraders | None)
