"""The questions on which score and truth disagree most, read again with their texts."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from snne_guard.evaluation.comparison.scan import recordings_at
from snne_guard.evaluation.comparison.survey import Row
from snne_guard.evaluation.results import HardQuestion
from snne_guard.types import FloatArray, IntArray

__all__ = ["hardest_questions"]

_SHOWN = 20


def hardest_questions(
    path: str | os.PathLike[str],
    rows: Sequence[Row],
    *,
    uncertainty: FloatArray,
    correct: IntArray,
    n_samples: int,
    shown: int = _SHOWN,
) -> tuple[HardQuestion, ...]:
    """Return wrong answers that look certain, right ones that do not; the worst first.

    Args:
        path: Where the rows are from.
        rows: The ranked questions.
        uncertainty: ``(N,)`` what a method says of them.
        correct: ``(N,)`` 1 right, 0 wrong.
        n_samples: Samples that were scored.
        shown: How many to return.

    Raises:
        InputError: The file has changed.
        OSError: It cannot be read.
    """
    ascending, others = np.sort(uncertainty), max(len(rows) - 1, 1)
    less = np.searchsorted(ascending, uncertainty) / others
    # Of equal ones none is nearer to the truth than another.
    up_to = (np.searchsorted(ascending, uncertainty, side="right") - 1) / others
    middle = (less + up_to) / 2
    apart = np.where(correct == 1, middle, 1 - middle)
    # A question has to be on the wrong side of the middle to be a disagreement.
    by_distance: list[int] = np.argsort(-apart, kind="stable").tolist()
    order = [at for at in by_distance if apart[at] > 1 / 2]
    chosen = order[:shown]
    read = dict(recordings_at(path, [rows[at] for at in chosen]))
    found: list[HardQuestion] = []
    for at in chosen:
        recording = read[rows[at].line]
        samples = [sample for sample in recording.samples if sample.strip()]
        found.append(
            HardQuestion(
                id=recording.id,
                question=recording.question,
                answer=recording.main_answer,
                samples=tuple(samples[:n_samples]),
                references=recording.answers or (),
                correct=bool(correct[at]),
                uncertainty=float(uncertainty[at]),
                rank=float(less[at]),
            )
        )
    return tuple(found)
