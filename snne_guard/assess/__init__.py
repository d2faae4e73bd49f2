"""The one place where sampling, scoring and decision meet; it knows no framework."""

from snne_guard.assess.brief import CHOSEN_SKIPS, Assessor, Brief
from snne_guard.assess.build import Shared, build_assessor
from snne_guard.assess.calibrated import calibration_of, settings_of
from snne_guard.assess.judge import Judge, ToolRule
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.session import AsyncSession, Session
from snne_guard.assess.settings import PAPER, GuardSettings
from snne_guard.assess.stopping import Stopping, StopRule
from snne_guard.assess.switch import DISABLED_VARIABLE, disabled
from snne_guard.assess.withhold import withholding_error

__all__ = [
    "CHOSEN_SKIPS",
    "DISABLED_VARIABLE",
    "PAPER",
    "Assessor",
    "AsyncSession",
    "Brief",
    "GuardSettings",
    "Judge",
    "ObserverHub",
    "Session",
    "Shared",
    "StopRule",
    "Stopping",
    "ToolRule",
    "build_assessor",
    "calibration_of",
    "disabled",
    "settings_of",
    "withholding_error",
]
