"""From any uncertainty to a probability of being wrong that its own label never saw."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.isotonic import decreasing
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.metrics.checks import checked_binary_pair
from snne_guard.types import FloatArray

__all__ = ["cross_fitted"]


def cross_fitted(
    uncertainty: ArrayLike, correct: ArrayLike, *, n_folds: int = 10
) -> FloatArray:
    """Return probabilities of being wrong, each learnt from other questions.

    The questions are dealt to folds in the order of their uncertainty, so that each
    fold has all of its range and nothing depends on chance or on the order of the
    input. For each fold an isotonic fit of the others gives the share of wrong answers
    by uncertainty; a value between two of theirs gets the mean of both. The order alone
    counts, so a score and its ``u`` give the same.

    It says how good probabilities from this uncertainty can be, for a reliability
    diagram; it promises nothing, and is no threshold. With less than some fifty
    questions it is mostly noise.

    Args:
        uncertainty: ``(n,)``, n >= 2; higher is less certain; ``inf`` and ``-inf`` are
            ranked.
        correct: ``(n,)`` of 0 and 1.
        n_folds: Folds, 2 or more; with fewer questions each is a fold of its own.

    Returns:
        ``(n,)`` probabilities, never nearer to 0 or 1 than 1 / (N + 2) with N questions
        fitted.

    Raises:
        InputError: Not as many numbers as zeros and ones, NaN, or fewer than two.
        ConfigurationError: Fewer than two folds.

    Example:
        >>> correct = [1, 1, 1, 0, 1, 0, 0, 0]
        >>> cross_fitted([1, 2, 3, 4, 5, 6, 7, 8], correct).round(2).tolist()
        [0.11, 0.11, 0.25, 0.11, 0.89, 0.75, 0.89, 0.89]
    """
    if n_folds < 2:  # noqa: PLR2004 - one to fit, one to map
        msg = f"expected n_folds >= 2, got {n_folds}"
        raise ConfigurationError(msg)
    scores, right = checked_binary_pair(uncertainty, correct)
    n = len(scores)
    if n < 2:  # noqa: PLR2004 - likewise
        msg = f"expected at least 2 questions, got {n}"
        raise InputError(msg)
    fold = np.empty(n, dtype=np.int64)
    fold[np.lexsort((right, scores))] = np.arange(n) % min(n_folds, n)
    probability = np.empty(n)
    for held_out in range(min(n_folds, n)):
        mapped, fitted = fold == held_out, fold != held_out
        share = _right_at(scores[mapped], scores[fitted], right[fitted])
        least = 1 / (np.count_nonzero(fitted) + 2)
        probability[mapped] = np.clip(1 - share, least, 1 - least)
    return probability


def _right_at(scores: FloatArray, known: FloatArray, right: FloatArray) -> FloatArray:
    places, share = decreasing(known, right)
    last = len(places) - 1
    below = np.maximum(np.searchsorted(places, scores, side="right") - 1, 0)
    above = np.minimum(np.searchsorted(places, scores, side="left"), last)
    between: FloatArray = (share[below] + share[above]) / 2
    return between
