"""How well an uncertainty orders wrong and right answers: AUROC, AUPR, Spearman."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.evaluation.metrics import areas
from snne_guard.evaluation.metrics.checks import (
    checked_binary_pair,
    checked_pair,
    checked_positive,
    checked_uncertainty,
)
from snne_guard.evaluation.metrics.ties import Ranking
from snne_guard.types import FloatArray

__all__ = ["aupr", "auroc", "spearman"]


def auroc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    """Return the share of pairs, one right and one wrong, that are in right order.

    That is where the wrong answer is the more uncertain one; a tie counts half. It is
    the area under the ROC curve, and does not depend on the order of the questions.

    Args:
        uncertainty: ``(n,)``, higher is less certain; ``inf`` and ``-inf`` are ranked.
        correct: ``(n,)`` of 0 and 1, 1 for a right answer.

    Returns:
        From 0 to 1, higher is better, 0.5 for an uncertainty that says nothing. NaN
        where all answers are right, or all wrong, or there are none.

    Raises:
        InputError: Not as many numbers as zeros and ones, or NaN among them.

    Example:
        >>> auroc([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        0.875
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    if not len(scores):
        return float("nan")
    return float(areas.pair_share(Ranking(scores, right, join=True).groups())[0])


def aupr(
    uncertainty: ArrayLike,
    correct: ArrayLike,
    *,
    positive: Literal["wrong", "correct"] = "wrong",
) -> float:
    """Return the average precision with which wrong, or right, answers are found.

    The answers are gone through from the most uncertain on (``positive="wrong"``) or
    from the most certain on (``positive="correct"``), those of equal uncertainty
    together. After each step the precision is the share of positives so far; the
    result is its mean, weighted by the positives that each step brings. There is no
    interpolation.

    Args:
        uncertainty: As for ``auroc``.
        correct: As for ``auroc``.
        positive: What is to be found.

    Returns:
        From 0 to 1, higher is better. An uncertainty that says nothing has the share of
        positives, so figures of different data are not comparable. NaN where there
        are no positives.

    Raises:
        InputError: As for ``auroc``; or ``positive`` is neither of the two.

    Example:
        >>> aupr([0.1, 0.4, 0.6, 0.9], [1, 0, 1, 0])
        0.8333
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    wrong = checked_positive(positive) == "wrong"
    if not len(scores):
        return float("nan")
    ranking = Ranking(-scores, 1 - right) if wrong else Ranking(scores, right)
    return float(areas.average_precision(ranking.groups())[0])


def spearman(first: ArrayLike, second: ArrayLike) -> float:
    """Return Spearman's rank correlation, equal values sharing their mean rank.

    Args:
        first: ``(n,)``; infinite values are ranked.
        second: ``(n,)``, for the same questions.

    Returns:
        From -1 to 1. NaN where there are fewer than two questions, or one of the two
        has the same value for all.

    Raises:
        InputError: Not equally many numbers, or NaN among them.

    Example:
        >>> spearman([1, 2, 3, 4], [10, 20, 20, 90])
        0.9487
    """
    one = _centred_ranks(checked_uncertainty(first, what="values"))
    two = _centred_ranks(checked_uncertainty(second, what="values"))
    checked_pair(one, two)
    scale = float(np.sqrt(one @ one) * np.sqrt(two @ two))
    if not scale:
        return float("nan")
    # Rounding may leave a perfect correlation a little above 1.
    return min(1.0, max(-1.0, float(one @ two) / scale))


def _centred_ranks(values: FloatArray) -> FloatArray:
    # Twice the distance to the mean rank: whole numbers, so that sums are exact.
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    twice = 2 * counts.cumsum() - counts - len(values)
    ranks: FloatArray = twice[place].astype(np.float64)
    return ranks
