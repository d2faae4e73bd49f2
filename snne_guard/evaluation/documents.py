"""Rows of an evaluation for how far documents support recorded answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress

import numpy as np

from snne_guard.errors import MissingExtraError
from snne_guard.spans.grounding import ground, weakest
from snne_guard.types import FloatArray

AND_GROUNDED = " and grounded"
"""The end of the name of a row that is a pair."""


def doubt(answer: str, context: str | None) -> float:
    """Return 1 - ``grounded`` by words, NaN without context or the extra ``spans``."""
    if context:
        with suppress(MissingExtraError):
            supports = ground(answer, context)
            return 1 - (weakest(supports) or 0.0)
    return math.nan


def grounded_rows(
    uncertainties: Mapping[str, FloatArray], doubts: FloatArray
) -> dict[str, FloatArray]:
    """Return rows for the doubts, alone and as a pair: the sum of both ranks."""
    if np.isnan(doubts).any():
        return {}
    first, *_ = uncertainties
    ranks = [
        np.unique(each, return_inverse=True)[1]
        for each in (uncertainties[first], doubts)
    ]
    pair = np.sum([each / max(1, each.max()) for each in ranks], axis=0)
    return {"grounded": doubts, first + AND_GROUNDED: pair}
