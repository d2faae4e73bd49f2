"""What recorded self-checks are worth beside one sample more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snne_guard.evaluation import Recording, auroc, compare_self_check
from snne_guard.scorers import score

WORDS = ("Paris", "Lyon", "Nice", "Rome")


def recorded(questions: int, samples: int = 4, **fields: Any) -> list[Recording]:
    drawn = np.random.default_rng(7)
    return [
        Recording(
            id=str(number),
            question=f"What is {number}?",
            main_answer=str(drawn.choice(WORDS)),
            samples=tuple(map(str, drawn.choice(WORDS, samples))),
            self_check=drawn.random(),
            label=int(drawn.random() < 0.5),
            **fields,
        )
        for number in range(questions)
    ]


def test_it_is_the_auroc_of_the_public_score() -> None:
    rows = recorded(40)
    compared = compare_self_check(rows, draws=20)
    assert [row.calls for row in compared] == [3, 4, 5]
    labels = [row.label or 0 for row in rows]
    for found in compared:
        for samples, check, interval in (
            (found.calls - 1, False, found.without),
            (found.calls - 2, True, found.with_check),
        ):
            us = [
                score(
                    [row.main_answer, *row.samples[:samples]],
                    question=row.question,
                    method="snne",
                    self_check=row.self_check if check else None,
                ).uncertainty
                or 0.0
                for row in rows
            ]
            assert interval.value == pytest.approx(auroc(us, labels))
            assert interval.low <= interval.value <= interval.high
        gain = found.with_check.value - found.without.value
        assert found.gain.value == pytest.approx(gain)
        assert found.questions == 40


def test_what_cannot_be_compared_is_left_out() -> None:
    rows = recorded(30)
    without = [replace(row, self_check=None) for row in rows[:3]]
    ungraded = [replace(row, label=None) for row in rows[3:6]]
    few = [replace(row, samples=row.samples[:2]) for row in rows[6:9]]
    compared = compare_self_check([*without, *ungraded, *few, *rows[9:]], draws=5)
    assert {row.calls: row.questions for row in compared} == {3: 24, 4: 21, 5: 21}


@pytest.mark.parametrize("fields", [{"self_check": None}, {"label": 1}])
def test_without_checks_or_wrong_answers_there_is_nothing_to_compare(
    fields: dict[str, Any],
) -> None:
    rows = [replace(row, **fields) for row in recorded(10)]
    assert compare_self_check(rows) == ()
