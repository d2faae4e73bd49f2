"""What a bootstrap found: intervals, and differences of methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError
from snne_guard.types import FloatArray

__all__ = ["Bootstrap", "Comparison", "Interval", "check_level", "interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A metric with its percentile interval over draws of the questions.

    Attributes:
        value: On the questions themselves; NaN where it does not exist.
        low: Lower end; NaN where the metric exists in no draw.
        high: Upper end; likewise.
        draws: In how many draws the metric exists. Only they count: a draw that has
            one class only has no AUROC.
    """

    value: float
    low: float
    high: float
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How much a metric of one method exceeds that of another, on the same draws.

    Attributes:
        difference: First less second, on the questions themselves.
        low: Lower end of the percentile interval of the differences.
        high: Upper end.
        p: Two-sided: twice the smaller share of draws in which the difference is at
            most 0, or at least 0, the questions themselves counted as one draw more
            on either side; at most 1. NaN where there are no draws.
        draws: In how many draws the metric of both exists.
    """

    difference: float
    low: float
    high: float
    p: float
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bootstrap:
    """Metrics of methods on the questions and on draws of them.

    Attributes:
        level: Share of the draws within an interval.
        metrics: Names of the metrics.
        point: ``(metrics,)`` on the questions themselves, for each method.
        draws: ``(metrics, draws)`` on the draws, for each method; the draws are the
            same for all.
    """

    level: float
    metrics: tuple[str, ...]
    point: Mapping[str, FloatArray] = field(repr=False)
    draws: Mapping[str, FloatArray] = field(repr=False)

    def interval(self, method: str, metric: str) -> Interval:
        """Return a metric of a method with its interval.

        Raises:
            ConfigurationError: If one of the names is not there.
        """
        value, drawn = self._find(method, metric)
        return interval(value, drawn, level=self.level)

    def compare(self, first: str, second: str, metric: str) -> Comparison:
        """Return by how much a metric of the first method exceeds the second's.

        Raises:
            ConfigurationError: If one of the names is not there.
        """
        one, one_drawn = self._find(first, metric)
        two, two_drawn = self._find(second, metric)
        found = interval(one - two, one_drawn - two_drawn, level=self.level)
        return Comparison(
            difference=found.value,
            low=found.low,
            high=found.high,
            p=_two_sided(one_drawn - two_drawn),
            draws=found.draws,
        )

    def _find(self, method: str, metric: str) -> tuple[float, FloatArray]:
        for name, known in ((method, tuple(self.point)), (metric, self.metrics)):
            if name not in known:
                msg = f"expected one of {', '.join(known) or 'none'}, got {name!r}"
                raise ConfigurationError(msg)
        place = self.metrics.index(metric)
        return float(self.point[method][place]), self.draws[method][place]


def interval(value: float, drawn: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return the percentile interval of a statistic.

    Args:
        value: The statistic on the questions themselves.
        drawn: ``(draws,)`` on draws of them; NaN where it does not exist.
        level: Share of the draws within the interval, in (0, 1).

    Raises:
        ConfigurationError: A level outside (0, 1).

    Example:
        >>> found = interval(0.5, [0.3, 0.4, 0.5, 0.6, float("nan")], level=0.8)
        >>> round(found.low, 2), round(found.high, 2), found.draws
        (0.33, 0.57, 4)
    """
    check_level(level)
    there = _there(np.asarray(drawn, dtype=np.float64))
    if not len(there):
        return Interval(value=value, low=math.nan, high=math.nan, draws=0)
    low, high = np.quantile(there, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value=value, low=float(low), high=float(high), draws=len(there))


def check_level(level: float) -> None:
    """Refuse what is no share of draws."""
    # The negation refuses NaN too.
    if not 0 < level < 1:
        msg = f"expected a level in (0, 1), got {level}"
        raise ConfigurationError(msg)


def _two_sided(differences: FloatArray) -> float:
    there = _there(differences)
    if not len(there):
        return math.nan
    fewer = min(int((there <= 0).sum()), int((there >= 0).sum()))
    return min(1.0, 2 * (fewer + 1) / (len(there) + 1))


def _there(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]
