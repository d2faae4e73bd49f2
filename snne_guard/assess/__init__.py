"""The one place where sampling, scoring and decision meet; it knows no framework."""

from snne_guard.assess.judge import Judge
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.session import (
    CHOSEN_SKIPS,
    Assessor,
    AsyncSession,
    Brief,
    Session,
)

__all__ = [
    "CHOSEN_SKIPS",
    "Assessor",
    "AsyncSession",
    "Brief",
    "Judge",
    "ObserverHub",
    "Session",
]
