"""Readings of SNNE in the authors' code that ask which answers mean the same."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import as_places
from snne_guard.scorers.bounds import bounds
from snne_guard.scorers.rows import as_square, row_logsumexp
from snne_guard.types import FloatArray

__all__ = [
    "Variant",
    "full_limits",
    "numerator_limits",
    "shifted_limits",
    "snne_clustered",
]

Variant = Literal["full", "only_num", "num_minus_denom"]

_ROUNDING = 1e-9
_EMPTY = math.log(1e-8)
"""The log that an empty sum counts as, in the authors' code."""


def snne_clustered(
    similarity: ArrayLike,
    cluster_ids: ArrayLike,
    *,
    variant: Variant = "full",
    tau: float = 1.0,
    include_self: bool = False,
) -> float:
    r"""Return a soft nearest neighbour entropy of answers in clusters of equal meaning.

    With the sums over an answer's own cluster and over all answers,

    .. math::
        N_i = \sum_{j \sim i} e^{f_{ij} / \tau}, \quad
        D_i = \sum_j e^{f_{ij} / \tau}

    ``"full"`` is :math:`-\frac1n \sum_i \ln (N_i / D_i)`, ``"only_num"`` is
    :math:`-\frac1n \sum_i \ln N_i`, and ``"num_minus_denom"`` is
    :math:`-\frac1n \sum_i \ln (2 N_i - D_i + n e^{1 / \tau})`. SNNE itself is
    :math:`-\frac1n \sum_i \ln D_i`, and needs no clusters.

    Args:
        similarity: ``(n, n)`` matrix f in [0, 1], n >= 1.
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        variant: Which of them.
        tau: Temperature of the softmax, above 0.
        include_self: Whether ``j = i`` is in the sums; in the authors' script for many
            measures it is not. An empty sum then counts as 1e-8, as it does there.

    Returns:
        The value in nats, higher is more uncertain. ``"full"`` is at least 0, which
        is one cluster.

    Raises:
        InputError: The matrix is none in [0, 1], or the clusters are not n whole
            numbers.
        ConfigurationError: tau is not a finite number above 0, or ``variant`` is
            another word.

    Source:
        The code of Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy",
        where ``full``, on the similarity of entailment and without the diagonal, is
        the default of a script that the paper's tables do not come from.

    Example:
        >>> f = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
        >>> round(snne_clustered(f, [0, 0, 1]), 4)
        6.6873
        >>> round(snne_clustered(f, [0, 0, 0]), 4)
        0.0
    """
    if variant not in _VARIANTS:
        msg = f"expected variant to be one of {[*_VARIANTS]}, got {variant!r}"
        raise ConfigurationError(msg)
    matrix = as_square(similarity)
    if matrix.min() < -_ROUNDING or matrix.max() > 1 + _ROUNDING:
        wrong = matrix.min() if matrix.min() < -_ROUNDING else matrix.max()
        msg = f"expected similarities in [0, 1], got {wrong}"
        raise InputError(msg)
    matrix = matrix.clip(0.0, 1.0)
    places = as_places(cluster_ids, n=len(matrix))
    same = np.where(places[:, None] == places, matrix, -np.inf)
    own = _logs(same, tau=tau, include_self=include_self)
    every = _logs(matrix, tau=tau, include_self=include_self)
    logs = _VARIANTS[variant](own, every, 1 / tau)
    return 0.0 - math.fsum(logs.tolist()) / len(matrix)


def _logs(matrix: FloatArray, *, tau: float, include_self: bool) -> FloatArray:
    logs = row_logsumexp(matrix, tau=tau, include_self=include_self)
    return np.where(np.isneginf(logs), _EMPTY, logs)


def _full(own: FloatArray, every: FloatArray, scale: float) -> FloatArray:
    del scale
    return own - every


def _only_num(own: FloatArray, every: FloatArray, scale: float) -> FloatArray:
    del every, scale
    return own


def _num_minus_denom(own: FloatArray, every: FloatArray, scale: float) -> FloatArray:
    # Around the largest that can be there, so that a small tau does not overflow.
    n = len(own)
    inside = 2 * np.exp(own - scale) - np.exp(every - scale) + n
    logs: FloatArray = np.log(inside) + scale
    return logs


_VARIANTS: Mapping[str, Callable[[FloatArray, FloatArray, float], FloatArray]] = {
    "full": _full,
    "only_num": _only_num,
    "num_minus_denom": _num_minus_denom,
}


def full_limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
    """Return the limits of ``"full"`` without the diagonal: one cluster, all alone."""
    bounds(n, tau=tau)
    return 0.0, 0.0 if n == 1 else 1 / tau + math.log(n - 1) - _EMPTY


def numerator_limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
    """Return the limits of ``"only_num"`` without the diagonal."""
    bounds(n, tau=tau)
    return -_EMPTY if n == 1 else -(1 / tau + math.log(n - 1)), -_EMPTY


def shifted_limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
    """Return the limits of ``"num_minus_denom"`` without the diagonal."""
    bounds(n, tau=tau)
    empty = math.exp(_EMPTY - 1 / tau)
    if n == 1:
        # Both sums are empty.
        alone = -(1 / tau + math.log1p(empty))
        return alone, alone
    return -(1 / tau + math.log(2 * n - 1)), -(1 / tau + math.log1p(2 * empty))
