"""Kernel Language Entropy: the von Neumann entropy of a kernel on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.checks import as_cluster_ids, check_share
from snne_guard.scorers.clusters import cluster_masses
from snne_guard.scorers.kernels import (
    as_graph,
    cluster_kernel,
    heat_kernel,
    matern_kernel,
    unit_trace,
    von_neumann_entropy,
)
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.scorers.snne import softmax_weights
from snne_guard.types import FloatArray

__all__ = [
    "KLE_FULL",
    "KLE_HEAT",
    "KLE_MATERN",
    "KLE_SEMANTIC",
    "kle_full",
    "kle_heat",
    "kle_matern",
    "kle_semantic",
]

Kernel = Callable[[ArrayLike], FloatArray]


def kle_heat(weights: ArrayLike, *, t: float = 0.3, normalised: bool = False) -> float:
    """Return the entropy of the normalised heat kernel.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        t: How long heat flows; 0.3 in LM-Polygraph and TruthTorchLM.
        normalised: Whether the Laplacian is the normalised one.

    Returns:
        A value in [0, ln n] nats, higher is more uncertain; 0 for n = 1. Answers that
        are all alike do not give 0: compare only at equal n.

    Raises:
        InputError: The weights are not a graph.
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
    return von_neumann_entropy(
        unit_trace(heat_kernel(weights, t=t, normalised=normalised))
    )


def kle_matern(
    weights: ArrayLike, *, kappa: float = 1.0, nu: float = 1.0, normalised: bool = False
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
        InputError: The weights are not a graph.
        ConfigurationError: kappa or nu is not a finite number above 0.

    Source:
        The paper named at ``kle_heat``, K_Matern.

    Example:
        >>> round(kle_matern([[0, 2], [2, 0]]), 4)
        0.5623
    """
    kernel = matern_kernel(weights, kappa=kappa, nu=nu, normalised=normalised)
    return von_neumann_entropy(unit_trace(kernel))


def kle_full(
    weights: ArrayLike,
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Kernel = heat_kernel,
) -> float:
    """Return the entropy of a graph's kernel mixed with that of semantic entropy.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        alpha: Share of the graph's kernel: 1 is KLE, 0 is semantic entropy.
        kernel: The graph's kernel, such as ``partial(matern_kernel, nu=2)``.

    Returns:
        A value in [0, ln n] nats, higher is more uncertain.

    Raises:
        InputError: The weights are not a graph, the lengths differ, or a number is no
            log-probability.
        ConfigurationError: alpha is outside [0, 1].

    Source:
        The authors' repository, ``full_klu``:
        https://github.com/AlexanderVNikitin/kernel-language-entropy

    Example:
        >>> edges = [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
        >>> round(kle_full(edges, [0, 0, 1], [-0.2, -0.7, -1.5]), 4)
        0.7998
    """
    check_share(alpha, what="alpha")
    of_graph = unit_trace(kernel(weights))
    of_clusters = cluster_kernel(cluster_ids, mean_logprobs)
    if len(of_clusters) != len(of_graph):
        msg = f"expected {len(of_graph)} cluster ids, got {len(of_clusters)}"
        raise InputError(msg)
    return von_neumann_entropy(alpha * of_graph + (1 - alpha) * of_clusters)


def kle_semantic(
    weights: ArrayLike,
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Kernel = heat_kernel,
) -> float:
    """Return KLE-c: the entropy of a kernel on the clusters instead of the answers.

    An edge between two clusters weighs as much as all edges between their answers.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        cluster_ids: ``(n,)`` semantic cluster of each answer.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        alpha: Share of the graph's kernel; the other kernel has the probability of
            each cluster on its diagonal.
        kernel: The graph's kernel on the clusters.

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
    check_share(alpha, what="alpha")
    graph = as_graph(weights)
    ids = as_cluster_ids(cluster_ids, n=len(graph))
    names = sorted(set(ids))
    member = np.array(ids)[:, None] == names
    between_clusters = member.T @ graph @ member
    likely = softmax_weights(mean_logprobs, n=len(ids)).tolist()
    masses = cluster_masses(ids, likely)
    mixed = alpha * unit_trace(kernel(between_clusters))
    mixed += (1 - alpha) * np.diag([masses[name] for name in names])
    return von_neumann_entropy(mixed)


_NIKITIN = "Nikitin et al. 2024, Kernel Language Entropy"

KLE_HEAT = FunctionMethod(
    name="kle_heat",
    source=f"{_NIKITIN}, KLE(K_heat), t = 0.3",
    function=kle_heat,
    limits=between(0.0, math.log),
    arguments=("graph",),
    default_similarity="nli",
)

KLE_MATERN = FunctionMethod(
    name="kle_matern",
    source=f"{_NIKITIN}, KLE(K_Matern), kappa = 1, nu = 1",
    function=kle_matern,
    limits=between(0.0, math.log),
    arguments=("graph",),
    default_similarity="nli",
)

KLE_FULL = FunctionMethod(
    name="kle_full",
    source=f"{_NIKITIN}, KLE(K_full), heat t = 0.3, alpha = 0.5",
    function=kle_full,
    limits=between(0.0, math.log),
    arguments=("graph", "cluster_ids", "mean_logprobs"),
    default_similarity="nli",
    white_box=True,
)

KLE_SEMANTIC = FunctionMethod(
    name="kle_semantic",
    source=f"{_NIKITIN}, KLE-c, heat t = 0.3, alpha = 0.5",
    function=kle_semantic,
    limits=between(0.0, math.log),
    arguments=("graph", "cluster_ids", "mean_logprobs"),
    default_similarity="nli",
    white_box=True,
)
