"""What a monitor remembers, and how it is written down."""

from __future__ import annotations

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard, cast, get_args

from snne_guard.decision.drift import BINS, DriftTest
from snne_guard.errors import InputError, MonitorStoreError

__all__ = ["KEPT", "Alarm", "MonitorState"]

KEPT = 1000
"""Audits that are remembered: as many that wait, and as many that were reported."""

_KIND = "snne-guard monitor"
_VERSION = 1

Alarm = Literal["drift", "audit"]
"""Which of the two tests has made a calibration stale."""


@dataclass(slots=True, kw_only=True)
class MonitorState:
    """What has been seen of one calibration in use.

    Attributes:
        seed: Where its random numbers come from.
        drift: The test on the scores.
        alpha: Share of wrong answers among the accepted that is promised, None where
            nothing is.
        drift_level: Probability of a false alarm by the test on scores.
        audit_level: Probability of a false alarm by the test on audits.
        n_accepted: Answers that were accepted.
        n_picked: How many of them were picked for an audit.
        n_right: How many of those were reported to be right.
        n_wrong: How many to be wrong.
        pending: Ids that were picked and not reported, the oldest first.
        reported: Ids that were reported, with whether they were right.
        alarm: Why the calibration is stale, None while it is not.
        since: When that came about, in UTC; for information only.
    """

    seed: str
    drift: DriftTest
    alpha: float | None = None
    drift_level: float = 0.05
    audit_level: float = 0.05
    n_accepted: int = 0
    n_picked: int = 0
    n_right: int = 0
    n_wrong: int = 0
    pending: deque[str] = field(default_factory=lambda: deque(maxlen=KEPT))
    reported: dict[str, bool] = field(default_factory=dict[str, bool])
    alarm: Alarm | None = None
    since: str | None = None

    def chance(self, what: str, number: int) -> float:
        """Return the uniform random number in [0, 1) of so many draws for a purpose.

        It follows from the seed, so that a change which is tried again by its store
        draws the same.
        """
        text = f"{self.seed} {what} {number}".encode()
        digest = hashlib.blake2b(text, digest_size=8).digest()
        return (int.from_bytes(digest, "big") >> 11) * 2.0**-53

    @property
    def n_reported(self) -> int:
        """How many were reported."""
        return self.n_right + self.n_wrong

    def report(self, assessment_id: str, *, correct: bool) -> None:
        """Count a report on an answer that was picked; see ``Monitor.report``.

        Raises:
            InputError: If it waits for none, or was reported otherwise before.
        """
        before = self.reported.get(assessment_id)
        if before is not None:
            if before is not correct:
                word = "right" if before else "wrong"
                msg = (
                    f"the answer {assessment_id!r} was reported to be {word} before, "
                    "and has counted as that"
                )
                raise InputError(msg)
            return
        if assessment_id not in self.pending:
            msg = (
                f"no answer with the id {assessment_id!r} waits for an audit: it was "
                f"not picked, or {KEPT} others were since, or another calibration was "
                "watched then"
            )
            raise InputError(msg)
        self.pending.remove(assessment_id)
        while len(self.reported) >= KEPT:
            del self.reported[next(iter(self.reported))]
        self.reported[assessment_id] = correct
        self.n_right += correct
        self.n_wrong += not correct

    def to_text(self) -> str:
        """Return it as JSON."""
        fields = {name: getattr(self, name) for name in _PLAIN}
        return json.dumps(
            {
                "kind": _KIND,
                "version": _VERSION,
                **fields,
                "pending": list(self.pending),
                "reported": self.reported,
                "drift": {name: getattr(self.drift, name) for name in _DRIFT},
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_text(cls, text: str) -> MonitorState:
        """Read what ``to_text`` has written.

        Raises:
            MonitorStoreError: If it is something else, or of a newer version.
        """
        fields = _parsed(text)
        drift = fields["drift"]
        if sum(drift["counts"]) != drift["n_reference"] + drift["n_scores"]:
            why = "its counts do not add up"
            raise _unreadable(why)
        return cls(
            **{name: fields[name] for name in _PLAIN},
            pending=deque(fields["pending"], maxlen=KEPT),
            reported=fields["reported"],
            drift=DriftTest(**{name: drift[name] for name in _DRIFT}),
        )


def _parsed(text: str) -> dict[str, Any]:
    """Return the fields of a state, each of its kind."""
    try:
        fields: Any = json.loads(text)
    except ValueError as error:
        why = "it is no JSON"
        raise _unreadable(why) from error
    if not isinstance(fields, dict) or cast("Any", fields).get("kind") != _KIND:
        why = "it is not one of this library"
        raise _unreadable(why)
    known = cast("dict[str, Any]", fields)
    version = known.get("version")
    if version != _VERSION:
        why = f"its format is {version!r}, and this version reads format {_VERSION}"
        raise _unreadable(why)
    _check(known, _STATE)
    _check(known["drift"], _DRIFT)
    return known


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_share(value: object) -> bool:
    return isinstance(value, float) and 0.0 < value < 1.0


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _are_texts(value: object) -> bool:
    return _is_list(value) and all(map(_is_text, value))


def _all(value: object, kind: type, length: int) -> bool:
    if not _is_list(value) or len(value) != length or set(map(type, value)) != {kind}:
        return False
    return bool(min(value) >= 0 and max(value) < math.inf)


def _are_reports(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    reports = cast("dict[str, object]", value)
    return all(isinstance(right, bool) for right in reports.values())


_PLAIN: Mapping[str, Callable[[Any], bool]] = {
    "seed": _is_text,
    "alpha": lambda value: value is None or _is_share(value),
    "drift_level": _is_share,
    "audit_level": _is_share,
    "n_accepted": _is_count,
    "n_picked": _is_count,
    "n_right": _is_count,
    "n_wrong": _is_count,
    "alarm": lambda value: value is None or value in get_args(Alarm),
    "since": lambda value: value is None or _is_text(value),
}
_STATE: Mapping[str, Callable[[Any], bool]] = {
    **_PLAIN,
    "pending": _are_texts,
    "reported": _are_reports,
    "drift": lambda value: isinstance(value, dict),
}
_DRIFT: Mapping[str, Callable[[Any], bool]] = {
    "counts": lambda value: _all(value, int, BINS),
    "n_reference": _is_count,
    "n_scores": _is_count,
    "capital": lambda value: _all(value, float, len(DriftTest().capital)),
}


def _check(
    fields: Mapping[str, Any], rules: Mapping[str, Callable[[Any], bool]]
) -> None:
    for name, holds in rules.items():
        if name not in fields:
            why = f"there is no {name!r} in it"
            raise _unreadable(why)
        if not holds(fields[name]):
            why = f"{name!r} in it makes no sense"
            raise _unreadable(why)


def _unreadable(why: str) -> MonitorStoreError:
    return MonitorStoreError(f"the state of a monitor cannot be read: {why}")
