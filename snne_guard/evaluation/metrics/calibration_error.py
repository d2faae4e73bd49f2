"""Whether probabilities of being wrong are true ones: ECE and Brier."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.evaluation.metrics.reliability_bins import (
    Bins,
    binned,
    sorted_by_probability,
)

__all__ = ["brier", "brier_skill", "ece"]


def ece(
    probability: ArrayLike,
    correct: ArrayLike,
    *,
    n_bins: int = 10,
    bins: Bins = "equal_mass",
) -> float:
    r"""Return the expected calibration error of probabilities of being wrong.

    .. math:: ECE = \sum_b \frac{n_b}n \left|\bar p_b - \bar w_b\right|

    with the mean probability and the share of wrong answers in bin b. It is for
    probabilities; a score, or ``u``, is none (``cross_fitted`` makes some of it).

    Args:
        probability: As for ``reliability``.
        correct: As for ``reliability``.
        n_bins: As for ``reliability``.
        bins: As for ``reliability``; papers before 2019 mean ``equal_width``.

    Returns:
        From 0 to 1, lower is better, but above 0 by chance: with few answers in a bin
        true probabilities have some hundredths too. NaN for n = 0.

    Raises:
        InputError: As for ``reliability``.
        ConfigurationError: As for ``reliability``.

    Source:
        Guo, Pleiss, Sun, Weinberger 2017, "On Calibration of Modern Neural Networks";
        equal mass: Nixon and others 2019, "Measuring Calibration in Deep Learning".

    Example:
        >>> ece([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 1], n_bins=2)
        0.25
    """
    sums, wrong, counts = binned(probability, correct, n_bins=n_bins, bins=bins)
    n = int(counts.sum())
    return float(np.abs(sums - wrong).sum() / n) if n else math.nan


def brier(probability: ArrayLike, correct: ArrayLike) -> float:
    """Return the mean squared distance of probabilities from what was the case.

    Args:
        probability: ``(n,)`` of being **wrong**, in [0, 1].
        correct: ``(n,)`` of 0 and 1, 1 for a right answer.

    Returns:
        From 0 to 1, lower is better. The share of wrong answers w, given as the
        probability of all, has w (1 - w). NaN for n = 0.

    Raises:
        InputError: Not equally many numbers, or not of those kinds.

    Source:
        Brier 1950, "Verification of Forecasts Expressed in Terms of Probability".

    Example:
        >>> brier([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 1])
        0.225
    """
    chances, wrong = sorted_by_probability(probability, correct)
    return float(((chances - wrong) ** 2).mean()) if len(wrong) else math.nan


def brier_skill(probability: ArrayLike, correct: ArrayLike) -> float:
    """Return how much of the Brier score of the plain share of wrong answers is saved.

    Args:
        probability: As for ``brier``.
        correct: As for ``brier``.

    Returns:
        At most 1, higher is better; 0: no better than the share of wrong answers given
        for all. NaN where there is one class only.

    Raises:
        InputError: As for ``brier``.

    Example:
        >>> brier_skill([0.1, 0.2, 0.8, 0.9], [1, 1, 0, 0])
        0.9
    """
    chances, wrong = sorted_by_probability(probability, correct)
    if not len(wrong) or wrong.min() == wrong.max():
        return math.nan
    share = wrong.mean()
    return 1 - float(((chances - wrong) ** 2).mean() / (share * (1 - share)))
