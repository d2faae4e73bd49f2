"""The curves of a set, thin enough to be drawn: ROC, risk-coverage, reliability."""

from __future__ import annotations

import numpy as np

from snne_guard.evaluation.metrics.curves import roc_curve
from snne_guard.evaluation.metrics.reliability_bins import reliability
from snne_guard.evaluation.metrics.risk_coverage import risk_coverage_curve
from snne_guard.evaluation.results import Curve
from snne_guard.types import FloatArray, IntArray

__all__ = [
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


def difference(label: str, first: Curve, second: Curve) -> Curve:
    """Return the first curve less the second one, of the same abscissae."""
    pairs = zip(first.y, second.y, strict=True)
    return Curve(
        label=label,
        x=first.x,
        y=tuple(None if a is None or b is None else a - b for a, b in pairs),
        counts=first.counts,
        metric=first.metric,
    )


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
