"""Which graded answers a calibration is made of, and of which half."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from snne_guard.errors import InputError
from snne_guard.evaluation.calibrating.graded import Answers
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.labelling.order import random_order
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.types import IntArray

__all__ = ["halves", "kept_answers"]

_FEWEST = 10
"""Graded answers without which there is nothing to learn."""


def kept_answers(
    answers: Answers, promise: Promise
) -> tuple[list[Recording], IntArray]:
    """Return the answers that the promise is made by, and their grades."""
    if not promise.needs_labels and not all(one is not None for one in answers.correct):
        return list(answers.recordings), np.empty(0, dtype=np.intp)
    pairs = [
        (row, grade)
        for row, grade in zip(answers.recordings, answers.correct, strict=True)
        if grade is not None
    ]
    if len(pairs) < _FEWEST:
        msg = (
            f"expected at least {_FEWEST} graded answers, got {len(pairs)} among "
            f"{len(answers.recordings)} recordings; grade them by hand with snne-guard "
            "label, or name a grader, such as squad_f1 for short answers with "
            "references"
        )
        raise InputError(msg)
    return [row for row, _ in pairs], np.array([grade for _, grade in pairs])


def halves(
    kept: Sequence[Recording], correct: IntArray
) -> tuple[tuple[list[Recording], IntArray], list[Recording], IntArray]:
    """Return what a combination is learnt from, and what it is certified on.

    Which is which goes by the ids alone.
    """
    grades = dict(zip((row.id for row in kept), correct.tolist(), strict=True))
    order = random_order(kept, seed=1)
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    one, other = (
        np.array([grades[row.id] for row in part], dtype=np.intp)
        for part in (first, second)
    )
    return (first, one), second, other
