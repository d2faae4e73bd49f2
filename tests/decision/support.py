"""Graded answers, and what a calibration takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError


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
