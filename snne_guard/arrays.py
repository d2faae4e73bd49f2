"""Checks of numbers that callers hand over; each raises InputError, and quotes no text.

Arrays come back as float64, in an array of their own.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.types import BoolArray, FloatArray

_LARGEST = sys.float_info.max
_ROUNDING = 1e-6
# How far above 0 a provider's rounding may lift a log-probability.
_LOGPROB_ROUNDING = 1e-3
# Half precision, and rounding for a file, leave sums that are not quite 1.
_SUM_ROUNDING = 1e-2


def as_numbers(
    values: ArrayLike,
    /,
    *,
    what: str,
    shape: tuple[int | str, ...] | None = None,
    least: float = -_LARGEST,
    most: float = _LARGEST,
    rounding: float = _ROUNDING,
) -> FloatArray:
    """Return numbers from ``least`` to ``most``, at least one; NaN is refused.

    In ``shape`` a letter stands for any size, and the same letter for the same size.
    What lies outside by no more than ``rounding`` is clipped.
    """
    array: FloatArray | None = None
    # Not numpy's own error, which may quote a text.
    with suppress(TypeError, ValueError, OverflowError):
        given = np.asarray(values)
        array = given.astype(np.float64) if given.dtype.kind in "biufO" else None
    if array is None:
        msg = f"expected {what} to be real numbers within the range of a float"
        raise InputError(msg)
    if not array.size:
        msg = f"expected at least one value of {what}, got none"
        raise InputError(msg)
    if shape is not None and not _has_shape(array.shape, shape):
        expected = str(shape).replace("'", "")
        msg = f"expected {what} of shape {expected}, got {array.shape}"
        raise InputError(msg)
    inside = (array >= least - rounding) & (array <= most + rounding)
    if not inside.all():
        limits = f"in [{least:.3g}, {most:.3g}]"
        if np.isnan(array).any():
            limits = "without NaN"
        elif -least == most == _LARGEST:
            limits = "to be finite"
        msg = f"expected {what} {limits}, got {array[~inside][0]}"
        raise InputError(msg)
    return array.clip(least, most)


def _has_shape(sizes: Sequence[int], shape: Sequence[int | str]) -> bool:
    known: dict[int | str, int] = {}
    return len(sizes) == len(shape) and all(
        size == (known.setdefault(axis, size) if isinstance(axis, str) else axis)
        for size, axis in zip(sizes, shape, strict=True)
    )


def as_similarity(values: ArrayLike, /, *, n: int) -> FloatArray:
    """Return the matrix of ``n`` texts: symmetric, in [0, 1], diagonal set to 1."""
    matrix = as_numbers(values, what="similarity", shape=(n, n), least=0, most=1)
    np.fill_diagonal(matrix, 1.0)
    if np.abs(matrix - matrix.T).max() > _ROUNDING:
        msg = "expected a symmetric similarity, got one that is not"
        raise InputError(msg)
    return matrix


def as_logprobs(values: ArrayLike, /, *, what: str, n: int | str = "n") -> FloatArray:
    """Return ``(n,)`` natural log-probabilities, at most 0; ``-inf`` is one."""
    limits = {"least": -math.inf, "most": 0.0, "rounding": _LOGPROB_ROUNDING}
    return as_numbers(values, what=what, shape=(n,), **limits)


def as_token_logprobs(lists: Sequence[ArrayLike], /) -> list[FloatArray]:
    """Return the log-probabilities of each answer's tokens, at least one token each."""
    if not len(lists):
        msg = "expected token_logprobs of at least one answer, got none"
        raise InputError(msg)
    what = "token_logprobs of answer {}"
    return [as_logprobs(row, what=what.format(k)) for k, row in enumerate(lists)]


def as_entailment(values: ArrayLike, /, *, n: int | str = "n") -> FloatArray:
    """Return ``(n, n, 3)`` probabilities in which every text entails itself."""
    limits = {"least": 0, "most": 1, "rounding": _SUM_ROUNDING}
    table = as_numbers(values, what="entailment", shape=(n, n, 3), **limits)
    if np.abs(table.sum(axis=-1) - 1).max() > _SUM_ROUNDING:
        msg = "expected entailment to add up to 1, got another sum"
        raise InputError(msg)
    texts = range(len(table))
    table[texts, texts] = (0.0, 0.0, 1.0)
    return table


def as_equivalence(values: ArrayLike, /, *, n: int | str = "n") -> BoolArray:
    """Return an ``(n, n)`` symmetric matrix of booleans, n >= 1."""
    relation = np.asarray(values)
    is_square = relation.size and _has_shape(relation.shape, (n, n))
    if not is_square or relation.dtype != np.bool_:
        given = f"{relation.dtype} of shape {relation.shape}"
        msg = f"expected ({n}, {n}) booleans of which texts mean the same, got {given}"
        raise InputError(msg)
    if (relation != relation.T).any():
        msg = "expected a symmetric relation, got one that is not"
        raise InputError(msg)
    return relation


def as_cluster_ids(values: ArrayLike, /) -> list[int]:
    """Return cluster ids as whole numbers, at least one."""
    ids = np.asarray(values)
    if ids.ndim != 1 or not ids.size or ids.dtype.kind not in "iu":
        given = f"{ids.dtype} of shape {ids.shape}"
        msg = f"expected (n,) cluster ids as whole numbers, n >= 1, got {given}"
        raise InputError(msg)
    listed: list[int] = ids.tolist()
    return listed
