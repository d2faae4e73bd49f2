"""The metrics by name, on draws of the questions that one method ranked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

import numpy as np

from snne_guard.evaluation.metrics import areas
from snne_guard.evaluation.metrics.ties import IntArray, Ranking, TieGroups
from snne_guard.types import FloatArray

__all__ = ["RANK_METRICS", "RankMetric", "Views"]


class Views:
    """The questions in the orders that metrics look at.

    Args:
        uncertainty: ``(n,)`` of one method.
        quality: ``(n,)``.
        max_rejection: As for ``prr``.
    """

    def __init__(
        self, uncertainty: FloatArray, quality: FloatArray, *, max_rejection: float
    ) -> None:
        self._uncertainty, self._quality = uncertainty, quality
        self._max_rejection = max_rejection

    @cached_property
    def ranking(self) -> Ranking:
        """The most certain first, runs of equal quality joined."""
        return Ranking(self._uncertainty, self._quality, join=True)

    @cached_property
    def wrong_first(self) -> Ranking:
        """The most uncertain first, every step kept, quality 1 for a wrong answer."""
        return Ranking(-self._uncertainty, 1 - self._quality)

    def values(
        self, metrics: Sequence[str], drawn: IntArray | None = None
    ) -> FloatArray:
        """Return the ``(metrics, b)`` values on b draws, or on all questions once."""
        if not len(self._quality):
            b = 1 if drawn is None else len(drawn)
            return np.full((len(metrics), b), np.nan)
        block = _Block(self, drawn)
        found = [
            RANK_METRICS[name].function(block, self._max_rejection) for name in metrics
        ]
        return np.array(found)


class _Block:
    """Groups of some draws, each made when a metric first asks for it."""

    def __init__(self, views: Views, drawn: IntArray | None) -> None:
        self._views, self._drawn = views, drawn

    @cached_property
    def groups(self) -> TieGroups:
        return self._views.ranking.groups(self._counts)

    @cached_property
    def best_first(self) -> TieGroups:
        return self._views.ranking.best_first(self._counts)

    @cached_property
    def wrong_first(self) -> TieGroups:
        return self._views.wrong_first.groups(self._count(self._views.wrong_first))

    @cached_property
    def _counts(self) -> IntArray | None:
        return self._count(self._views.ranking)

    def _count(self, ranking: Ranking) -> IntArray | None:
        return None if self._drawn is None else ranking.count(self._drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankMetric:
    """A metric that depends on the order of the questions alone.

    Attributes:
        function: Groups and ``max_rejection`` to one value for each draw.
        binary: Whether quality has to be 0 and 1.
    """

    function: Callable[[_Block, float], FloatArray]
    binary: bool = True


RANK_METRICS: Mapping[str, RankMetric] = MappingProxyType(
    {
        "auroc": RankMetric(function=lambda at, _: areas.pair_share(at.groups)),
        "aupr": RankMetric(
            function=lambda at, _: areas.average_precision(at.wrong_first)
        ),
        "auarc": RankMetric(
            function=lambda at, _: areas.auarc(at.groups), binary=False
        ),
        "prr": RankMetric(
            function=lambda at, most: areas.raw_prr(
                at.groups, at.best_first, max_rejection=most
            ),
            binary=False,
        ),
        "prr_normalised": RankMetric(
            function=lambda at, most: areas.normalised_prr(
                at.groups, at.best_first, max_rejection=most
            ),
            binary=False,
        ),
        "aurc": RankMetric(function=lambda at, _: areas.aurc(at.groups)),
        "e_aurc": RankMetric(
            function=lambda at, _: areas.excess_risk(at.groups, at.best_first)
        ),
    }
)
"""The metrics that ``bootstrap`` knows, by name."""
