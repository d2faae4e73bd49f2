"""Checks of the inputs of methods: matrices, log-probabilities, shares, clusters."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import as_array, as_floats
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
    "check_count",
]

# How far above 0 a provider's rounding may lift a log-probability.
_LOGPROB_SLACK = 1e-3
_SHARE_SLACK = 1e-6
# Half precision, and rounding for a file, leave sums that are not quite 1.
_SUM_SLACK = 1e-2
# More answers than this have no exact float.
_MOST_ANSWERS = 2**53


def as_numbers(values: ArrayLike, /, *, what: str) -> FloatArray:
    """Return a float64 array without NaN and ``+inf``; ``-inf`` is allowed."""
    floats = as_floats(values, what=what)
    wrong = np.isnan(floats) | np.isposinf(floats)
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0].tolist())
        msg = f"expected {what} without NaN and +inf, got {floats[first]} at {first}"
        raise InputError(msg)
    return floats


def as_matrix(
    values: ArrayLike, /, *, what: str = "similarity", least: float | None = None
) -> FloatArray:
    """Return an ``(n, n)`` matrix, n >= 1, of numbers from ``least`` or finite ones."""
    matrix = as_numbers(values, what=what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004 - a matrix has two axes
        msg = f"expected {what} of shape (n, n) with n >= 1, got {matrix.shape}"
        raise InputError(msg)
    if matrix.min() < (-sys.float_info.max if least is None else least):
        kind = "finite numbers" if least is None else f"at least {least}"
        msg = f"expected {what} of {kind}, got {matrix.min()}"
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
    vector = as_numbers(values, what=what)
    if vector.ndim != 1 or not vector.size or (n is not None and len(vector) != n):
        expected = "at least one" if n is None else str(n)
        msg = f"expected {expected} {what}, got shape {vector.shape}"
        raise InputError(msg)
    if vector.max() > _LOGPROB_SLACK:
        msg = f"expected {what} of at most 0, got {vector.max()}"
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
    shares = as_numbers(values, what=what)
    if not shares.size:
        msg = f"expected at least one {what}, got none"
        raise InputError(msg)
    for extreme in (float(shares.min()), float(shares.max())):
        if not -_SHARE_SLACK <= extreme <= 1 + _SHARE_SLACK:
            msg = f"expected {what} in [0, 1], got {extreme}"
            raise InputError(msg)
    return shares.clip(0.0, 1.0)


def as_entailment(values: ArrayLike, /, *, n: int | None = None) -> FloatArray:
    """Return ``(n, n, 3)`` probabilities in which every text entails itself."""
    checked = as_numbers(values, what="entailment")
    n = max(1, checked.shape[0] if checked.ndim else 0) if n is None else n
    if checked.shape == (n, n, 3):
        checked[range(n), range(n)] = (0.0, 0.0, 1.0)
    return as_distributions(checked, what="entailment", shape=(n, n, 3))


def as_distributions(
    values: ArrayLike, /, *, what: str, shape: tuple[int, ...]
) -> FloatArray:
    """Return probabilities that add up to 1 along the last axis."""
    checked = as_numbers(values, what=what)
    if checked.shape != shape:
        msg = f"expected {what} of shape {shape}, got {checked.shape}"
        raise InputError(msg)
    off = np.abs(checked.sum(axis=-1) - 1).max()
    if checked.min() < -_SUM_SLACK or off > _SUM_SLACK:
        msg = f"expected probabilities that add up to 1, got a sum off by {off}"
        raise InputError(msg)
    return checked.clip(0.0, 1.0)


def as_equivalence(values: ArrayLike, /, *, n: int | None = None) -> BoolArray:
    """Return an ``(n, n)`` symmetric matrix of booleans."""
    relation = as_array(values, what="equivalence")
    n = len(np.atleast_1d(relation)) if n is None else n
    if not n or relation.shape != (n, n) or relation.dtype != np.bool_:
        msg = (
            f"expected {(n, n)} booleans of which texts mean the same, "
            f"got {relation.dtype} of shape {relation.shape}"
        )
        raise InputError(msg)
    if (relation != relation.T).any():
        i, j = np.argwhere(relation != relation.T)[0].tolist()
        msg = f"expected a symmetric relation, but ({i}, {j}) is not ({j}, {i})"
        raise InputError(msg)
    return relation


def as_cluster_ids(values: ArrayLike, /) -> list[int]:
    """Return cluster ids as whole numbers, at least one."""
    ids = as_array(values, what="cluster ids")
    if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
        msg = (
            "expected (n,) cluster ids as whole numbers, n >= 1, "
            f"got {ids.dtype} of shape {ids.shape}"
        )
        raise InputError(msg)
    listed: list[int] = ids.tolist()
    return listed


def check_count(n: object, /) -> None:
    """Raise InputError unless a number of answers is a whole number of at least 1."""
    if not isinstance(n, int | np.integer) or not 1 <= n <= _MOST_ANSWERS:
        msg = f"expected n to be a whole number of at least 1 (at most 2**53), got {n}"
        raise InputError(msg)
