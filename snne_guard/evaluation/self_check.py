"""Whether a self-check finds more than one sample more, on recorded answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.evaluation.bootstrap import Interval, bootstrap
from snne_guard.evaluation.grade import Grader, grade_all
from snne_guard.evaluation.recordings import Recording
from snne_guard.scorers import score

__all__ = ["CheckedCalls", "compare_self_check"]

_CALLS = (3, 4, 5, 7, 11)
_WITH, _WITHOUT = "with", "without"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCalls:
    """AUROC of as many calls with a self-check and without.

    Attributes:
        calls: The answer, its samples, and the self-check where there is one.
        without: AUROC of the answer and ``calls - 1`` samples.
        with_check: AUROC of the answer, ``calls - 2`` samples and the self-check.
        gain: Of the second over the first, draw by draw.
        questions: Graded answers that were ranked.
    """

    calls: int
    without: Interval
    with_check: Interval
    gain: Interval
    questions: int


def compare_self_check(
    recordings: Sequence[Recording],
    *,
    grader: Grader | None = None,
    draws: int = 1000,
    seed: int = 0,
) -> tuple[CheckedCalls, ...]:
    """Compare a self-check with one sample more, at equal calls.

    The score is the default one, without log-probabilities. Turn the check on where
    its gain at your number of calls is above 0 with its whole interval.

    Args:
        recordings: Of one set, drawn with ``record --self-check``. Those without one,
            without a grade or with fewer samples are left out.
        grader: Grades answers without a label; None leaves them out.
        draws: Bootstrap draws behind the 90 % intervals.
        seed: Of the draws.

    Returns:
        One comparison for each of 3, 4, 5, 7 and 11 calls for which there are samples;
        empty where no graded recording has a self-check.

    Example:
        >>> rows = [
        ...     Recording(
        ...         id=str(n),
        ...         question=f"What is {n}?",
        ...         main_answer="a",
        ...         samples=("a", "b"),
        ...         label=n % 2,
        ...         self_check=0.9 if n % 2 else 0.2,
        ...     )
        ...     for n in range(20)
        ... ]
        >>> [row] = compare_self_check(rows, draws=10)
        >>> row.calls, row.without.value, row.with_check.value
        (3, 0.5, 1.0)
    """
    checked = [row for row in recordings if row.self_check is not None]
    pairs = zip(checked, grade_all(checked, grader), strict=True)
    graded = [
        (row, grade.correct)
        for row, grade in pairs
        if grade is not None and grade.correct is not None and row.main_answer.strip()
    ]
    found: list[CheckedCalls] = []
    for calls in _CALLS:
        enough = [pair for pair in graded if len(pair[0].samples) >= calls - 1]
        correct = [correct for _, correct in enough]
        if len(set(correct)) < 2:  # noqa: PLR2004 - right and wrong answers
            continue
        rows = [row for row, _ in enough]
        figures = bootstrap(
            {
                _WITHOUT: [_u(row, calls - 1, check=False) for row in rows],
                _WITH: [_u(row, calls - 2, check=True) for row in rows],
            },
            np.array(correct),
            metrics=("auroc",),
            draws=draws,
            seed=seed,
        )
        found.append(
            CheckedCalls(
                calls=calls,
                without=figures.interval(_WITHOUT, "auroc"),
                with_check=figures.interval(_WITH, "auroc"),
                gain=figures.difference(_WITH, _WITHOUT, "auroc"),
                questions=len(rows),
            )
        )
    return tuple(found)


def _u(row: Recording, samples: int, *, check: bool) -> float:
    u = score(
        [row.main_answer, *row.samples[:samples]],
        question=row.question,
        method="snne",
        self_check=row.self_check if check else None,
    ).uncertainty
    return 1.0 if u is None else u  # what cannot be scored is never certain
