"""What methods are measured by when something is varied: AUROC, or PRR without one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from snne_guard.evaluation.comparison.figures import number
from snne_guard.evaluation.comparison.standing import Standing
from snne_guard.evaluation.metrics.order import auroc
from snne_guard.evaluation.metrics.risk_coverage import prr
from snne_guard.evaluation.results import Curve
from snne_guard.types import BoolArray, FloatArray, IntArray

__all__ = ["Yardstick"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Yardstick:
    """A metric and what it holds uncertainties against.

    Attributes:
        metric: ``"auroc"`` against right and wrong, ``"prr"`` against quality.
        truth: ``(N,)`` 0 and 1, or any quality.
    """

    metric: Literal["auroc", "prr"]
    truth: FloatArray | IntArray

    @classmethod
    def of(cls, standing: Standing, /) -> Yardstick:
        """Return AUROC where the grader says right and wrong, else the paper's PRR."""
        if standing.correct is None:
            return cls(metric="prr", truth=standing.quality)
        return cls(metric="auroc", truth=standing.correct)

    def value(
        self, uncertainty: FloatArray, among: BoolArray | None = None, /
    ) -> float | None:
        """Return the metric, None where it does not exist.

        That is: of one class, of no question, or where one was not scored.

        Args:
            uncertainty: ``(N,)``.
            among: ``(N,)`` the questions that count, None for all.

        Example:
            >>> right = Yardstick(metric="auroc", truth=np.array([1, 0]))
            >>> right.value(np.array([0.1, 0.9])), right.value(np.array([0.1, np.nan]))
            (1.0, None)
        """
        truth = self.truth if among is None else self.truth[among]
        scores = uncertainty if among is None else uncertainty[among]
        if not len(scores) or np.isnan(scores).any():
            return None
        if self.metric == "prr":
            return number(prr(scores, truth, normalised=False))
        return number(auroc(scores, truth))

    def within(
        self, label: str, uncertainty: FloatArray, groups: IntArray | FloatArray, /
    ) -> Curve:
        """Return the metric among questions of equal group, with their number.

        Args:
            label: What the curve is of.
            uncertainty: ``(N,)``.
            groups: ``(N,)`` what tells the groups apart, such as a number of clusters.
        """
        values = np.unique(groups)
        inside = [groups == value for value in values]
        return Curve(
            label=label,
            x=tuple(float(value) for value in values),
            y=tuple(self.value(uncertainty, one) for one in inside),
            counts=tuple(int(one.sum()) for one in inside),
            metric=self.metric,
        )
