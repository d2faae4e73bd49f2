"""Similarity matrix and log-probabilities to a score of how far answers differ."""

from snne_guard.scorers.inputs import InputBuilder
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.registry import (
    METHODS,
    anchor_for,
    check_similarity,
    compares_answers,
    default_similarity,
    needs_logprobs,
    resolve_method,
    without_logprobs,
)
from snne_guard.scorers.scoring import score, score_members
from snne_guard.scorers.snne import bounds, snne, uncertainty, wsnne

__all__ = [
    "METHODS",
    "FunctionMethod",
    "InputBuilder",
    "anchor_for",
    "bounds",
    "check_similarity",
    "compares_answers",
    "default_similarity",
    "needs_logprobs",
    "resolve_method",
    "score",
    "score_members",
    "snne",
    "uncertainty",
    "without_logprobs",
    "wsnne",
]
