"""Kernel Language Entropy: the von Neumann entropy of a kernel on the answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_cluster_ids, as_entailment, as_numbers
from snne_guard.checks import check_number
from snne_guard.scorers.cluster_entropy import cluster_masses
from snne_guard.scorers.graph import laplacian_spectrum
from snne_guard.scorers.method import Method
from snne_guard.scorers.nearest_neighbor import softmax_weights
from snne_guard.types import FloatArray

Kernel = Callable[[ArrayLike], FloatArray]
"""Edge weights to an ``(n, n)`` kernel."""

_SMALLEST_ROOT = 1e-12
_SMALLEST_EIGENVALUE = 1e-8
# Further digits of an entropy are rounding, and depend on the order of the answers.
_DIGITS = 12


def edge_weights(entailment: ArrayLike) -> FloatArray:
    """Return the graph on which Kernel Language Entropy is computed.

    Each direction adds 1 if entailment is likeliest, 0.5 if neutral is, and 0 if
    contradiction is.

    ``(n, n)`` symmetric weights in [0, 2], 0 on the diagonal. Source: the code of the
    paper named at ``kle``.

    Example:
        >>> edge_weights([[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]])
        array([[0. , 1.5],
               [1.5, 0. ]])
    """
    one_way = as_entailment(entailment).argmax(axis=2) / 2
    both: FloatArray = one_way + one_way.T
    np.fill_diagonal(both, 0.0)
    return both


def heat_kernel(
    weights: ArrayLike, *, t: float = 0.3, normalised: bool = False
) -> FloatArray:
    r"""Return the heat kernel :math:`\exp(-t L)` of a graph.

    Args:
        weights: ``(n, n)`` edge weights of at least 0, 0 on the diagonal. The mean of
            both directions counts.
        t: How long heat flows, at least 0. LM-Polygraph has the same default.
        normalised: Whether L is :math:`D^{-1/2} (D - W) D^{-1/2}` instead of
            :math:`D - W`.

    Returns:
        ``(n, n)`` symmetric kernel; its trace is not 1.

    Example:
        >>> heat_kernel([[0, 1], [1, 0]], t=0.5).round(3)
        array([[0.684, 0.316],
               [0.316, 0.684]])
    """
    t = check_number(t, what="t", least=0)
    values, basis = laplacian_spectrum(weights, normalised=normalised)
    kernel: FloatArray = (basis * np.exp(-t * values)) @ basis.T
    return kernel


def matern_kernel(
    weights: ArrayLike, *, kappa: float = 1.0, nu: float = 1.0, normalised: bool = False
) -> FloatArray:
    r"""Return the Matern kernel :math:`(2\nu/\kappa^2 I + L)^{-\nu}` of a graph.

    It is scaled by :math:`(2\nu/\kappa^2)^\nu`, which keeps it within the range of a
    float and makes no difference once its trace is 1.

    ``weights``, ``normalised`` and the result are as for ``heat_kernel``; the length
    scale ``kappa`` and the smoothness ``nu`` are above 0.

    Example:
        >>> matern_kernel([[0, 1], [1, 0]]).round(3)
        array([[0.75, 0.25],
               [0.25, 0.75]])
    """
    kappa = check_number(kappa, what="kappa", above=0)
    nu = check_number(nu, what="nu", above=0)
    values, basis = laplacian_spectrum(weights, normalised=normalised)
    scaled = (1 + values * (kappa * kappa / (2 * nu))) ** -nu
    kernel: FloatArray = (basis * scaled) @ basis.T
    return kernel


def cluster_kernel(cluster_ids: ArrayLike, mean_logprobs: ArrayLike) -> FloatArray:
    r"""Return the kernel whose von Neumann entropy is semantic entropy.

    The block of a cluster C is :math:`P(C) / |C|` throughout, where :math:`P(C)` is
    the softmax of the log-probabilities, summed over C.

    Returns:
        ``(n, n)`` symmetric kernel with trace 1.

    Example:
        >>> cluster_kernel([0, 0, 1], [-1.0, -1.0, -1.0]).round(3)
        array([[0.333, 0.333, 0.   ],
               [0.333, 0.333, 0.   ],
               [0.   , 0.   , 0.333]])
    """
    ids = as_cluster_ids(cluster_ids)
    weights = softmax_weights(mean_logprobs, n=len(ids)).tolist()
    masses = cluster_masses(ids, weights)
    block = np.array([masses[cluster] / ids.count(cluster) for cluster in ids])
    clusters = np.array(ids)
    return np.where(clusters[:, None] == clusters, block, 0.0)


def unit_trace(kernel: ArrayLike) -> FloatArray:
    """Return a kernel scaled so that every diagonal entry is 1/n."""
    matrix = as_numbers(kernel, what="kernel", shape=("n", "n"))
    roots = np.maximum(np.sqrt(matrix.diagonal()), _SMALLEST_ROOT)
    unit: FloatArray = matrix / roots[:, None] / roots / len(matrix)
    return unit


def von_neumann_entropy(kernel: ArrayLike) -> float:
    """Return the von Neumann entropy of an ``(n, n)`` kernel with trace 1.

    Returns:
        Minus the sum of ``e ln e`` over the eigenvalues e above 1e-8, in nats: 0 for a
        kernel of rank one, ``ln n`` for the identity over n.

    Example:
        >>> round(von_neumann_entropy([[0.5, 0], [0, 0.5]]), 4)
        0.6931
    """
    matrix = as_numbers(kernel, what="kernel", shape=("n", "n"))
    values = np.linalg.eigvalsh(matrix)
    values = values[values > _SMALLEST_EIGENVALUE]
    total = math.fsum((values * np.log(values)).tolist())
    return round(max(0.0, -total), _DIGITS)


def kle(weights: ArrayLike, *, kernel: Kernel = heat_kernel) -> float:
    """Return the von Neumann entropy of a graph's kernel, scaled to trace 1.

    Args:
        weights: ``(n, n)`` symmetric edge weights between the answers.
        kernel: The graph's kernel: ``heat_kernel`` or, with options,
            ``partial(matern_kernel, nu=2)``.

    A value in [0, ln n] nats, higher is more uncertain; 0 for n = 1. Answers that are
    all alike do not give 0: compare only at equal n. The ``u`` of its method starts at
    their value, so that it is 0 for them at every n. Source: Nikitin, Kossen, Gal,
    Marttinen 2024, "Kernel Language Entropy" (arXiv 2405.20003), K_heat and K_Matern.

    Example:
        >>> round(kle([[0, 2], [2, 0]]), 4)
        0.5412
        >>> round(kle([[0, 2], [2, 0]], kernel=matern_kernel), 4)
        0.5623
    """
    return von_neumann_entropy(unit_trace(kernel(weights)))


def kle_full(
    weights: ArrayLike,
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    alpha: float = 0.5,
    kernel: Kernel = heat_kernel,
) -> float:
    """Return the entropy of a graph's kernel mixed with that of semantic entropy.

    ``weights`` and ``kernel`` are as for ``kle``, the others as for ``cluster_kernel``.
    ``alpha`` is the share of the graph's kernel: 1 is KLE, 0 is semantic entropy.

    A value in [0, ln n] nats, higher is more uncertain. Source: ``full_klu`` of
    github.com/AlexanderVNikitin/kernel-language-entropy.

    Example:
        >>> edges = [[0, 2, 0], [2, 0, 0], [0, 0, 0]]
        >>> round(kle_full(edges, [0, 0, 1], [-0.2, -0.7, -1.5]), 4)
        0.7998
    """
    alpha = check_number(alpha, what="alpha", least=0, most=1)
    of_graph = unit_trace(kernel(weights))
    of_clusters = cluster_kernel(cluster_ids, mean_logprobs)
    return von_neumann_entropy(alpha * of_graph + (1 - alpha) * of_clusters)


# The smallest entropy is that of replies that all entail one another: no graph with
# weights of at most 2 has a larger Laplacian, and so none a kernel nearer to rank one.


@cache
def _all_alike(n: int, kernel: Kernel | None) -> float:
    """Return the KLE of ``n`` replies that are all alike, ``kle_full`` for None."""
    weights = 2.0 * (1.0 - np.eye(n))
    if kernel is None:
        return kle_full(weights, [0] * n, [0.0] * n)
    return kle(weights, kernel=kernel)


_NIKITIN = "Nikitin et al. 2024, Kernel Language Entropy"

_method = partial(Method, arguments=("graph",), default_similarity="nli")
METHODS = (
    _method(
        "kle_heat",
        f"{_NIKITIN}, KLE(K_heat), t = 0.3",
        kle,
        limits=(lambda n: _all_alike(n, heat_kernel), math.log),
    ),
    _method(
        "kle_matern",
        f"{_NIKITIN}, KLE(K_Matern), kappa = 1, nu = 1",
        partial(kle, kernel=matern_kernel),
        limits=(lambda n: _all_alike(n, matern_kernel), math.log),
    ),
    _method(
        "kle_full",
        f"{_NIKITIN}, KLE(K_full), heat t = 0.3, alpha = 0.5",
        kle_full,
        arguments=("graph", "cluster_ids", "mean_logprobs"),
        limits=(lambda n: _all_alike(n, None), math.log),
    ),
)
