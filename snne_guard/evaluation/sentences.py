"""How well the uncertainty of sentences finds the wrong ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.evaluation.metrics import auroc


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRanking:
    """How well the uncertainty of sentences finds the wrong ones.

    Attributes:
        answers: Answers that are labelled by sentence.
        sentences: Their sentences.
        accuracy: Share of right sentences.
        auroc: Of all sentences; NaN where all are right, or all wrong.
        within: Mean over the answers that have right and wrong ones; NaN without any.
    """

    answers: int
    sentences: int
    accuracy: float
    auroc: float
    within: float


def ranked_sentences(
    labelled: Sequence[tuple[list[float], Sequence[int]]], /
) -> SentenceRanking | None:
    """Return how well sentences are ranked, None where there are none.

    Args:
        labelled: For each answer the uncertainty and the label of its sentences.
    """
    if not any(us for us, _ in labelled):
        return None
    each = [auroc(us, right) for us, right in labelled if us]
    both = [value for value in each if not math.isnan(value)]
    uncertainty = np.concatenate([us for us, _ in labelled])
    correct = np.concatenate([right for _, right in labelled])
    return SentenceRanking(
        answers=len(labelled),
        sentences=len(correct),
        accuracy=float(correct.mean()),
        auroc=auroc(uncertainty, correct),
        within=float(np.mean(both)) if both else math.nan,
    )
