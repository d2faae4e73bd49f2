"""From an uncertainty to a decision."""

from snne_guard.decision.policy import Policy, Verdict
from snne_guard.decision.threshold import Threshold, accept_threshold

__all__ = ["Policy", "Threshold", "Verdict", "accept_threshold"]
