"""Graded answers, and calibrations as guards meet them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snne_guard.decision import Calibration, ErrorProbability, Threshold
from snne_guard.errors import ConfigurationError

SETTINGS: dict[str, Any] = {
    "model": "m",
    "n": 5,
    "include_answer": True,
    "temperature": 1.0,
    "method": "snne",
    "similarity": "content_f1",
    "tau": 1.0,
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
        "created": "2026-11-22T12:00:00+00:00",
    }
    return Calibration(**known | fields)


_FIELDS = set(Calibration.__dataclass_fields__)


def answers(
    n: int = 200, *, base: float = 0.3, seed: int = 0
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return u, and which answers are correct: wrong ones have the larger u."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < base
    return np.clip(rng.normal(0.35 + 0.3 * wrong, 0.15), 0, 1), ~wrong


def matches(made: Calibration, here: Mapping[str, Any]) -> bool:
    """Return whether a guard with these settings may use it."""
    try:
        made.check(here)
    except ConfigurationError:
        return False
    return True


def covers(made: Calibration, **changes: Any) -> bool:
    reply: dict[str, Any] = {
        "n_used": 5,
        "method": "snne",
        "similarity": "content_f1",
        "models": {"m"},
        "temperature_set": True,
    }
    return made.covers(**reply | changes)
