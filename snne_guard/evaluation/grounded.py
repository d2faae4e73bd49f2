"""How far recorded answers are supported by what the model was given, as a row."""

from __future__ import annotations

import math

import numpy as np

from snne_guard.errors import MissingExtraError
from snne_guard.evaluation.recordings import Recording
from snne_guard.spans.grounding import ground, weakest
from snne_guard.types import FloatArray

GROUNDED = "grounded"
"""The row of a table for what documents say; beside it stands a pair with another."""


def doubt(recording: Recording) -> float:
    """Return 1 - ``grounded``, by words; 1 where it is unknown, NaN without a context.

    NaN too where the extra ``spans``, which cuts answers, is not installed.
    """
    if not recording.context:
        return math.nan
    try:
        supports = ground(recording.main_answer, recording.context)
    except MissingExtraError:
        return math.nan
    return 1 - (weakest(supports) or 0.0)


def paired(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return the mean of the ranks that two scores give, ties at their middle.

    Example:
        >>> paired(np.array([0.1, 0.5, 0.9]), np.array([2.0, 1.0, 1.0]))
        array([1.25, 0.75, 1.25])
    """
    ranks = [
        (np.searchsorted(np.sort(each), each, side) for side in ("left", "right"))
        for each in (one, other)
    ]
    mean: FloatArray = sum(sum(pair) - 1 for pair in ranks) / 4
    return mean
