"""What the most certain answers are worth: AUARC, PRR, AURC and the curve behind."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.evaluation.metrics import areas
from snne_guard.evaluation.metrics.checks import (
    checked_binary_pair,
    checked_pair,
    checked_quality,
    checked_uncertainty,
)
from snne_guard.evaluation.metrics.ties import Ranking
from snne_guard.types import FloatArray

__all__ = [
    "auarc",
    "aurc",
    "check_max_rejection",
    "e_aurc",
    "prr",
    "risk_coverage_curve",
]


def auarc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    r"""Return the area under the accuracy-rejection curve.

    .. math:: AUARC = \frac1{n-1} \sum_{k=1}^{n-1} \frac{A_k + A_{k+1}}2

    with :math:`A_k` the mean of ``correct`` over the k most certain answers. Answers of
    equal uncertainty count with their mean, the exact expectation over all orders of
    them; the authors' code takes whatever order its sort leaves.

    Args:
        uncertainty: ``(n,)``, higher is less certain; ``inf`` and ``-inf`` are ranked.
        correct: ``(n,)``, 0 and 1, or any finite measure of quality, higher is better.

    Returns:
        In the unit of ``correct``, higher is better; an uncertainty that says nothing
        has the mean of ``correct``. NaN for n < 2.

    Raises:
        InputError: Not equally many numbers, NaN, or an infinite quality.

    Source:
        Nadeem, Zucker, Hanczar 2009, "Accuracy-Rejection Curves (ARCs) for Comparing
        Classification Methods with a Reject Option".

    Example:
        >>> auarc([1, 2, 3, 4, 5, 6], [1, 1, 1, 0, 0, 0])
        0.82
        >>> auarc([1, 1, 1, 1], [1, 0, 1, 0])
        0.5
    """
    scores, quality = _checked(uncertainty, checked_quality(correct))
    if not len(scores):
        return float("nan")
    return float(areas.auarc(Ranking(scores, quality, join=True).groups())[0])


def prr(
    uncertainty: ArrayLike,
    quality: ArrayLike,
    *,
    normalised: bool,
    max_rejection: float = 1.0,
) -> float:
    r"""Return the prediction-rejection ratio, of the SNNE paper or of LM-Polygraph.

    With q stretched to [0, 1] by its smallest and largest value, and :math:`A_k` the
    mean of q over the k most certain answers,

    .. math:: raw = \frac1{|K|} \sum_{k \in K} A_k, \quad
        normalised = \frac{raw - random}{oracle - random}

    where random is the mean of q, and oracle is raw in the order of q itself. The
    tables of the SNNE paper are raw areas; those of LM-Polygraph are normalised. They
    are not comparable.

    Args:
        uncertainty: ``(n,)``, higher is less certain; ``inf`` and ``-inf`` are ranked.
            Ties count with their mean, as for ``auarc``.
        quality: ``(n,)`` finite, higher is better.
        normalised: False: the raw area, from 0 to 1, the mean of q where the
            uncertainty says nothing. True: 1 for the best order, 0 for one that says
            nothing, below 0 for a worse one.
        max_rejection: Largest share of answers that is rejected, in (0, 1]: K has the
            ``int(max_rejection * n)`` largest of 1 ... n, and at least one.

    Returns:
        Higher is better. Where all have the same quality raw is 0.5, as in the authors'
        code, and normalised is NaN, as it is where K has nothing but n. NaN for n = 0.

    Raises:
        InputError: Not equally many numbers, NaN, an infinite quality, or a
            ``max_rejection`` outside (0, 1].

    Source:
        Malinin, Gales 2021, "Uncertainty Estimation in Autoregressive Structured
        Prediction"; Vashurin and others 2025 (LM-Polygraph's benchmark).

    Example:
        >>> u, q = [0.5, 0.5, 1.2, 0.5, 2.0, 1.2], [1, 0, 0, 1, 0, 1]
        >>> prr(u, q, normalised=False), prr(u, q, normalised=True)
        (0.6208, 0.3919)
    """
    check_max_rejection(max_rejection)
    scores, values = _checked(uncertainty, checked_quality(quality))
    if not len(scores):
        return float("nan")
    ranking = Ranking(scores, values, join=True)
    ratio = areas.normalised_prr if normalised else areas.raw_prr
    best_first = ranking.best_first()
    return float(ratio(ranking.groups(), best_first, max_rejection=max_rejection)[0])


def risk_coverage_curve(
    uncertainty: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return how many of the most certain answers are wrong, for every number of them.

    Args:
        uncertainty: ``(n,)``, higher is less certain.
        correct: ``(n,)`` of 0 and 1.

    Returns:
        ``(n,)`` coverage, the share k/n of answers that is kept, for k = 1 ... n; and
        ``(n,)`` risk, the share of wrong ones among them. Where k parts answers of
        equal uncertainty, the risk is the expectation over all orders of them.

    Raises:
        InputError: As for ``auroc``.

    Example:
        >>> coverage, risk = risk_coverage_curve([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        >>> coverage.tolist(), risk.round(4).tolist()
        ([0.25, 0.5, 0.75, 1.0], [0.0, 0.25, 0.3333, 0.5])
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    kept = np.arange(1, len(scores) + 1, dtype=np.float64)
    if not len(scores):
        return kept, kept
    groups = Ranking(scores, right).groups()
    wrong = np.repeat(1 - groups.means[0], groups.sizes[0]).cumsum()
    return kept / len(scores), wrong / kept


def aurc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    """Return the area under the risk-coverage curve: the mean risk over k = 1 ... n.

    Args:
        uncertainty: ``(n,)``, higher is less certain.
        correct: ``(n,)`` of 0 and 1.

    Returns:
        From 0 to 1, lower is better; an uncertainty that says nothing has the share of
        wrong answers. NaN for n = 0.

    Raises:
        InputError: As for ``auroc``.

    Source:
        Geifman, Uziel, El-Yaniv 2019, "Bias-Reduced Uncertainty Estimation for Deep
        Neural Classifiers".

    Example:
        >>> aurc([1, 2, 3, 4, 5, 6], [1, 1, 1, 0, 0, 0])
        0.1917
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    if not len(scores):
        return float("nan")
    groups = Ranking(scores, right, join=True).groups()
    return float(areas.aurc(groups)[0])


def e_aurc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    """Return the excess AURC: how much more it is than that of the best order.

    Args:
        uncertainty: ``(n,)``, higher is less certain.
        correct: ``(n,)`` of 0 and 1.

    Returns:
        From 0, the best, to below 1. NaN for n = 0.

    Raises:
        InputError: As for ``auroc``.

    Source:
        As for ``aurc``; the area of the best order is summed, not approximated.

    Example:
        >>> e_aurc([1, 2, 3, 4], [1, 0, 1, 0])
        0.125
    """
    scores, right = checked_binary_pair(uncertainty, correct)
    if not len(scores):
        return float("nan")
    ranking = Ranking(scores, right, join=True)
    return float(areas.excess_risk(ranking.groups(), ranking.best_first())[0])


def check_max_rejection(max_rejection: float) -> None:
    """Refuse what is no share of answers."""
    # The negation refuses NaN too.
    if not 0 < max_rejection <= 1:
        msg = f"expected max_rejection in (0, 1], got {max_rejection}"
        raise InputError(msg)


def _checked(
    uncertainty: ArrayLike, quality: FloatArray
) -> tuple[FloatArray, FloatArray]:
    scores = checked_uncertainty(uncertainty)
    checked_pair(scores, quality)
    return scores, quality
