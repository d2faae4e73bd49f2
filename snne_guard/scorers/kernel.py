"""Kernel Language Entropy: the von Neumann entropy of a kernel on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.errors import InputError
from snne_guard.scorers.arrays import (
    as_graph,
    as_ids,
    as_square,
    check_at_least,
    check_unit,
)
from snne_guard.scorers.rows import softmax_weights
from snne_guard.types import FloatArray

__all__ = [
    "cluster_kernel",
    "heat_kernel",
    "kle_full",
    "kle_heat",
    "kle_matern",
    "kle_semantic",
    "matern_kernel",
    "normalised_kernel",
    "von_neumann_entropy",
]

Kernel = Callable[[ArrayLike], FloatArray]
"""Edge weights ``(n, n)`` to a kernel ``(n, n)``."""

_EPS = 1e-12
_SMALLEST = 1e-8


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
    return (basis * np.exp(-t * values)) @ basis.T


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
    return (basis * (1 + values * (kappa * kappa / (2 * nu))) ** -nu) @ basis.T


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
    ids = as_ids(cluster_ids, n=np.size(cluster_ids))
    shares = _cluster_shares(ids, mean_logprobs)
    block: FloatArray = (shares / np.bincount(ids))[ids]
    return np.where(ids[:, None] == ids, block, 0.0)


def normalised_kernel(kernel: ArrayLike) -> FloatArray:
    """Return the kernel with every diagonal entry 1/n, so that its trace is 1.

    Raises:
        InputError: It is no square matrix of finite numbers, or its diagonal goes
            below 0.
    """
    matrix = as_square(kernel, what="kernel")
    least = float(np.diagonal(matrix).min())
    if least < 0:
        msg = f"expected a kernel with a diagonal of at least 0, got {least}"
        raise InputError(msg)
    return _normalised(matrix)


def von_neumann_entropy(kernel: ArrayLike, *, scaled: bool = False) -> float:
    """Return the von Neumann entropy of a kernel with trace 1.

    Args:
        kernel: ``(n, n)``, symmetric and positive semi-definite.
        scaled: Whether it is divided by ln n, so that it lies in [0, 1].

    Returns:
        Minus the sum of ``e ln e`` over the eigenvalues e that are above 1e-8, in
        nats: 0 for a kernel of rank one, ln n for the identity over n.

    Raises:
        InputError: The kernel is no square matrix of finite numbers.

    Example:
        >>> round(von_neumann_entropy([[0.5, 0], [0, 0.5]]), 4)
        0.6931
        >>> von_neumann_entropy([[0.5, 0], [0, 0.5]], scaled=True)
        1.0
    """
    matrix = as_square(kernel, what="kernel")
    entropy = _entropy(matrix)
    return entropy / math.log(len(matrix)) if scaled and len(matrix) > 1 else entropy


def kle_heat(weights: ArrayLike, *, t: float = 0.3, normalised: bool = False) -> float:
    """Return the entropy of the normalised heat kernel.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        t: How long heat flows; 0.3 in LM-Polygraph and in TruthTorchLM.
        normalised: Whether the Laplacian is the normalised one.

    Returns:
        A value in [0, ln n] nats, higher is more uncertain; 0 for n = 1. Answers that
        are all alike do not have 0: compare at equal n only.

    Raises:
        InputError: The weights are no graph.
        ConfigurationError: t is below 0 or not finite.

    Source:
        Nikitin, Kossen, Gal, Marttinen 2024, "Kernel Language Entropy", section 3.

    Example:
        >>> round(kle_heat([[0, 2], [2, 0]]), 4)
        0.5412
        >>> round(kle_heat([[0, 0], [0, 0]]), 4)
        0.6931
    """
    kernel = heat_kernel(weights, t=t, normalised=normalised)
    return _entropy(_normalised(kernel))


def kle_matern(
    weights: ArrayLike,
    *,
    kappa: float = 1.0,
    nu: float = 1.0,
    normalised: bool = False,
) -> float:
    """Return the entropy of the normalised Matern kernel.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        kappa: Length scale, above 0.
        nu: Smoothness, above 0.
        normalised: Whether the Laplacian is the normalised one.

    Returns:
        A value in [0, ln n] nats, as for ``kle_heat``.

    Raises:
        InputError: The weights are no graph.
        ConfigurationError: kappa or nu is not a finite number above 0.

    Source:
        As for ``kle_heat``.

    Example:
        >>> round(kle_matern([[0, 2], [2, 0]]), 4)
        0.5623
    """
    kernel = matern_kernel(weights, kappa=kappa, nu=nu, normalised=normalised)
    return _entropy(_normalised(kernel))


def kle_full(
    weights: ArrayLike,
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Kernel = heat_kernel,
    drop_weights: bool = False,
) -> float:
    """Return the entropy of a graph's kernel mixed with that of semantic entropy.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        alpha: Share of the graph's kernel: 1 is KLE, 0 is semantic entropy.
        kernel: The graph's kernel, such as ``partial(matern_kernel, nu=2)``.
        drop_weights: Whether each edge counts as 1, as in the authors' code, which
            loses the weights where it puts the nodes in order.

    Returns:
        A value in [0, ln n] nats, higher is more uncertain.

    Raises:
        InputError: The weights are no graph, the lengths differ, or a log-probability
            is NaN or ``+inf``.
        ConfigurationError: alpha is outside [0, 1].

    Source:
        The authors' repository, ``full_klu``:
        https://github.com/AlexanderVNikitin/kernel-language-entropy

    Example:
        >>> edges = [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
        >>> round(kle_full(edges, [0, 0, 1], [-0.2, -0.7, -1.5]), 4)
        0.7998
    """
    check_unit(alpha, what="alpha")
    graph = as_graph(weights)
    if drop_weights:
        graph = (graph > 0).astype(np.float64)
    ids = as_ids(cluster_ids, n=len(graph))
    mixed = alpha * _normalised(kernel(graph))
    mixed += (1 - alpha) * cluster_kernel(ids, mean_logprobs)
    return _entropy(mixed)


def kle_semantic(
    weights: ArrayLike,
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Kernel = heat_kernel,
    overwrite: bool = False,
) -> float:
    """Return KLE-c, the entropy of a kernel on the clusters and not on the answers.

    An edge between two clusters weighs as much as all edges between their answers.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        alpha: Share of the graph's kernel; the other one has the clusters' shares of
            the probability on its diagonal.
        kernel: The graph's kernel on the clusters.
        overwrite: Whether edges from a later cluster to an earlier one and edges the
            other way are added up apart and only the kind that was met last counts,
            as in the authors' code.

    Returns:
        A value in [0, ln M] nats for M clusters, higher is more uncertain.

    Raises:
        InputError: As for ``kle_full``.
        ConfigurationError: alpha is outside [0, 1].

    Source:
        The repository named at ``kle_full``, ``semantic_kernel``.

    Example:
        >>> edges = [[0, 2, 1], [2, 0, 0], [1, 0, 0]]
        >>> round(kle_semantic(edges, [0, 0, 1], [-0.2, -0.7, -1.5]), 4)
        0.6176
    """
    check_unit(alpha, what="alpha")
    graph = as_graph(weights)
    ids = as_ids(cluster_ids, n=len(graph))
    between = _between_overwritten(graph, ids) if overwrite else _between(graph, ids)
    mixed = alpha * _normalised(kernel(between))
    mixed += (1 - alpha) * np.diag(_cluster_shares(ids, mean_logprobs))
    return _entropy(mixed)


def _normalised(kernel: FloatArray) -> FloatArray:
    scale = np.sqrt(np.diagonal(kernel)) + _EPS
    return kernel / np.multiply.outer(scale, scale) / len(kernel)


def _entropy(kernel: FloatArray) -> float:
    values = np.linalg.eigvalsh(kernel)
    values = values[values > _SMALLEST]
    return max(0.0, -float(values @ np.log(values)))


def _spectrum(weights: ArrayLike, *, normalised: bool) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, none below 0, and eigenvectors of a graph's Laplacian."""
    graph = as_graph(weights)
    degrees = graph.sum(axis=1)
    laplacian = np.diag(degrees) - graph
    if normalised:
        # Nodes without edges keep a row of zeros.
        scale = np.zeros_like(degrees)
        np.divide(1, np.sqrt(degrees), out=scale, where=degrees > 0)
        # One side after the other: the product of two scales may overflow.
        laplacian = laplacian * scale[:, None] * scale
    values, basis = np.linalg.eigh(laplacian)
    return np.maximum(values, 0.0), basis


def _cluster_shares(ids: NDArray[np.intp], mean_logprobs: ArrayLike) -> FloatArray:
    """Return the ``(M,)`` share of the probability that each cluster has."""
    weights = softmax_weights(mean_logprobs, n=len(ids))
    shares: FloatArray = np.bincount(ids, weights) / weights.sum()
    return shares


def _between(graph: FloatArray, ids: NDArray[np.intp]) -> FloatArray:
    """Return the ``(M, M)`` sums of the edges between clusters."""
    member = np.eye(ids.max() + 1)[ids]
    sums: FloatArray = member.T @ graph @ member
    return sums


def _between_overwritten(graph: FloatArray, ids: NDArray[np.intp]) -> FloatArray:
    sums: dict[tuple[int, int], float] = {}
    for i, j in zip(*np.triu_indices(len(ids), 1), strict=True):
        key = int(ids[i]), int(ids[j])
        sums[key] = sums.get(key, 0.0) + float(graph[i, j])
    between = np.zeros((ids.max() + 1, ids.max() + 1))
    for (one, other), weight in sums.items():
        between[one, other] = between[other, one] = weight
    return between
