"""A guard and its monitor: what it is shown, and what follows from its state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from snne_guard.assess.binding import ALLOWED
from snne_guard.assess.watching import Doubt
from snne_guard.decision import Calibration, MemoryStore, Monitor, Threshold
from snne_guard.decision.monitor import audited_rate
from snne_guard.errors import ConfigurationError
from snne_guard.types import Assessment

__all__ = ["Monitored", "watching"]

_OTHER_SETS = frozenset({"uncalibrated_set", "uncalibrated_method"})
"""Reasons for which a ``u`` is of another kind than those of the calibration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Monitored:
    """Shows a monitor every answer that its calibration is for; see ``Watch``.

    Attributes:
        monitor: Who is shown them.
        any_model: Whether answers of other models are accepted too.
    """

    monitor: Monitor
    any_model: bool = False

    @property
    def may_withhold(self) -> bool:
        """Whether an answer may be held back once the calibration is stale."""
        return self.monitor.on_stale in {"refuse", "fallback", "raise"}

    @property
    def light(self) -> bool:
        """Whether the state is in memory, so that nothing is waited for."""
        return isinstance(self.monitor.store, MemoryStore)

    def see(self, assessment: Assessment, /) -> tuple[Assessment, Doubt | None]:
        """Show an answer to the monitor, and act on the state that it then is in."""
        uncertainty = assessment.uncertainty
        if uncertainty is None or self._is_other(assessment):
            return replace(assessment, audit=False), None
        status = self.monitor.note(
            assessment.id,
            uncertainty=uncertainty,
            accepted=assessment.decision == "accept",
        )
        noted = replace(assessment, audit=status.audit)
        if status.state == "stale":
            return self._doubted(noted, "calibration_stale")
        reasons = ("calibration_watch",) if status.state == "watch" else ()
        return replace(noted, reasons=(*noted.reasons, *reasons)), None

    def _is_other(self, assessment: Assessment) -> bool:
        reasons = assessment.reasons
        other = not self.any_model and not ALLOWED.isdisjoint(reasons)
        return other or not _OTHER_SETS.isdisjoint(reasons)

    def missed(self, assessment: Assessment, /) -> tuple[Assessment, Doubt | None]:
        """Act as if the calibration were stale: nobody knows that it is not."""
        return self._doubted(replace(assessment, audit=False), "monitor_failed")

    def _doubted(
        self, assessment: Assessment, reason: str
    ) -> tuple[Assessment, Doubt | None]:
        reasons = (*assessment.reasons, reason)
        doubt = self.monitor.on_stale
        seen = replace(assessment, certified=False, reasons=reasons)
        return seen, None if doubt == "accept" else doubt


def watching(
    options: Mapping[str, Any], threshold: Threshold | None
) -> Monitored | None:
    """Return what shows answers to a monitor, bound to what was calibrated.

    Args:
        options: The options of a guard, its calibration read.
        threshold: What it accepts by.

    Raises:
        ConfigurationError: If it is no monitor, watches another calibration, or hands
            over where there is no fallback.
    """
    monitor = options.get("monitor")
    if monitor is None:
        return None
    if not isinstance(monitor, Monitor):
        msg = f"monitor must be Monitor(...) or None; got {monitor!r}"
        raise ConfigurationError(msg)
    if monitor.on_stale == "fallback" and options["fallback"] is None:
        msg = 'Monitor(on_stale="fallback") needs a fallback: whoever answers instead'
        raise ConfigurationError(msg)
    calibration: Calibration | None = options.get("calibration")
    monitor.bind(
        reference=None if calibration is None else calibration.reference,
        alpha=audited_rate(threshold),
    )
    return Monitored(monitor=monitor, any_model=bool(options.get("allow_mismatch")))
