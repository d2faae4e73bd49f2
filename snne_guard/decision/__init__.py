"""From an uncertainty to a decision."""

from snne_guard.decision.fit_stop import fit_stop
from snne_guard.decision.limits import accept_threshold, threshold_pair
from snne_guard.decision.policy import REFUSAL, Policy, Verdict
from snne_guard.decision.risk_control import Exploration, exploratory
from snne_guard.decision.stopping import CalibratedStop
from snne_guard.decision.threshold import Threshold

__all__ = [
    "REFUSAL",
    "CalibratedStop",
    "Exploration",
    "Policy",
    "Threshold",
    "Verdict",
    "accept_threshold",
    "exploratory",
    "fit_stop",
    "threshold_pair",
]
