"""Kernel Language Entropy: the von Neumann entropy of a kernel on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.arrays import as_graph, as_places, check_unit, given
from snne_guard.scorers.graph_kernels import (
    cluster_kernel,
    cluster_shares,
    entropy_of,
    heat_kernel,
    matern_kernel,
    normalised_kernel,
    with_unit_trace,
)
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.types import FloatArray, IntArray, MethodInputs

__all__ = [
    "KLE_FULL",
    "KLE_HEAT",
    "KLE_MATERN",
    "Kernel",
    "kle_full",
    "kle_heat",
    "kle_matern",
    "kle_semantic",
]

Kernel = Callable[[ArrayLike], FloatArray]
"""Edge weights ``(n, n)`` to a kernel ``(n, n)``, such as ``heat_kernel``."""


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
        Nikitin, Kossen, Gal, Marttinen 2024, "Kernel Language Entropy" (arXiv
        2405.20003), K_heat.

    Example:
        >>> round(kle_heat([[0, 2], [2, 0]]), 4)
        0.5412
        >>> round(kle_heat([[0, 0], [0, 0]]), 4)
        0.6931
    """
    kernel = heat_kernel(weights, t=t, normalised=normalised)
    return entropy_of(with_unit_trace(kernel))


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
    return entropy_of(with_unit_trace(kernel))


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
    if drop_weights:
        weights = (as_graph(weights) > 0).astype(np.float64)
    of_graph = normalised_kernel(kernel(weights))
    of_clusters = cluster_kernel(cluster_ids, mean_logprobs)
    if len(of_clusters) != len(of_graph):
        msg = f"expected {len(of_graph)} cluster ids, got {len(of_clusters)}"
        raise InputError(msg)
    return entropy_of(alpha * of_graph + (1 - alpha) * of_clusters)


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
    ids = as_places(cluster_ids, n=len(graph))
    between = _between_overwritten(graph, ids) if overwrite else _between(graph, ids)
    mixed = alpha * normalised_kernel(kernel(between))
    mixed += (1 - alpha) * np.diag(cluster_shares(ids, mean_logprobs))
    return entropy_of(mixed)


def _between(graph: FloatArray, ids: IntArray) -> FloatArray:
    """Return the ``(M, M)`` sums of the edges between clusters."""
    member = np.eye(ids.max() + 1)[ids]
    sums: FloatArray = member.T @ graph @ member
    return sums


def _between_overwritten(graph: FloatArray, ids: IntArray) -> FloatArray:
    sums: dict[tuple[int, int], float] = {}
    for i, j in zip(*np.triu_indices(len(ids), 1), strict=True):
        key = int(ids[i]), int(ids[j])
        sums[key] = sums.get(key, 0.0) + float(graph[i, j])
    between = np.zeros((ids.max() + 1, ids.max() + 1))
    for (one, other), weight in sums.items():
        between[one, other] = between[other, one] = weight
    return between


def _kle_heat(inputs: MethodInputs) -> float:
    return kle_heat(given(inputs.graph))


def _kle_matern(inputs: MethodInputs) -> float:
    return kle_matern(given(inputs.graph))


def _kle_full(inputs: MethodInputs) -> float:
    return kle_full(
        given(inputs.graph), given(inputs.cluster_ids), given(inputs.mean_logprobs)
    )


_NIKITIN = "Nikitin et al. 2024, Kernel Language Entropy"

KLE_HEAT = FunctionMethod(
    name="kle_heat",
    source=f"{_NIKITIN}, KLE(K_heat), t = 0.3",
    function=_kle_heat,
    limits=Between(0.0, math.log),
    needs=frozenset({"graph"}),
    default_similarity="nli",
)
"""KLE with the heat kernel, t = 0.3."""

KLE_MATERN = FunctionMethod(
    name="kle_matern",
    source=f"{_NIKITIN}, KLE(K_Matern), kappa = 1, nu = 1",
    function=_kle_matern,
    limits=Between(0.0, math.log),
    needs=frozenset({"graph"}),
    default_similarity="nli",
)
"""KLE with the Matern kernel, kappa = 1 and nu = 1."""

KLE_FULL = FunctionMethod(
    name="kle_full",
    source=f"{_NIKITIN}, KLE(K_full), heat t = 0.3, alpha = 0.5",
    function=_kle_full,
    limits=Between(0.0, math.log),
    needs=frozenset({"graph", "cluster_ids", "mean_logprobs"}),
    default_similarity="nli",
    white_box=True,
)
"""KLE of the heat kernel and semantic entropy's, half and half, the weights kept."""
