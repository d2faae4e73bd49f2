"""Intervals of metrics, and of differences between methods, by bootstrap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.evaluation.metrics import METRICS, checked_quality, dense_ranks
from snne_guard.types import FloatArray

__all__ = ["Bootstrap", "Interval", "bootstrap"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A figure with its 90% percentile interval over draws of the questions.

    Attributes:
        value: On the questions themselves; NaN where the metric does not exist.
        low: Lower end; NaN where the metric exists in no draw.
        high: Upper end; likewise.

    Example:
        >>> f"{Interval(value=0.1, low=-0.2, high=0.4):+.1f}"
        '+0.1 (-0.2 to +0.4)'
    """

    value: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        """Return it as one line, each number in the given format."""
        value, ends = format(self.value, spec), (self.low, self.high)
        if np.isnan(ends).any():
            return value
        low, high = (format(end, spec) for end in ends)
        return f"{value} ({low} to {high})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Metrics of several methods on the questions and on the same draws of them.

    Attributes:
        points: ``points[method][metric]`` on the questions themselves.
        draws: ``draws[method][metric]``, ``(draws,)`` on the draws.
    """

    points: Mapping[str, Mapping[str, float]]
    draws: Mapping[str, Mapping[str, FloatArray]] = field(repr=False)

    def interval(self, method: str, metric: str) -> Interval:
        """Return a metric of a method with its interval."""
        return self._interval(self.points[method][metric], self.draws[method][metric])

    def difference(self, first: str, second: str, metric: str) -> Interval:
        """Return by how much the first method exceeds the second, draw by draw.

        This is much sharper than comparing two intervals, which can overlap even when
        the difference is clear.
        """
        return self._interval(
            self.points[first][metric] - self.points[second][metric],
            self.draws[first][metric] - self.draws[second][metric],
        )

    def _interval(self, value: float, drawn: FloatArray) -> Interval:
        # A draw of one class has no AUROC; it is left out.
        known = drawn[np.isfinite(drawn)]
        if not len(known):
            return Interval(value=value, low=float("nan"), high=float("nan"))
        low, high = np.quantile(known, [0.05, 0.95])
        return Interval(value=value, low=float(low), high=float(high))


def bootstrap(
    uncertainties: Mapping[str, ArrayLike],
    quality: ArrayLike,
    *,
    metrics: Sequence[str] = ("auroc", "auarc", "prr"),
    draws: int = 1000,
    seed: int = 0,
) -> Bootstrap:
    """Draw the questions again and again, and compute the metrics of every method.

    The draws, n of the n questions with replacement, are the same for all methods.
    The intervals do not account for questions that share a document, or for the other
    samples that another run of the model would give.

    Args:
        uncertainties: For each method ``(n,)``, higher is less certain.
        quality: ``(n,)`` finite, higher is better; 0 and 1 for ``"auroc"``.
        metrics: Names in ``METRICS``.
        draws: How many draws, at least 1.
        seed: Equal seeds give equal draws.

    Raises:
        InputError: The lengths differ, a number is NaN, or a quality is not finite or,
            for AUROC, not 0 or 1.

    Example:
        >>> correct = [1, 1, 1, 0, 1, 0, 0, 0]
        >>> figures = bootstrap({"a": range(8), "b": [0] * 8}, correct, draws=100)
        >>> figures.interval("a", "auroc").value
        0.9375
        >>> figures.difference("a", "b", "auroc").value
        0.4375
    """
    values = checked_quality(quality, zero_or_one="auroc" in metrics)
    ranks = {name: dense_ranks(one, values) for name, one in uncertainties.items()}
    drawn = {name: {one: np.empty(draws) for one in metrics} for name in ranks}
    generator = np.random.default_rng(seed)
    for draw in range(draws):
        chosen = generator.integers(max(1, len(values)), size=len(values))
        again = values[chosen]
        for name, row in ranks.items():
            for metric in metrics:
                drawn[name][metric][draw] = METRICS[metric](row[chosen], again)
    points = {
        name: {metric: METRICS[metric](row, values) for metric in metrics}
        for name, row in ranks.items()
    }
    return Bootstrap(points=points, draws=drawn)
