"""Kernel Language Entropy: the von Neumann entropy of a kernel on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable

from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.checks import check_share
from snne_guard.scorers.kernels import (
    cluster_kernel,
    heat_kernel,
    matern_kernel,
    unit_trace,
    von_neumann_entropy,
)
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.types import FloatArray

__all__ = [
    "KLE_FULL",
    "KLE_HEAT",
    "KLE_MATERN",
    "kle_full",
    "kle_heat",
    "kle_matern",
]

Kernel = Callable[[ArrayLike], FloatArray]


def kle_heat(weights: ArrayLike, *, t: float = 0.3, normalised: bool = False) -> float:
    """Return the von Neumann entropy of the normalised heat kernel.

    The arguments are those of ``heat_kernel``; LM-Polygraph and TruthTorchLM have the
    same default for t.

    Returns:
        A value in [0, ln n] nats, higher is more uncertain; 0 for n = 1. Answers that
        are all alike do not give 0: compare only at equal n.

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
    """Return the von Neumann entropy of the normalised Matern kernel.

    The arguments are those of ``matern_kernel``.

    Returns:
        A value in [0, ln n] nats, as for ``kle_heat``.

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
)
