"""Similarity matrix and log-probabilities to a score of how far answers spread."""

from snne_guard.scorers.bounds import bounds, uncertainty
from snne_guard.scorers.certificate import (
    PartlyBounded,
    snne_partial_bounds,
    uncertainty_range,
    wsnne_partial_bounds,
)
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.registry import METHODS, resolve_method
from snne_guard.scorers.scoring import score, score_members
from snne_guard.scorers.snne import snne, wsnne

__all__ = [
    "METHODS",
    "FunctionMethod",
    "PartlyBounded",
    "bounds",
    "resolve_method",
    "score",
    "score_members",
    "snne",
    "snne_partial_bounds",
    "uncertainty",
    "uncertainty_range",
    "wsnne",
    "wsnne_partial_bounds",
]
