"""Checks of the inputs of methods: matrices, log-probabilities, shares, clusters."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import as_floats
from snne_guard.errors import InputError
from snne_guard.types import BoolArray, FloatArray

__all__ = [
    "as_cluster_ids",
    "as_distributions",
    "as_entailment",
    "as_equivalence",
    "as_logprobs",
    "as_matrix",
    "as_numbers",
    "as_shares",
    "as_similarity",
    "as_token_logprobs",
]

_LARGEST = sys.float_info.max
# How far above 0 a provider's rounding may lift a log-probability.
_LOGPROB_SLACK = 1e-3
_SHARE_SLACK = 1e-6
# Half precision, and rounding for a file, leave sums that are not quite 1.
_SUM_SLACK = 1e-2


def as_numbers(
    values: ArrayLike, /, *, what: str, least: float = -_LARGEST, most: float = _LARGEST
) -> FloatArray:
    """Return float64 numbers from ``least`` to ``most``, at least one; refuse NaN."""
    floats = as_floats(values, what=what)
    if not floats.size:
        msg = f"expected at least one {what}, got none"
        raise InputError(msg)
    inside = (floats >= least) & (floats <= most)
    if not inside.all():
        # Shown without the slack for rounding; + 0.0 makes 0 of -0.
        limits = [f"{round(limit, 2) + 0.0:.3g}" for limit in (least, most)]
        msg = f"expected {what} in [{', '.join(limits)}], got {floats[~inside][0]}"
        raise InputError(msg)
    return floats


def as_matrix(
    values: ArrayLike, /, *, what: str = "similarity", least: float = -_LARGEST
) -> FloatArray:
    """Return an ``(n, n)`` matrix, n >= 1, of numbers of at least ``least``."""
    matrix = as_numbers(values, what=what, least=least)
    if matrix.shape != (len(np.atleast_1d(matrix)),) * 2:
        msg = f"expected {what} of shape (n, n), got {matrix.shape}"
        raise InputError(msg)
    return matrix


def as_similarity(values: ArrayLike, /, *, n: int) -> FloatArray:
    """Return the matrix of ``n`` texts: symmetric, in [0, 1], diagonal 1.

    The diagonal is set to 1 whatever it was: a text is like itself.
    """
    matrix = as_shares(values, what="similarity")
    if matrix.shape != (n, n):
        msg = f"expected a similarity of shape {(n, n)}, got {matrix.shape}"
        raise InputError(msg)
    np.fill_diagonal(matrix, 1.0)
    if np.abs(matrix - matrix.T).max() > _SHARE_SLACK:
        msg = "expected a symmetric similarity, got one that is not"
        raise InputError(msg)
    return matrix


def as_logprobs(values: ArrayLike, /, *, what: str, n: int | None = None) -> FloatArray:
    """Return ``(n,)`` natural log-probabilities of at most 0, n >= 1."""
    vector = as_numbers(values, what=what, least=-math.inf, most=_LOGPROB_SLACK)
    if vector.shape != (vector.size if n is None else n,):
        expected = "(n,)" if n is None else (n,)
        msg = f"expected {what} of shape {expected}, got {vector.shape}"
        raise InputError(msg)
    return np.minimum(vector, 0.0)


def as_token_logprobs(lists: Sequence[ArrayLike], /) -> list[FloatArray]:
    """Return the log-probabilities of each answer's tokens, at least one token each."""
    if not len(lists):
        msg = "expected token_logprobs of at least one answer, got none"
        raise InputError(msg)
    return [
        as_logprobs(tokens, what=f"token_logprobs of answer {position}")
        for position, tokens in enumerate(lists)
    ]


def as_shares(values: ArrayLike, /, *, what: str) -> FloatArray:
    """Return numbers in [0, 1]; those that rounding left outside are clipped."""
    shares = as_numbers(values, what=what, least=-_SHARE_SLACK, most=1 + _SHARE_SLACK)
    return shares.clip(0.0, 1.0)


def as_entailment(values: ArrayLike, /, *, n: int | None = None) -> FloatArray:
    """Return ``(n, n, 3)`` probabilities in which every text entails itself."""
    n = len(np.atleast_1d(values)) if n is None else n
    checked = as_distributions(values, what="entailment", shape=(n, n, 3))
    checked[range(n), range(n)] = (0.0, 0.0, 1.0)
    return checked


def as_distributions(
    values: ArrayLike, /, *, what: str, shape: tuple[int, ...]
) -> FloatArray:
    """Return probabilities that add up to 1 along the last axis."""
    checked = as_numbers(values, what=what, least=-_SUM_SLACK, most=1 + _SUM_SLACK)
    if checked.shape != shape:
        msg = f"expected {what} of shape {shape}, got {checked.shape}"
        raise InputError(msg)
    if np.abs(checked.sum(axis=-1) - 1).max() > _SUM_SLACK:
        msg = f"expected {what} to add up to 1, got another sum"
        raise InputError(msg)
    return checked.clip(0.0, 1.0)


def as_equivalence(values: ArrayLike, /, *, n: int | None = None) -> BoolArray:
    """Return an ``(n, n)`` symmetric matrix of booleans, n >= 1."""
    relation = np.atleast_1d(values)
    n = len(relation) if n is None else n
    if not n or relation.shape != (n, n) or relation.dtype != np.bool_:
        msg = (
            f"expected {(n, n)} booleans of which texts mean the same, "
            f"got {relation.dtype} of shape {relation.shape}"
        )
        raise InputError(msg)
    if (relation != relation.T).any():
        msg = "expected a symmetric relation, got one that is not"
        raise InputError(msg)
    return relation


def as_cluster_ids(values: ArrayLike, /) -> list[int]:
    """Return cluster ids as whole numbers, at least one."""
    ids = np.asarray(values)
    if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
        msg = (
            "expected (n,) cluster ids as whole numbers, n >= 1, "
            f"got {ids.dtype} of shape {ids.shape}"
        )
        raise InputError(msg)
    listed: list[int] = ids.tolist()
    return listed
