"""Thresholds with a promise, calibrations, and what happens to an uncertain answer."""

from snne_guard.decision.calibration import Calibration
from snne_guard.decision.drift import DriftReport, drift
from snne_guard.decision.error_probability import ErrorProbability
from snne_guard.decision.policy import Delivery, Policy, Verdict
from snne_guard.decision.threshold import Threshold

__all__ = [
    "Calibration",
    "Delivery",
    "DriftReport",
    "ErrorProbability",
    "Policy",
    "Threshold",
    "Verdict",
    "drift",
]
