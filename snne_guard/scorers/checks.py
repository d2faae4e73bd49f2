"""Checks of what methods are given: arrays, log-probabilities, parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

__all__ = [
    "as_cluster_ids",
    "as_direction_pairs",
    "as_floats",
    "as_logprobs",
    "as_matrix",
    "as_probabilities",
    "as_shares",
    "as_similarity",
    "as_token_logprobs",
    "check_at_least",
    "check_positive",
    "check_share",
]

# How far above 0 a provider's rounding may lift a log-probability.
_LOGPROB_SLACK = 1e-3
_SHARE_SLACK = 1e-6
# Half precision and numbers rounded for a file leave sums that are not quite 1.
_SUM_SLACK = 1e-2


def as_floats(values: ArrayLike, /, *, what: str) -> FloatArray:
    """Return a float64 array without NaN and ``+inf``; ``-inf`` is allowed."""
    try:
        floats: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected {what} to be numbers, got {type(values).__name__}"
        raise InputError(msg) from error
    wrong = np.isnan(floats) | np.isposinf(floats)
    if wrong.any():
        first = tuple(np.argwhere(wrong)[0].tolist())
        msg = f"expected {what} without NaN and +inf, got {floats[first]} at {first}"
        raise InputError(msg)
    return floats


def as_matrix(
    values: ArrayLike, /, *, what: str = "similarity", finite: bool = True
) -> FloatArray:
    """Return an ``(n, n)`` matrix, n >= 1, without ``-inf`` if ``finite``."""
    matrix = as_floats(values, what=what)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004 - a matrix has two axes
        msg = f"expected {what} of shape (n, n) with n >= 1, got {matrix.shape}"
        raise InputError(msg)
    if finite and np.isneginf(matrix).any():
        msg = f"expected {what} of finite numbers, got -inf"
        raise InputError(msg)
    return matrix


def as_similarity(values: ArrayLike, /, *, n: int) -> FloatArray:
    """Return what a similarity gave for ``n`` texts: symmetric, in [0, 1], diagonal 1.

    The diagonal is 1 whatever the similarity says: a text is like itself.
    """
    matrix = as_shares(as_floats(values, what="similarity"), what="similarity")
    if matrix.shape != (n, n):
        msg = f"expected a similarity of shape {(n, n)}, got {matrix.shape}"
        raise InputError(msg)
    np.fill_diagonal(matrix, 1.0)
    if not np.allclose(matrix, matrix.T, rtol=0, atol=_SHARE_SLACK):
        msg = "expected a symmetric similarity, got one that is not"
        raise InputError(msg)
    return matrix


def as_logprobs(values: ArrayLike, /, *, what: str, n: int | None = None) -> FloatArray:
    """Return ``(n,)`` natural log-probabilities of at most 0, n >= 1."""
    vector = as_floats(values, what=what)
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
    """Return numbers in [0, 1], cutting off what rounding left outside."""
    shares = as_floats(values, what=what)
    if not shares.size:
        msg = f"expected at least one {what}, got none"
        raise InputError(msg)
    for extreme in (float(shares.min()), float(shares.max())):
        if not -_SHARE_SLACK <= extreme <= 1 + _SHARE_SLACK:
            msg = f"expected {what} in [0, 1], got {extreme}"
            raise InputError(msg)
    return shares.clip(0.0, 1.0)


def as_probabilities(entailment: ArrayLike, /, *, n: int | None = None) -> FloatArray:
    """Return ``(n, n, 3)`` probabilities in which every text entails itself."""
    checked = as_floats(entailment, what="entailment").copy()
    n = max(1, checked.shape[0] if checked.ndim else 0) if n is None else n
    if checked.shape != (n, n, 3):
        msg = f"expected entailment of shape {(n, n, 3)}, got {checked.shape}"
        raise InputError(msg)
    checked[range(n), range(n)] = (0.0, 0.0, 1.0)
    return _as_distributions(checked)


def as_direction_pairs(main_entailment: ArrayLike, /) -> FloatArray:
    """Return ``(m, 2, 3)`` probabilities, m >= 1."""
    checked = as_floats(main_entailment, what="main_entailment")
    if not checked.size or checked.shape[1:] != (2, 3):
        msg = f"expected main_entailment of shape (m, 2, 3), got {checked.shape}"
        raise InputError(msg)
    return _as_distributions(checked)


def _as_distributions(values: FloatArray) -> FloatArray:
    off = np.abs(values.sum(axis=2) - 1).max()
    if values.min() < -_SUM_SLACK or off > _SUM_SLACK:
        msg = f"expected probabilities that add up to 1, got a sum off by {off}"
        raise InputError(msg)
    return values.clip(0.0, 1.0)


def as_cluster_ids(cluster_ids: ArrayLike, /) -> list[int]:
    """Return cluster ids as whole numbers, at least one."""
    ids = np.asarray(cluster_ids)
    if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
        msg = (
            "expected (n,) cluster ids as whole numbers, n >= 1, "
            f"got {ids.dtype} of shape {ids.shape}"
        )
        raise InputError(msg)
    found: list[int] = ids.tolist()
    return found


def check_positive(value: float, /, *, what: str) -> None:
    """Raise ConfigurationError unless a value is a finite number above 0."""
    if not _is_number(value) or not 0 < value < math.inf:
        msg = f"expected {what} to be a finite number above 0, got {value!r}"
        raise ConfigurationError(msg)


def check_at_least(value: float, least: float, /, *, what: str) -> None:
    """Raise ConfigurationError unless a value is a finite number of at least that."""
    if not _is_number(value) or not least <= value < math.inf:
        msg = f"expected {what} to be a finite number >= {least}, got {value!r}"
        raise ConfigurationError(msg)


def check_share(value: float, /, *, what: str) -> None:
    """Raise ConfigurationError unless a value is a number in [0, 1]."""
    if not _is_number(value) or not 0 <= value <= 1:
        msg = f"expected {what} in [0, 1], got {value!r}"
        raise ConfigurationError(msg)


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
