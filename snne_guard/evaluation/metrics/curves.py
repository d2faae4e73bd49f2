"""The points of ROC and precision-recall curves."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.evaluation.metrics.areas import share
from snne_guard.evaluation.metrics.checks import checked_binary_pair, checked_positive
from snne_guard.evaluation.metrics.ties import Ranking
from snne_guard.types import FloatArray

__all__ = ["precision_recall_curve", "roc_curve"]


def roc_curve(
    uncertainty: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return how many wrong answers are found for how many right ones that are accused.

    The limit of uncertainty falls from above all answers to below them. Points on a
    straight line up, or to the right, are left out, so that a drawing stays small; the
    area under straight lines between the points is ``auroc``.

    Args:
        uncertainty: ``(n,)``, higher is less certain; ``inf`` and ``-inf`` are ranked.
        correct: ``(n,)`` of 0 and 1.

    Returns:
        ``(p,)`` false positive rate, the share of right answers that are above the
        limit, from 0 to 1, NaN where there are none; and ``(p,)`` true positive rate,
        that of wrong ones, likewise. Both are empty for n = 0.

    Raises:
        InputError: Not as many numbers as zeros and ones, or NaN among them.

    Example:
        >>> false_positives, true_positives = roc_curve([1, 2, 3, 4], [1, 1, 0, 0])
        >>> false_positives.tolist(), true_positives.tolist()
        ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0])
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    if not len(scores):
        return np.empty(0), np.empty(0)
    groups = Ranking(-scores, 1 - right, join=True).groups()
    found = np.concatenate([[0.0], groups.quality[0].cumsum()])
    accused = groups.ends[0] - found
    return share(accused, accused[-1:]), share(found, found[-1:])


def precision_recall_curve(
    uncertainty: ArrayLike,
    correct: ArrayLike,
    *,
    positive: Literal["wrong", "correct"] = "wrong",
) -> tuple[FloatArray, FloatArray]:
    """Return how many wrong, or right, answers are found, and how many of those are so.

    The answers are gone through as in ``aupr``, which is the area under steps: each
    precision holds from the recall before to its own.

    Args:
        uncertainty: As for ``roc_curve``.
        correct: As for ``roc_curve``.
        positive: What is to be found.

    Returns:
        ``(p,)`` recall, rising to 1, NaN where there is nothing to be found; and
        ``(p,)`` precision; one point for each distinct uncertainty.

    Raises:
        InputError: As for ``roc_curve``; or ``positive`` is neither of the two.

    Example:
        >>> recall, precision = precision_recall_curve([1, 2, 3, 4], [1, 0, 1, 0])
        >>> recall.tolist(), precision.round(4).tolist()
        ([0.5, 0.5, 1.0, 1.0], [1.0, 0.5, 0.6667, 0.5])
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    wrong = checked_positive(positive) == "wrong"
    if not len(scores):
        return np.empty(0), np.empty(0)
    ranking = Ranking(-scores, 1 - right) if wrong else Ranking(scores, right)
    groups = ranking.groups()
    found = groups.quality[0].cumsum()
    return share(found, found[-1:]), found / groups.ends[0, 1:]
