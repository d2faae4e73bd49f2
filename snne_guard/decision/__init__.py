"""From an uncertainty to a decision."""

from snne_guard.decision.fit_stop import fit_stop
from snne_guard.decision.policy import REFUSAL, Policy, Verdict
from snne_guard.decision.stopping import CalibratedStop
from snne_guard.decision.threshold import Threshold, accept_threshold

__all__ = [
    "REFUSAL",
    "CalibratedStop",
    "Policy",
    "Threshold",
    "Verdict",
    "accept_threshold",
    "fit_stop",
]
