"""How well an uncertainty tells wrong answers from right ones.

Only the order of the uncertainties counts, so a method's raw value and its ``u`` give
the same. Questions of equal uncertainty count with the mean of their group, which is
the exact expectation over all their orders, so the order of the input never matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.graded import as_vector
from snne_guard.errors import InputError
from snne_guard.types import FloatArray, IntArray

__all__ = [
    "METRICS",
    "auarc",
    "auroc",
    "checked_quality",
    "dense_ranks",
    "prr",
    "risk_coverage",
]


def auroc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    """Return how often a wrong answer is more uncertain than a right one.

    Args:
        uncertainty: ``(n,)``, higher is less certain; infinite values are ranked.
        correct: ``(n,)`` of 0 and 1, 1 for a right answer.

    Returns:
        The share of (right, wrong) pairs in the correct order, ties counting half: 1
        is perfect, 0.5 is chance. NaN if all answers are right, or all wrong.

    Raises:
        InputError: The lengths differ, a number is NaN, or ``correct`` is not 0 or 1.

    Example:
        >>> auroc([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        0.875
    """
    right = checked_quality(correct, zero_or_one=True)
    return _auroc(dense_ranks(uncertainty, right), right)


def auarc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    r"""Return the area under the accuracy-rejection curve.

    .. math:: AUARC = \frac1{n-1} \sum_{k=1}^{n-1} \frac{A_k + A_{k+1}}2

    with :math:`A_k` the mean of ``correct`` over the k most certain answers.

    Args:
        uncertainty: ``(n,)``, higher is less certain; infinite values are ranked.
        correct: ``(n,)`` of 0 and 1, or any finite quality, higher is better.

    Returns:
        In the unit of ``correct``, higher is better; an uncertainty that says nothing
        gets the mean of ``correct``. NaN for n < 2.

    Raises:
        InputError: The lengths differ, a number is NaN, or a quality is infinite.

    Source:
        Nadeem, Zucker, Hanczar 2009, "Accuracy-Rejection Curves (ARCs) for Comparing
        Classification Methods with a Reject Option".

    Example:
        >>> auarc([1, 2, 3, 4, 5, 6], [1, 1, 1, 0, 0, 0])
        0.82
    """
    quality = checked_quality(correct)
    return _auarc(dense_ranks(uncertainty, quality), quality)


def prr(
    uncertainty: ArrayLike,
    quality: ArrayLike,
    *,
    normalised: bool,
    max_rejection: float = 1.0,
) -> float:
    r"""Return the prediction-rejection ratio, as in the SNNE paper or in LM-Polygraph.

    With the quality stretched to [0, 1] and :math:`A_k` its mean over the k most
    certain answers, K the largest k,

    .. math:: raw = \frac1{|K|} \sum_{k \in K} A_k, \quad
        normalised = \frac{raw - random}{oracle - random}

    where random is the mean quality and oracle is raw in the order of quality itself.
    The tables of the SNNE paper are raw, those of LM-Polygraph normalised; the two are
    not comparable.

    Args:
        uncertainty: ``(n,)``, higher is less certain; infinite values are ranked.
        quality: ``(n,)`` finite, higher is better.
        normalised: Whether to rescale, so that 0 is chance and 1 the best order. If
            not, the result is the raw area, which at chance is the mean quality.
        max_rejection: Largest share of answers that is rejected, in (0, 1]: K is the
            ``int(max_rejection * n)`` largest of 1 ... n, at least one.

    Returns:
        Higher is better. Where all have the same quality, raw is 0.5 and normalised
        NaN; normalised is also NaN where K holds n alone. NaN for n = 0.

    Raises:
        InputError: The lengths differ, a number is NaN, a quality is infinite, or
            ``max_rejection`` is outside (0, 1].

    Source:
        Malinin, Gales 2021, "Uncertainty Estimation in Autoregressive Structured
        Prediction"; Vashurin et al. 2025, LM-Polygraph's benchmark.

    Example:
        >>> u, q = [0.5, 0.5, 1.2, 0.5, 2.0, 1.2], [1, 0, 0, 1, 0, 1]
        >>> prr(u, q, normalised=False), prr(u, q, normalised=True)
        (0.6208, 0.3919)
    """
    if not 0 < max_rejection <= 1:
        msg = f"expected max_rejection in (0, 1], got {max_rejection}"
        raise InputError(msg)
    values = checked_quality(quality)
    ranks = dense_ranks(uncertainty, values)
    return _prr(ranks, values, normalised=normalised, max_rejection=max_rejection)


def risk_coverage(
    uncertainty: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the error rate among the most certain answers, for every number of them.

    Args:
        uncertainty: ``(n,)``, higher is less certain.
        correct: ``(n,)`` of 0 and 1.

    Returns:
        ``(n,)`` coverage, the share k/n of answers kept, and ``(n,)`` selective risk,
        the share of wrong ones among them, for k = 1 ... n.

    Raises:
        InputError: As for ``auroc``.

    Example:
        >>> coverage, risk = risk_coverage([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        >>> risk.round(4).tolist()
        [0.0, 0.25, 0.3333, 0.5]
    """
    right = checked_quality(correct, zero_or_one=True)
    accuracy = _accuracies(dense_ranks(uncertainty, right), right)
    return np.arange(1, len(right) + 1) / max(1, len(right)), 1 - accuracy


def _auroc(ranks: IntArray, right: FloatArray) -> float:
    rights = np.bincount(ranks, weights=right)
    wrongs = np.bincount(ranks, weights=1 - right)
    pairs = rights.sum() * wrongs.sum()
    if not pairs:
        return float("nan")
    less_uncertain = rights.cumsum() - rights / 2
    return float(wrongs @ less_uncertain / pairs)


def _auarc(ranks: IntArray, quality: FloatArray) -> float:
    if len(quality) < 2:  # noqa: PLR2004 - a curve needs two points
        return float("nan")
    accuracies = _accuracies(ranks, quality)
    return float((accuracies[1:] + accuracies[:-1]).mean() / 2)


def _prr(
    ranks: IntArray, quality: FloatArray, *, normalised: bool, max_rejection: float = 1
) -> float:
    n = len(quality)
    if not n:
        return float("nan")
    spread = np.ptp(quality)
    if not spread:
        return float("nan") if normalised else 0.5
    stretched = (quality - quality.min()) / spread
    kept = max(1, int(max_rejection * n))
    raw = float(_accuracies(ranks, stretched)[-kept:].mean())
    if not normalised:
        return raw
    if kept == 1:
        return float("nan")
    oracle = float(np.sort(stretched)[::-1].cumsum()[-kept:] @ (1 / _counts(n)[-kept:]))
    random = float(stretched.mean())
    return (raw - random) / (oracle / kept - random)


def _accuracies(ranks: IntArray, quality: FloatArray) -> FloatArray:
    """Return ``(n,)`` mean qualities of the k most certain, for k = 1 ... n."""
    sizes = np.bincount(ranks)
    present = sizes > 0
    sums = np.bincount(ranks, weights=quality)[present]
    sizes = sizes[present]
    means = np.repeat(sums / sizes, sizes)
    accuracies: FloatArray = means.cumsum() / _counts(len(quality))
    return accuracies


def _counts(n: int) -> FloatArray:
    return np.arange(1, n + 1, dtype=np.float64)


METRICS: Mapping[str, Callable[[IntArray, FloatArray], float]] = {
    "auroc": _auroc,
    "auarc": _auarc,
    "prr": partial(_prr, normalised=False),
    "prr_normalised": partial(_prr, normalised=True),
}
"""Metrics by name, as functions of ``dense_ranks`` and checked qualities."""


def dense_ranks(uncertainty: ArrayLike, other: FloatArray) -> IntArray:
    """Return ``(n,)`` ranks from 0; equal uncertainties have equal ranks."""
    values = as_vector("uncertainty", uncertainty)
    if len(values) != len(other):
        msg = f"expected one value per question, got {len(values)} and {len(other)}"
        raise InputError(msg)
    if np.isnan(values).any():
        msg = "expected uncertainty without NaN; leave out such questions for all"
        raise InputError(msg)
    ranks: IntArray = np.unique(values, return_inverse=True)[1].astype(np.intp)
    return ranks


def checked_quality(quality: ArrayLike, *, zero_or_one: bool = False) -> FloatArray:
    """Return ``(n,)`` finite numbers, or zeros and ones; otherwise raise InputError."""
    values = as_vector("quality", quality)
    fine = np.isin(values, (0, 1)) if zero_or_one else np.isfinite(values)
    if not fine.all():
        what = "correct to be 0 or 1" if zero_or_one else "quality to be finite"
        msg = f"expected {what}"
        raise InputError(msg)
    return values
