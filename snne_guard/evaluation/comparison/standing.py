"""The questions that are ranked, and what the ranked methods say of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from snne_guard.evaluation.comparison.ranking import Ranked
from snne_guard.evaluation.comparison.scan import Scan
from snne_guard.evaluation.comparison.survey import Row
from snne_guard.evaluation.metrics.cross_fit import cross_fitted
from snne_guard.types import FloatArray, IntArray

__all__ = ["Standing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The ranked questions of a set and what the ranked methods say of them.

    Attributes:
        rows: The questions.
        uncertainties: ``(N,)`` for each method, in the order of the plan.
        correct: ``(N,)`` 0 and 1, None where the grader draws no such line.
        quality: ``(N,)`` in [0, 1].
        answer_length: ``(N,)`` tokens of the delivered answer.
        mean_length: ``(N,)`` mean tokens of the scored answers.
        n_clusters: ``(N,)`` groups of equal answers, None where one is not known.
    """

    rows: Sequence[Row]
    uncertainties: dict[str, FloatArray]
    correct: IntArray | None
    quality: FloatArray
    answer_length: IntArray
    mean_length: FloatArray
    n_clusters: IntArray | None
    _wrong: dict[str, FloatArray] = field(default_factory=dict[str, FloatArray])

    @classmethod
    def of(cls, scan: Scan, found: Ranked, /) -> Standing:
        """Keep what is ranked."""
        kept = found.questions
        rows = [row for row, one in zip(scan.rows, kept, strict=True) if one]
        grades = [row.grade for row in rows if row.grade is not None]
        judged = [grade.correct for grade in grades if grade.correct is not None]
        columns = scan.strips[0].columns
        return cls(
            rows=rows,
            uncertainties={
                planned.name: columns.values[place, kept]
                for place, planned in enumerate(columns.plan)
                if found.methods[place]
            },
            correct=np.array(judged, dtype=np.intp)
            if len(judged) == len(rows)
            else None,
            quality=np.array([grade.quality for grade in grades], dtype=np.float64),
            answer_length=scan.answer_length[kept],
            mean_length=scan.mean_length[kept],
            n_clusters=scan.n_clusters[kept] if scan.n_clusters[kept].all() else None,
        )

    def probability_wrong(self, name: str, /) -> FloatArray:
        """Return ``(N,)`` probabilities by a method, each learnt from other questions.

        Raises:
            InputError: There are fewer than two questions.
        """
        if name not in self._wrong:
            correct = np.empty(0) if self.correct is None else self.correct
            self._wrong[name] = cross_fitted(self.uncertainties[name], correct)
        return self._wrong[name]
