"""Thresholds with a guarantee, calibrations, and drift."""

from snne_guard.decision.calibration import Calibration
from snne_guard.decision.error_probability import ErrorProbability
from snne_guard.decision.monitoring import DriftReport, drift
from snne_guard.decision.threshold import Threshold

__all__ = ["Calibration", "DriftReport", "ErrorProbability", "Threshold", "drift"]
