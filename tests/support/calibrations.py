"""Calibrations as guards meet them."""

from __future__ import annotations

from typing import Any

from snne_guard.decision import Calibration, ErrorProbability, Threshold

SETTINGS: dict[str, Any] = {
    "model": "m",
    "n": 5,
    "include_answer": True,
    "temperature": 1.0,
    "method": "snne",
    "similarity": "content_f1",
    "anchor": 0.7,
}
CERTIFIED = Threshold(
    value=0.4,
    status="certified",
    alpha=0.1,
    delta=0.1,
    n_labels=300,
    n_accepted=120,
    n_wrong=5,
)
PROBABILITY = ErrorProbability(a=0.5, b=0.25, c=-1.0, n_labels=300)


def calibration(**changes: Any) -> Calibration:
    """A certified one; a change of a setting's name changes that setting."""
    settings = SETTINGS | {k: v for k, v in changes.items() if k not in _FIELDS}
    fields = {k: v for k, v in changes.items() if k in _FIELDS}
    known: dict[str, Any] = {
        "settings": settings,
        "threshold": CERTIFIED,
        "probability": PROBABILITY,
    }
    return Calibration(**known | fields)


_FIELDS = set(Calibration.__dataclass_fields__)
