"""The curves of a set, thin enough to be drawn: ROC, risk-coverage, by groups."""

from __future__ import annotations

import numpy as np

from snne_guard.evaluation.comparison.figures import number
from snne_guard.evaluation.metrics.curves import roc_curve
from snne_guard.evaluation.metrics.order import auroc
from snne_guard.evaluation.metrics.reliability_bins import reliability
from snne_guard.evaluation.metrics.risk_coverage import risk_coverage_curve
from snne_guard.evaluation.results import Curve
from snne_guard.types import FloatArray, IntArray

__all__ = [
    "auroc_or_none",
    "auroc_within",
    "calibration",
    "difference",
    "risk_coverage",
    "roc",
]

_POINTS = 200
"""Enough for any screen; a curve of ten thousand points would only be a large file."""


def roc(label: str, uncertainty: FloatArray, correct: IntArray) -> Curve:
    """Return the share of wrong answers found by the share of right ones accused."""
    return _thinned(label, *roc_curve(uncertainty, correct))


def risk_coverage(label: str, uncertainty: FloatArray, correct: IntArray) -> Curve:
    """Return the share of wrong answers by the share of questions answered."""
    return _thinned(label, *risk_coverage_curve(uncertainty, correct))


def auroc_within(
    label: str,
    uncertainty: FloatArray,
    correct: IntArray,
    groups: IntArray | FloatArray,
) -> Curve:
    """Return the AUROC among questions of equal group, with the number of questions.

    Args:
        label: What the curve is of.
        uncertainty: ``(N,)``.
        correct: ``(N,)`` 0 and 1.
        groups: ``(N,)`` what tells the groups apart, such as a number of clusters.
    """
    values = np.unique(groups)
    inside = [groups == value for value in values]
    return Curve(
        label=label,
        x=tuple(float(value) for value in values),
        y=tuple(auroc_or_none(uncertainty[one], correct[one]) for one in inside),
        counts=tuple(int(one.sum()) for one in inside),
    )


def difference(label: str, first: Curve, second: Curve) -> Curve:
    """Return the first curve less the second one, of the same abscissae."""
    pairs = zip(first.y, second.y, strict=True)
    return Curve(
        label=label,
        x=first.x,
        y=tuple(None if a is None or b is None else a - b for a, b in pairs),
        counts=first.counts,
    )


def auroc_or_none(uncertainty: FloatArray, correct: IntArray) -> float | None:
    """Return the AUROC, None of one class or where a question was not scored."""
    if np.isnan(uncertainty).any():
        return None
    return number(auroc(uncertainty, correct))


def calibration(label: str, probability: FloatArray, correct: IntArray) -> Curve:
    """Return the share of wrong answers by their probability of being wrong."""
    found = reliability(probability, correct)
    return Curve(
        label=label,
        x=tuple(found.predicted.tolist()),
        y=tuple(found.observed.tolist()),
        low=tuple(found.low.tolist()),
        high=tuple(found.high.tolist()),
        counts=tuple(found.counts.tolist()),
    )


def _thinned(label: str, x: FloatArray, y: FloatArray) -> Curve:
    if len(x) > _POINTS:
        kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(np.intp))
        x, y = x[kept], y[kept]
    return Curve(label=label, x=tuple(x.tolist()), y=tuple(y.tolist()))
