"""What a monitor makes of what it has seen: a state, and why in plain words."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from snne_guard.decision.audit import audit_evidence
from snne_guard.decision.monitor_state import Alarm, MonitorState
from snne_guard.decision.wording import percent

__all__ = ["MonitorStatus", "WatchState", "raise_alarm", "status_of"]

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


def raise_alarm(state: MonitorState) -> None:
    """Note that a test has reached its limit, where one has."""
    if state.alarm is None and (alarm := _alarm(state)):
        state.alarm = alarm
        state.since = datetime.now(UTC).isoformat(timespec="seconds")


def status_of(state: MonitorState, *, audit: bool = False) -> MonitorStatus:
    """Return what is made of a state.

    Args:
        state: What was seen.
        audit: Whether the last answer was picked for an audit.
    """
    audited = _audited(state)
    word, why = _judged(state, audited)
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


def _alarm(state: MonitorState) -> Alarm | None:
    audited = _audited(state)
    if audited is not None and audited * state.audit_level >= 1.0:
        return "audit"
    return "drift" if state.drift.value * state.drift_level >= 1.0 else None


def _audited(state: MonitorState) -> float | None:
    if state.alpha is None:
        return None
    return audit_evidence(state.n_reported, state.n_wrong, alpha=state.alpha)


def _judged(state: MonitorState, audited: float | None) -> tuple[WatchState, str]:
    near = audited is not None and audited**2 * state.audit_level >= 1.0
    if state.alarm == "audit" or (state.alarm is None and near):
        return "stale" if state.alarm else "watch", (
            f"{state.n_wrong} of {state.n_reported} audited answers were wrong, "
            f"and {percent(state.alpha or 0.0)} of all accepted ones may be: evidence "
            f"{audited or 0.0:.3g}, alarm at {1 / state.audit_level:.3g}"
        )
    drift = state.drift
    if state.alarm == "drift" or drift.value**2 * state.drift_level >= 1.0:
        return "stale" if state.alarm else "watch", (
            f"after {drift.n_scores} answers the uncertainties are {drift.words}: "
            f"evidence {drift.value:.3g}, alarm at {1 / state.drift_level:.3g}"
        )
    return "ok", "nothing speaks against the calibration"
