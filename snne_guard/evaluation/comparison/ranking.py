"""Which methods and questions are ranked: every method over the same questions."""

from __future__ import annotations

from collections.abc import Mapping
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
        lost: How many questions each ranked method could not score, if any.
    """

    methods: BoolArray
    questions: BoolArray
    why: tuple[str | None, ...]
    lost: Mapping[str, int]


def ranked(columns: Columns, /) -> Ranked:
    """Choose the methods that scored enough questions, and what all of them scored.

    Of methods that each miss a few questions, but others, those that cost most are
    not ranked, so that enough questions are left that all have scored.

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
    why = [
        _missing(columns, place) if asked[place] and not kept[place] else planned.why
        for place, planned in enumerate(columns.plan)
    ]
    while (place := _costliest(scored, kept)) is not None:
        kept[place] = False
        why[place] = (
            f"{_missing(columns, place)}; with what other methods could not score, "
            "too few questions would be left"
        )
    questions = np.logical_and.reduce(scored[kept], axis=0)
    lost = {
        planned.name: int(n - counts[place])
        for place, planned in enumerate(columns.plan)
        if kept[place] and counts[place] < n
    }
    return Ranked(methods=kept, questions=questions, why=tuple(why), lost=lost)


def _costliest(scored: BoolArray, kept: BoolArray) -> int | None:
    """Return the method without which most questions are left, None if enough are."""
    missed = ~scored & kept[:, None]
    by_how_many = missed.sum(axis=0)
    n = scored.shape[1]
    if (by_how_many == 0).sum() >= np.ceil(ENOUGH * n):
        return None
    alone = (missed & (by_how_many == 1)).sum(axis=1)
    # Of two that cost as much, the one that misses more, then the one asked for last.
    order = np.lexsort((np.arange(len(kept)), missed.sum(axis=1), alone))
    return int(order[-1])


def _missing(columns: Columns, place: int) -> str:
    counts, n = columns.failures[place], columns.values.shape[1]
    reason, _ = counts.most_common(1)[0]
    return f"could not score {sum(counts.values())} of {n} questions: {reason}"
