"""From an uncertainty to a decision."""

from snne_guard.decision.calibration import Calibration
from snne_guard.decision.cascade import Cascade
from snne_guard.decision.fit_cascade import fit_cascade
from snne_guard.decision.fit_stop import fit_stop
from snne_guard.decision.limits import accept_threshold, threshold_pair
from snne_guard.decision.monitor import Monitor, OnStale
from snne_guard.decision.monitor_status import MonitorStatus, WatchState
from snne_guard.decision.monitor_store import MemoryStore, MonitorStore
from snne_guard.decision.policy import REFUSAL, Policy, Verdict
from snne_guard.decision.probability import (
    ProbabilityMap,
    fit_probability,
    probability_maps,
)
from snne_guard.decision.risk_control import Exploration, exploratory
from snne_guard.decision.sqlite_store import SqliteStore
from snne_guard.decision.stopping import CalibratedStop
from snne_guard.decision.threshold import Threshold

__all__ = [
    "REFUSAL",
    "CalibratedStop",
    "Calibration",
    "Cascade",
    "Exploration",
    "MemoryStore",
    "Monitor",
    "MonitorStatus",
    "MonitorStore",
    "OnStale",
    "Policy",
    "ProbabilityMap",
    "SqliteStore",
    "Threshold",
    "Verdict",
    "WatchState",
    "accept_threshold",
    "exploratory",
    "fit_cascade",
    "fit_probability",
    "fit_stop",
    "probability_maps",
    "threshold_pair",
]
