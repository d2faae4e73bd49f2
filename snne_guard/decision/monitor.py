"""Watching a calibration in use: whether what it promises can still be believed."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.calibration import Calibration
from snne_guard.decision.drift import DriftTest
from snne_guard.decision.monitor_state import MonitorState
from snne_guard.decision.monitor_status import (
    MonitorStatus,
    raise_alarm,
    status_of,
)
from snne_guard.decision.monitor_store import MemoryStore, MonitorStore
from snne_guard.decision.threshold import Threshold
from snne_guard.errors import ConfigurationError, InputError

__all__ = ["Monitor", "OnStale", "audited_rate"]

OnStale = Literal["uncertain", "accept", "flag", "refuse", "fallback", "raise"]
"""What becomes of answers whose calibration is stale: they count as uncertain, are
decided on as before, or what ``on_uncertain`` says by this word."""


class Monitor:
    """Finds out in use when a calibration no longer fits, with few false alarms.

    Two tests run side by side. One bets that the uncertainties of new answers are
    unlike those of the calibration; it needs no labels. The other bets that more than
    a share ``alpha`` of accepted answers is wrong; it needs reports on those that the
    monitor picks at random. Both may be looked at after every answer: over its whole
    life a monitor of a calibration that still fits gives a false alarm with
    probability at most ``drift_level + audit_level``.

    A guard with ``monitor=`` calls ``note`` for every answer that it scores. What is
    known is kept in the store, under the name and what was calibrated: another
    calibration begins anew, and processes that are to watch the same one give the
    same name, ``reference`` and ``alpha``.

    Args:
        reference: ``(n,)`` uncertainties in [0, 1] of the calibration's answers;
            ``inf``, no score, is left out. None takes those of the guard's calibration.
        alpha: Share of wrong answers among the accepted that was promised. None takes
            that of the guard's threshold; without any, nothing is tested on audits.
        store: Where the state is kept; None for this process alone.
        name: Name of what is watched, where several monitors share a store.
        audit_rate: Share of accepted answers that is picked for an audit, at random
            and whatever their uncertainty.
        on_stale: What a guard does with answers once the calibration is stale.
        drift_level: Probability of a false alarm by the test on scores.
        audit_level: Probability of a false alarm by the test on audits.
        seed: For random numbers that can be repeated; None draws one.

    Raises:
        ConfigurationError: If an option makes no sense.
        InputError: If the reference holds something else than uncertainties.

    Example:
        >>> monitor = Monitor(reference=[0.1, 0.2, 0.4], alpha=0.1, audit_rate=1.0)
        >>> monitor.note("a1", uncertainty=0.2, accepted=True).audit
        True
        >>> monitor.report("a1", correct=True).n_reported, monitor.status().state
        (1, 'ok')
    """

    def __init__(
        self,
        *,
        reference: ArrayLike | None = None,
        alpha: float | None = None,
        store: MonitorStore | None = None,
        name: str = "default",
        audit_rate: float = 0.02,
        on_stale: OnStale = "uncertain",
        drift_level: float = 0.05,
        audit_level: float = 0.05,
        seed: int | None = None,
    ) -> None:
        for option, value in (
            ("drift_level", drift_level),
            ("audit_level", audit_level),
            ("alpha", 0.5 if alpha is None else alpha),
        ):
            _check_share(option, value, whole=False)
        _check_share("audit_rate", audit_rate, whole=True)
        if on_stale not in get_args(OnStale):
            words = ", ".join(map(repr, get_args(OnStale)))
            msg = f"on_stale must be one of {words}; got {on_stale!r}"
            raise ConfigurationError(msg)
        if not _is_name(name):
            msg = f"name must be a text that is not empty; got {name!r}"
            raise ConfigurationError(msg)
        self.name, self.audit_rate = name, audit_rate
        self.on_stale: OnStale = on_stale
        self.drift_level, self.audit_level = float(drift_level), float(audit_level)
        self.store: MonitorStore = MemoryStore() if store is None else store
        self._seed = seed
        self._given = (reference, alpha)
        self._bound: tuple[ArrayLike | None, float | None] | None = None
        self._begin(reference, alpha)

    def __repr__(self) -> str:
        return f"Monitor(key={self.key!r}, store={self.store!r})"

    @classmethod
    def for_calibration(
        cls,
        calibration: Calibration | str | os.PathLike[str],
        **options: Any,  # noqa: ANN401 - those of the class
    ) -> Monitor:
        """Return a monitor of a calibration, for a process without a guard.

        A process that only reports shares the store with those that have guards.

        Args:
            calibration: What the guards have, or the path of its file.
            **options: Options of ``Monitor``: ``store`` and ``name`` as theirs.

        Raises:
            ConfigurationError: If an option makes no sense.
            InputError: If the file holds no calibration, or was changed.
            OSError: If the file cannot be read.
        """
        made = calibration
        if not isinstance(made, Calibration):
            made = Calibration.load(made)
        known: dict[str, Any] = {
            "reference": made.reference,
            "alpha": audited_rate(made.threshold),
        }
        return cls(**{**known, **options})

    def bind(self, *, reference: ArrayLike | None, alpha: float | None) -> None:
        """Take from a calibration what was not given; a guard does so when it is made.

        Args:
            reference: Its uncertainties, None where it has none.
            alpha: The share of wrong answers that it promises, None if it does not.

        Raises:
            ConfigurationError: If it watches another calibration already.
            InputError: If the reference holds something else than uncertainties.
        """
        own, promised = self._given
        key = self.key
        before = self._bound
        now = (
            reference if own is None else own,
            alpha if promised is None else promised,
        )
        self._begin(*now)
        if before is not None and self.key != key:
            self._begin(*before)
            msg = (
                f"the monitor {self.name!r} watches another calibration already: "
                "give each guard a Monitor of its own"
            )
            raise ConfigurationError(msg)
        self._bound = now

    def note(
        self, assessment_id: str, *, uncertainty: float | None, accepted: bool
    ) -> MonitorStatus:
        """Take in one answer, and say whether it is to be audited.

        Args:
            assessment_id: Id of its assessment.
            uncertainty: Its ``u``, None where it counts for accepted answers only.
            accepted: Whether it was accepted.

        Raises:
            InputError: If the uncertainty is no number in [0, 1], or the id no text.
            MonitorStoreError: If the state cannot be read or kept.
        """
        if not _is_name(assessment_id):
            msg = f"an id must be a text that is not empty; got {assessment_id!r}"
            raise InputError(msg)

        def change(state: MonitorState) -> bool:
            test = state.drift
            if uncertainty is not None and state.alarm is None:
                test.add(uncertainty, state.chance("tie", test.n_scores))
            raise_alarm(state)
            withheld = state.alarm is not None and self.on_stale != "accept"
            if withheld or not accepted:
                return False
            picked = state.chance("audit", state.n_accepted) < self.audit_rate
            state.n_accepted += 1
            if picked:
                state.n_picked += 1
                state.pending.append(assessment_id)
            return picked

        return self._update(change)

    def report(self, assessment_id: str, *, correct: bool) -> MonitorStatus:
        """Say whether an answer that was picked for an audit is right.

        Report all of them, right and wrong alike: the test is only true of answers
        that chance has picked. What was reported counts once and cannot be taken
        back; the same report again changes nothing.

        Args:
            assessment_id: Id of its assessment.
            correct: Whether the answer is right.

        Returns:
            What the monitor makes of it now.

        Raises:
            InputError: If no answer with this id waits for an audit, or it was
                reported otherwise before.
            MonitorStoreError: If the state cannot be read or kept.
        """
        if correct not in (True, False):
            msg = f"correct must be True or False; got {correct!r}"
            raise InputError(msg)

        def change(state: MonitorState) -> bool:
            state.report(assessment_id, correct=bool(correct))
            return False

        return self._update(change)

    def status(self) -> MonitorStatus:
        """Return what was seen so far.

        Raises:
            MonitorStoreError: If the state cannot be read or kept.
        """
        return self._update(lambda _: False)

    def pending(self) -> tuple[str, ...]:
        """Return the ids that wait for a report, the oldest first; 1000 at most.

        Raises:
            MonitorStoreError: If the state cannot be read or kept.
        """
        found: list[str] = []

        def change(state: MonitorState) -> bool:
            found[:] = state.pending
            return False

        self._update(change)
        return tuple(found)

    def reset(self) -> None:
        """Forget everything, an alarm too, and begin anew.

        Do so only when whatever had changed is as it was again; after each reset
        there may be false alarms anew. A new calibration needs no reset.

        Raises:
            MonitorStoreError: If the state cannot be kept.
        """
        self.store.update(self.key, lambda _: self._new().to_text())

    def _begin(self, reference: ArrayLike | None, alpha: float | None) -> None:
        given = () if reference is None else reference
        scores = np.asarray(given, dtype=np.float64).ravel()
        self._drift = DriftTest.after(scores[scores != math.inf].tolist())
        self.alpha = None if alpha is None else float(alpha)
        about = f"{self.alpha} {self._drift.counts}".encode()
        digest = hashlib.blake2b(about, digest_size=8).hexdigest()
        self.key = f"{self.name}/{digest}"

    def _new(self) -> MonitorState:
        seed = secrets.token_hex(8) if self._seed is None else str(self._seed)
        drift = self._drift
        return MonitorState(
            seed=seed,
            drift=DriftTest(counts=[*drift.counts], n_reference=drift.n_reference),
        )

    def _update(self, change: Callable[[MonitorState], bool]) -> MonitorStatus:
        found: list[MonitorStatus] = []

        def in_text(text: str | None) -> str:
            state = self._new() if text is None else MonitorState.from_text(text)
            state.alpha = self.alpha
            state.drift_level, state.audit_level = self.drift_level, self.audit_level
            audit = change(state)
            raise_alarm(state)
            found[:] = [status_of(state, audit=audit)]
            return state.to_text()

        self.store.update(self.key, in_text)
        return found[0]


def audited_rate(threshold: Threshold | None) -> float | None:
    """Return the share of wrong answers among the accepted that is promised.

    None where something else is, such as a share of all answers, or nothing.
    """
    if threshold is None or threshold.kind != "error_rate":
        return None
    return threshold.level


def _check_share(name: str, value: object, *, whole: bool) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        within = 0.0 < value < 1.0
        if within or (whole and value in {0, 1}):
            return
    limits = "in [0, 1]" if whole else "above 0 and below 1"
    msg = f"{name} must be a number {limits}; got {value!r}"
    raise ConfigurationError(msg)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(value)
