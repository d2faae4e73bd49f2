"""Calibrations as one would have made them, for guards in tests."""

from __future__ import annotations

from typing import Any

from snne_guard.decision import Calibration, Cascade, Threshold, fit_probability

__all__ = ["READS", "SETTINGS", "calibration", "certified", "plan"]

SETTINGS: dict[str, Any] = {
    "model": "test-model",
    "reply_models": [],
    "prompt_version": None,
    "temperature": 1.0,
    "n": 5,
    "include_answer": True,
    "rounds": None,
    "method": "snne",
    "similarity": "content_f1",
    "anchor": 0.7,
    "tau": 1.0,
}
"""What a guard on the test server's model has, with ``method="snne"``."""

_U = [step / 200 for step in range(200)]
READS = fit_probability(_U, [u < 0.5 for u in _U])
"""What reads P(wrong) from ``u`` of five members."""


def certified(value: float = 0.4, **fields: Any) -> Threshold:
    """Return a threshold that carries a promise."""
    made: dict[str, Any] = {
        "value": value,
        "kind": "error_rate",
        "status": "certified",
        "level": 0.1,
        "delta": 0.1,
        "method": "snne",
        **fields,
    }
    return Threshold(**made)


def calibration(value: float = 0.4, **fields: Any) -> Calibration:
    """Return a calibration; what is not one of its fields is one of its settings."""
    own = {name: fields.pop(name) for name in _FIELDS if name in fields}
    settings = {**SETTINGS, **fields}
    threshold = certified(value, method=settings["method"])
    made: dict[str, Any] = {
        "threshold": threshold,
        "probability": {5: READS},
        "created": "2026-01-31T12:00:00+00:00",
        **own,
    }
    return Calibration(settings=settings, **made)


def plan(value: float = 0.4, **fields: Any) -> Cascade:
    """Return a plan of two rounds, of three members and of five."""
    made: dict[str, Any] = {
        "rounds": (3, 5),
        "accept_at_most": (0.1, value),
        "reject_at_least": (0.9,),
        "promise": certified(value),
        **fields,
    }
    return Cascade(**made)


_FIELDS = (
    "threshold",
    "refuse",
    "cascade",
    "probability",
    "combination",
    "reference",
    "tries",
    "labels",
)
