"""Methods that score how far answers differ, from arrays of numbers.

Each method of the paper, and each common baseline of the field, is a pure function on
arrays in the module of its family, with an entry in ``METHODS``. Arguments are named
after the properties of ``Inputs``. Log-probabilities and entropies are in nats,
and a higher value is always more uncertain.

Arrays of another shape, and values that are NaN or out of range, raise InputError,
options that are out of range ConfigurationError; rounding errors are clipped.
"""

from snne_guard.scorers.method import Method
from snne_guard.scorers.nearest_neighbor import bounds, snne, uncertainty, wsnne
from snne_guard.scorers.scoring import (
    METHODS,
    Inputs,
    resolve_method,
    score,
    score_replies,
)

__all__ = [
    "METHODS",
    "Inputs",
    "Method",
    "bounds",
    "resolve_method",
    "score",
    "score_replies",
    "snne",
    "uncertainty",
    "wsnne",
]
