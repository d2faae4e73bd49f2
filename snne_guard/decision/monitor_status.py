"""What a monitor makes of what it has seen: a state, and why in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from snne_guard.decision.audit import audit_evidence
from snne_guard.decision.monitor_state import Alarm, MonitorState

__all__ = ["Levels", "MonitorStatus", "WatchState"]

WatchState = Literal["ok", "watch", "stale"]
"""How far a calibration can be believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorStatus:
    """What a monitor has seen, and what it makes of it.

    Attributes:
        state: ``"ok"``; ``"watch"`` from half of the way to an alarm on, counted in
            factors of the evidence; ``"stale"`` after an alarm, and from then on.
        reason: Why, in plain words.
        n_reference: Scores of the calibration.
        n_scores: Scores that were seen since.
        drift_evidence: Value of the martingale on the scores; an alarm at
            ``1 / drift_level``.
        n_accepted: Answers that were accepted.
        n_picked: How many of them were picked for an audit.
        n_pending: How many of those wait for a report, the last 1000 at most.
        n_reported: How many were reported.
        n_wrong: How many of those were wrong.
        audit_evidence: Evidence that more accepted answers are wrong than promised;
            an alarm at ``1 / audit_level``. None where nothing is promised of them.
        since: When the alarm was given, ISO 8601 in UTC by the machine's clock; for
            information only.
        audit: Whether the answer that was just noted is picked for an audit.
    """

    state: WatchState
    reason: str
    n_reference: int
    n_scores: int
    drift_evidence: float
    n_accepted: int
    n_picked: int
    n_pending: int
    n_reported: int
    n_wrong: int
    audit_evidence: float | None
    since: str | None = None
    audit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """What is promised, and how sure an alarm is to be.

    Attributes:
        alpha: Share of wrong answers among the accepted, None if nothing is promised.
        drift: Probability of a false alarm by the test on scores.
        audit: Probability of a false alarm by the test on audits.
    """

    alpha: float | None
    drift: float
    audit: float

    def alarm(self, state: MonitorState) -> Alarm | None:
        """Return which test has reached its limit, None if neither has."""
        audited = self._audited(state)
        if audited is not None and audited * self.audit >= 1.0:
            return "audit"
        return "drift" if state.drift.value * self.drift >= 1.0 else None

    def status(self, state: MonitorState, *, audit: bool) -> MonitorStatus:
        """Return what is made of a state.

        Args:
            state: What was seen.
            audit: Whether the last answer was picked for an audit.
        """
        audited = self._audited(state)
        word, why = self._judged(state, audited)
        return MonitorStatus(
            state=word,
            reason=why,
            n_reference=state.drift.n_reference,
            n_scores=state.drift.n_scores,
            drift_evidence=state.drift.value,
            n_accepted=state.n_accepted,
            n_picked=state.n_picked,
            n_pending=len(state.pending),
            n_reported=state.n_reported,
            n_wrong=state.n_wrong,
            audit_evidence=audited,
            since=state.since,
            audit=audit,
        )

    def _audited(self, state: MonitorState) -> float | None:
        if self.alpha is None:
            return None
        return audit_evidence(state.n_reported, state.n_wrong, alpha=self.alpha)

    def _judged(
        self, state: MonitorState, audited: float | None
    ) -> tuple[WatchState, str]:
        if state.alarm == "audit" or (state.alarm is None and self._near(audited)):
            return "stale" if state.alarm else "watch", (
                f"{state.n_wrong} of {state.n_reported} audited answers were wrong, "
                f"and {self.alpha or 0.0:.3g} of all accepted ones may be: evidence "
                f"{audited or 0.0:.3g}, alarm at {1 / self.audit:.3g}"
            )
        drift = state.drift
        if state.alarm == "drift" or drift.value**2 * self.drift >= 1.0:
            return "stale" if state.alarm else "watch", (
                f"after {drift.n_scores} answers the uncertainties are {drift.words}: "
                f"evidence {drift.value:.3g}, alarm at {1 / self.drift:.3g}"
            )
        return "ok", "nothing speaks against the calibration"

    def _near(self, audited: float | None) -> bool:
        return audited is not None and audited**2 * self.audit >= 1.0
