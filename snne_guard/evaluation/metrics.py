"""How well an uncertainty tells wrong answers from right ones, with intervals.

Only the order of the uncertainties counts, so a method's raw value and its ``u`` give
the same. Questions of equal uncertainty count with the mean of their group, which is
the exact expectation over all their orders, so the order of the input never matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers
from snne_guard.decision.labels import as_labels
from snne_guard.errors import InputError
from snne_guard.types import FloatArray, IntArray


def auroc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    """Return the share of pairs in which the wrong answer is more uncertain.

    Args:
        uncertainty: ``(n,)``, higher is less certain; infinite values are ranked.
        correct: ``(n,)`` of 0 and 1, 1 for a right answer.

    Returns:
        The share of (right, wrong) pairs in the correct order, ties counting half: 1
        is perfect, 0.5 is chance. NaN if all answers are right, or all wrong.

    Raises:
        InputError: There are no answers, the lengths differ, a number is NaN, or
            ``correct`` is not 0 or 1.

    Example:
        >>> auroc([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        0.875
    """
    return _once(_auroc, uncertainty, as_labels(correct))


def auarc(uncertainty: ArrayLike, correct: ArrayLike) -> float:
    r"""Return the area under the accuracy-rejection curve.

    .. math:: AUARC = \frac1{n-1} \sum_{k=1}^{n-1} \frac{A_k + A_{k+1}}2

    with :math:`A_k` the mean of ``correct`` over the k most certain answers. It is in
    the unit of ``correct``, which may be any finite quality, and its mean at chance;
    NaN for n < 2. The rest is as for ``auroc``.

    Source:
        Nadeem, Zucker, Hanczar 2009, "Accuracy-Rejection Curves (ARCs) for Comparing
        Classification Methods with a Reject Option".

    Example:
        >>> auarc([1, 2, 3, 4, 5, 6], [1, 1, 1, 0, 0, 0])
        0.82
    """
    return _once(_auarc, uncertainty, _quality(correct))


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
        normalised: Whether to rescale, so that 0 is chance and 1 the best order.
        max_rejection: Largest share of answers that is rejected, in (0, 1]: K is the
            ``int(max_rejection * n)`` largest of 1 ... n, at least one.

    Returns:
        Where all have the same quality, raw is 0.5 and normalised NaN; normalised is
        also NaN where K holds n alone.

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
    metric = partial(_prr, normalised=normalised, max_rejection=max_rejection)
    return _once(metric, uncertainty, _quality(quality))


def risk_coverage(
    uncertainty: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return the error rate among the most certain answers, for every number of them.

    Returns:
        ``(n,)`` coverage, the share k/n of answers kept, and ``(n,)`` selective risk,
        the share of wrong ones among them, for k = 1 ... n; the rest as for ``auroc``.

    Example:
        >>> coverage, risk = risk_coverage([0.1, 0.4, 0.4, 0.9], [1, 1, 0, 0])
        >>> risk.round(4).tolist()
        [0.0, 0.25, 0.3333, 0.5]
    """
    right = as_labels(correct)
    accuracy = _accuracies(_ranks(uncertainty, right)[None], right[None])[0]
    return _counts(len(right)) / len(right), 1 - accuracy


_Metric = Callable[[IntArray, FloatArray], FloatArray]
"""Takes ``(r, n)`` ranks and qualities, a row per resample, and returns ``(r,)``."""


def _once(metric: _Metric, uncertainty: ArrayLike, quality: FloatArray) -> float:
    return float(metric(_ranks(uncertainty, quality)[None], quality[None])[0])


def _auroc(ranks: IntArray, right: FloatArray) -> FloatArray:
    rights = _by_rank(ranks, right)
    wrongs = _by_rank(ranks, 1 - right)
    pairs = rights.sum(axis=1) * wrongs.sum(axis=1)
    ordered = (wrongs * (rights.cumsum(axis=1) - rights / 2)).sum(axis=1)
    found: FloatArray = ordered / np.where(pairs, pairs, math.nan)
    return found


def _auarc(ranks: IntArray, quality: FloatArray) -> FloatArray:
    accuracies = _accuracies(ranks, quality)
    if ranks.shape[1] < 2:  # noqa: PLR2004 - a curve needs two points
        return np.full(len(ranks), math.nan)
    means: FloatArray = (accuracies[:, 1:] + accuracies[:, :-1]).mean(axis=1) / 2
    return means


def _prr(
    ranks: IntArray, quality: FloatArray, *, normalised: bool, max_rejection: float = 1
) -> FloatArray:
    n = quality.shape[1]
    spread = np.ptp(quality, axis=1, keepdims=True)
    least = quality.min(axis=1, keepdims=True)
    stretched = (quality - least) / np.where(spread, spread, math.nan)
    kept = max(1, int(max_rejection * n))
    raw: FloatArray = _accuracies(ranks, stretched)[:, -kept:].mean(axis=1)
    if not normalised:
        return np.nan_to_num(raw, nan=0.5)  # all have the same quality
    best = np.sort(stretched)[:, ::-1].cumsum(axis=1)[:, -kept:]
    oracle = np.array([row @ (1 / _counts(n)[-kept:]) for row in best]) / kept
    random = stretched.mean(axis=1)
    # Of all answers alone, no order is better than another.
    gained: FloatArray = (raw - random) / np.where(kept > 1, oracle - random, math.nan)
    return gained


def _accuracies(ranks: IntArray, quality: FloatArray) -> FloatArray:
    """Return ``(r, n)`` mean qualities of the k most certain, for k = 1 ... n."""
    sizes = _by_rank(ranks, np.ones_like(quality)).astype(np.intp)
    means = _by_rank(ranks, quality) / np.maximum(sizes, 1)
    ordered = np.repeat(means, sizes.ravel()).reshape(ranks.shape)
    accuracies: FloatArray = ordered.cumsum(axis=1) / _counts(ranks.shape[1])
    return accuracies


def _by_rank(ranks: IntArray, quality: FloatArray) -> FloatArray:
    """Return the ``(r, k)`` summed quality of each of k ranks."""
    r, k = len(ranks), int(ranks.max()) + 1
    places = ranks + k * np.arange(r)[:, None]
    sums = np.bincount(places.ravel(), weights=quality.ravel(), minlength=r * k)
    return sums.astype(np.float64, copy=False).reshape(r, k)


def _counts(n: int) -> FloatArray:
    return np.arange(1, n + 1, dtype=np.float64)


def _ranks(uncertainty: ArrayLike, quality: FloatArray) -> IntArray:
    """Return ``(n,)`` ranks from 0; equal uncertainties have equal ranks."""
    values = as_numbers(
        uncertainty,
        what="uncertainty",
        shape=quality.shape,
        least=-math.inf,
        most=math.inf,
    )
    ranks: IntArray = np.unique(values, return_inverse=True)[1].astype(np.intp)
    return ranks


def _quality(values: ArrayLike) -> FloatArray:
    return as_numbers(values, what="quality", shape=("n",))


# -- Intervals -------------------------------------------------------------------------

_METRICS: Mapping[str, _Metric] = {
    "auroc": _auroc,
    "auarc": _auarc,
    "prr": partial(_prr, normalised=False),
    "prr_normalised": partial(_prr, normalised=True),
}

_AT_ONCE = 10_000  # answers that are resampled together: they fit in a CPU's cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its 90% percentile interval over resamples of the questions.

    A part is NaN where the metric does not exist, there or in any resample.

    Example:
        >>> f"{Interval(value=0.1, low=-0.2, high=0.4):+.1f}"
        '+0.1 (-0.2 to +0.4)'
    """

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Return it as one line, each number in the given format."""
        value, low, high = (format(n, spec) for n in (self.value, self.low, self.high))
        return value if math.isnan(self.low) else f"{value} ({low} to {high})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Metrics of several methods on the questions and on the same resamples of them.

    Attributes:
        figures: ``figures[method][metric]``, ``(1 + resamples,)``: the figure on the
            questions themselves, then on each resample.
    """

    figures: Mapping[str, Mapping[str, FloatArray]] = field(repr=False)

    def interval(self, method: str, metric: str) -> Interval:
        """Return a metric of a method with its interval."""
        return _interval(self.figures[method][metric])

    def difference(self, first: str, second: str, metric: str) -> Interval:
        """Return by how much the first method exceeds the second, pair by pair.

        It can be clear even where two intervals overlap.
        """
        return _interval(self.figures[first][metric] - self.figures[second][metric])


def _interval(figures: FloatArray) -> Interval:
    value, *drawn = figures.tolist()
    # A resample of one class has no AUROC; it is left out.
    known = [each for each in drawn if math.isfinite(each)] or [math.nan]
    low, high = np.quantile(known, [0.05, 0.95]).tolist()
    return Interval(value=value, low=low, high=high)


def bootstrap(
    uncertainties: Mapping[str, ArrayLike],
    quality: ArrayLike,
    *,
    metrics: Sequence[str] = ("auroc", "auarc", "prr"),
    resamples: int = 1000,
    seed: int = 0,
) -> Bootstrap:
    """Draw the questions again and again, and compute the metrics of every method.

    The resamples, n of the n questions with replacement, are the same for all methods.
    The intervals do not account for questions that share a document, or for the other
    samples that another run of the model would give.

    Args:
        uncertainties: For each method ``(n,)``, higher is less certain.
        quality: ``(n,)`` finite, higher is better; 0 and 1 for ``"auroc"``.
        metrics: Some of ``"auroc"``, ``"auarc"``, ``"prr"`` and ``"prr_normalised"``.
        resamples: How many, at least 1.
        seed: Equal seeds give equal resamples.

    Example:
        >>> correct = [1, 1, 1, 0, 1, 0, 0, 0]
        >>> figures = bootstrap({"a": range(8), "b": [0] * 8}, correct, resamples=100)
        >>> figures.difference("a", "b", "auroc").value
        0.4375
    """
    values = as_labels(quality) if "auroc" in metrics else _quality(quality)
    ranks = {name: _ranks(one, values) for name, one in uncertainties.items()}
    figures = {name: {one: list[FloatArray]() for one in metrics} for name in ranks}
    for chosen in _resamples(len(values), resamples, seed):
        for name, row in ranks.items():
            for metric in metrics:
                found = _METRICS[metric](row[chosen], values[chosen])
                figures[name][metric].append(found)
    return Bootstrap(
        figures={
            name: {one: np.concatenate(parts) for one, parts in each.items()}
            for name, each in figures.items()
        }
    )


def _resamples(n: int, resamples: int, seed: int) -> Iterator[IntArray]:
    """Yield ``(r, n)`` places: the questions themselves, then resamples of them."""
    yield np.arange(n)[None]
    generator, at_once = np.random.default_rng(seed), 1 + _AT_ONCE // n
    for start in range(0, resamples, at_once):
        yield generator.integers(n, size=(min(at_once, resamples - start), n))
