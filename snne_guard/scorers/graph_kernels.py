"""Kernels on a graph of answers, and the entropy of a kernel."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.arrays import as_graph, as_matrix, check_at_least
from snne_guard.scorers.clusters import as_cluster_ids, cluster_members
from snne_guard.scorers.rows import softmax_weights
from snne_guard.scorers.small import min_of, square_of
from snne_guard.types import FloatArray, IntArray

__all__ = [
    "cluster_kernel",
    "cluster_shares",
    "entropy_of",
    "heat_kernel",
    "matern_kernel",
    "normalised_kernel",
    "von_neumann_entropy",
    "with_unit_trace",
]

_SMALLEST_ROOT = 1e-12
_SMALLEST = 1e-8
_TRACE_SLACK = 1e-6
# Beyond these digits an entropy is rounding, and depends on the order of the answers.
_DIGITS = 12
# Larger graphs are decomposed anew, so that what is kept stays small.
_KEPT_SIZE = 64


def heat_kernel(
    weights: ArrayLike, *, t: float = 0.3, normalised: bool = False
) -> FloatArray:
    r"""Return the heat kernel :math:`\exp(-t L)` of a graph.

    Args:
        weights: ``(n, n)`` symmetric edge weights of at least 0; the diagonal is not
            looked at.
        t: How long heat flows, at least 0. The identity for 0, everything alike for
            infinity.
        normalised: Whether L is :math:`D^{-1/2} (D - W) D^{-1/2}` and not
            :math:`D - W`.

    Returns:
        ``(n, n)`` symmetric kernel, not normalised.

    Raises:
        InputError: The weights are no graph.
        ConfigurationError: t is below 0 or not finite.

    Example:
        >>> heat_kernel([[0, 1], [1, 0]], t=0.5).round(3)
        array([[0.684, 0.316],
               [0.316, 0.684]])
    """
    check_at_least(t, 0, what="t")
    values, basis = _spectrum(weights, normalised=normalised)
    return _kernel(np.exp(-t * values), basis)


def matern_kernel(
    weights: ArrayLike,
    *,
    kappa: float = 1.0,
    nu: float = 1.0,
    normalised: bool = False,
) -> FloatArray:
    r"""Return the Matern kernel :math:`(2\nu/\kappa^2 I + L)^{-\nu}` of a graph.

    It is scaled by :math:`(2\nu/\kappa^2)^\nu`, which no normalised kernel shows and
    which keeps it within the range of a float.

    Args:
        weights: ``(n, n)`` edge weights as for ``heat_kernel``.
        kappa: Length scale, above 0.
        nu: Smoothness, above 0.
        normalised: Which Laplacian, as for ``heat_kernel``.

    Returns:
        ``(n, n)`` symmetric kernel, not normalised.

    Raises:
        InputError: The weights are no graph.
        ConfigurationError: kappa or nu is not a finite number above 0.

    Example:
        >>> matern_kernel([[0, 1], [1, 0]]).round(3)
        array([[0.75, 0.25],
               [0.25, 0.75]])
    """
    check_at_least(kappa, 0, what="kappa", above=True)
    check_at_least(nu, 0, what="nu", above=True)
    values, basis = _spectrum(weights, normalised=normalised)
    return _kernel((1 + values * (kappa * kappa / (2 * nu))) ** -nu, basis)


def cluster_kernel(cluster_ids: ArrayLike, mean_logprobs: ArrayLike) -> FloatArray:
    r"""Return the kernel of semantic entropy, of which that is the von Neumann entropy.

    The block of a cluster C is :math:`\bar P(C) / |C|` throughout, with
    :math:`\bar P(C)` the softmax of the log-probabilities added up over C.

    Args:
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.

    Returns:
        ``(n, n)`` symmetric kernel with trace 1.

    Raises:
        InputError: The two are not of the same length, or a log-probability is NaN or
            ``+inf``.

    Example:
        >>> cluster_kernel([0, 0, 1], [-1.0, -1.0, -1.0]).round(3)
        array([[0.333, 0.333, 0.   ],
               [0.333, 0.333, 0.   ],
               [0.   , 0.   , 0.333]])
    """
    ids = as_cluster_ids(cluster_ids)
    weights = softmax_weights(mean_logprobs, n=len(ids)).tolist()
    total = math.fsum(weights)
    shares = {
        one: math.fsum(members) / (total * len(members))
        for one, members in cluster_members(ids, weights).items()
    }
    block = [shares[one] for one in ids]
    places = np.array(ids)
    return np.where(places[:, None] == places, np.array(block), 0.0)


def normalised_kernel(kernel: ArrayLike) -> FloatArray:
    """Return the kernel with every diagonal entry 1/n, so that its trace is 1.

    Raises:
        InputError: It is no square matrix of finite numbers, or its diagonal goes
            below 0.
    """
    matrix = as_matrix(kernel, what="kernel")
    least = min_of(matrix.diagonal())
    if least < 0:
        msg = f"expected a kernel with a diagonal of at least 0, got {least}"
        raise InputError(msg)
    return with_unit_trace(matrix)


def von_neumann_entropy(kernel: ArrayLike, *, scaled: bool = False) -> float:
    """Return the von Neumann entropy of a kernel with trace 1.

    Args:
        kernel: ``(n, n)``, symmetric and positive semi-definite.
        scaled: Whether it is divided by ln n, so that it lies in [0, 1].

    Returns:
        Minus the sum of ``e ln e`` over the eigenvalues e that are above 1e-8, in
        nats: 0 for a kernel of rank one, ln n for the identity over n.

    Raises:
        InputError: The kernel is no square matrix of finite numbers with trace 1.

    Example:
        >>> round(von_neumann_entropy([[0.5, 0], [0, 0.5]]), 4)
        0.6931
        >>> von_neumann_entropy([[0.5, 0], [0, 0.5]], scaled=True)
        1.0
    """
    matrix = as_matrix(kernel, what="kernel")
    trace = float(np.trace(matrix))
    if not abs(trace - 1) <= _TRACE_SLACK:
        msg = f"expected a kernel with trace 1, got trace {trace}"
        raise InputError(msg)
    entropy, n = entropy_of(matrix), len(matrix)
    return round(entropy / math.log(n), _DIGITS) if scaled and n > 1 else entropy


def with_unit_trace(kernel: FloatArray) -> FloatArray:
    """Return what ``normalised_kernel`` returns of a kernel that is known to be one."""
    # The authors add the smallest one, by which no entropy would be 0 nor ln n.
    roots = np.maximum(np.sqrt(kernel.diagonal()), _SMALLEST_ROOT)
    unit: FloatArray = kernel / roots[:, None]
    unit /= roots * len(kernel)
    return unit


def entropy_of(kernel: FloatArray) -> float:
    """Return ``von_neumann_entropy`` of a kernel that is known to be one."""
    values: list[float] = np.linalg.eigvalsh(kernel).tolist()
    terms = [value * math.log(value) for value in values if value > _SMALLEST]
    total = math.fsum(terms)
    return round(max(0.0, -total), _DIGITS)


def cluster_shares(places: IntArray, mean_logprobs: ArrayLike) -> FloatArray:
    """Return the ``(M,)`` share of the probability that each cluster has.

    Args:
        places: ``(n,)`` cluster of each answer, 0 ... M-1 without a gap.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.

    Raises:
        InputError: The two are not of the same length, or a log-probability is NaN or
            ``+inf``.
    """
    weights = softmax_weights(mean_logprobs, n=len(places)).tolist()
    members, total = cluster_members(places.tolist(), weights), math.fsum(weights)
    shares = [math.fsum(members[place]) / total for place in range(len(members))]
    return np.array(shares)


def _kernel(values: FloatArray, basis: FloatArray) -> FloatArray:
    """Return the matrix with these eigenvalues and eigenvectors."""
    kernel: FloatArray = (basis * values).dot(basis.T)
    return kernel


def _spectrum(weights: ArrayLike, *, normalised: bool) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, none below 0, and eigenvectors of a graph's Laplacian.

    The last few small graphs are remembered, since several methods ask for the same.
    """
    matrix = np.asarray(weights)
    n = len(matrix) if matrix.ndim else 0
    if matrix.dtype != np.float64 or matrix.shape != (n, n) or not n:
        matrix = as_matrix(weights, what="weights")
    decompose = _remembered if n <= _KEPT_SIZE else _decomposed
    return decompose(n, matrix.tobytes(), normalised)


def _decomposed(n: int, data: bytes, normalised: bool) -> tuple[FloatArray, FloatArray]:  # noqa: FBT001 - a key
    laplacian = as_graph(square_of(n, data))
    degrees = laplacian.sum(axis=1)
    np.negative(laplacian, out=laplacian)
    laplacian.flat[:: n + 1] = degrees
    if normalised:
        # Nodes without edges keep a row of zeros.
        scale = np.zeros_like(degrees)
        np.divide(1, np.sqrt(degrees), out=scale, where=degrees > 0)
        # One side after the other: the product of two scales may overflow.
        laplacian = laplacian * scale[:, None] * scale
    values, basis = np.linalg.eigh(laplacian)
    np.maximum(values, 0.0, out=values)
    values.setflags(write=False)
    basis.setflags(write=False)
    return values, basis


_remembered = lru_cache(maxsize=8)(_decomposed)
