"""Which methods and questions are ranked: every method over the same questions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from snne_guard.evaluation.comparison.measure import Columns
from snne_guard.evaluation.comparison.members import ENOUGH
from snne_guard.types import BoolArray

__all__ = ["Ranked", "ranked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """What is left when each method has said what it can.

    Attributes:
        methods: ``(methods,)`` whether each scored enough questions to be ranked.
        questions: ``(questions,)`` whether all of those methods scored each.
        why: Why each of the other methods is not ranked, None for those that are.
    """

    methods: BoolArray
    questions: BoolArray
    why: tuple[str | None, ...]


def ranked(columns: Columns, /) -> Ranked:
    """Choose the methods that scored enough questions, and what all of them scored.

    Example:
        >>> columns = Columns.of([], 3)
        >>> ranked(columns).questions
        array([ True,  True,  True])
    """
    scored = ~np.isnan(columns.values)
    n = scored.shape[1]
    counts = scored.sum(axis=1)
    asked = np.array([one.status == "evaluated" for one in columns.plan], dtype=bool)
    kept: BoolArray = asked & (counts >= np.ceil(ENOUGH * n)) & (counts > 0)
    why: list[str | None] = []
    for place, planned in enumerate(columns.plan):
        told = planned.why
        if asked[place] and not kept[place]:
            told = _missing(columns, place, n=n)
        why.append(told)
    return Ranked(
        methods=kept,
        questions=np.logical_and.reduce(scored[kept], axis=0),
        why=tuple(why),
    )


def _missing(columns: Columns, place: int, *, n: int) -> str:
    counts = columns.failures[place]
    reason, _ = counts.most_common(1)[0]
    return f"could not score {sum(counts.values())} of {n} questions: {reason}"
