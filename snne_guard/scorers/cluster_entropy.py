"""Clusters of equal meaning, and entropies over meanings and over sequences.

``cluster_ids`` are ``(n,)`` whole numbers, the cluster of each answer, and
``mean_logprobs`` the ``(n,)`` mean token log-probabilities, n >= 1. One of ``-inf``
gives weight 0; if all are, the weights are equal.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_cluster_ids, as_equivalence, as_logprobs
from snne_guard.scorers.method import Method
from snne_guard.scorers.nearest_neighbor import softmax_weights
from snne_guard.types import IntArray


def greedy_clusters(equivalent: ArrayLike) -> IntArray:
    """Return ``(n,)`` cluster ids of ``(n, n)`` symmetric booleans, counted from 0.

    In order, each answer without a cluster starts one and takes in every later answer
    that is equivalent to it, even from an earlier cluster. If the relation is not
    transitive, the order of the answers matters.

    Source: the code of Farquhar et al. 2024.

    Example:
        >>> relation = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
        >>> greedy_clusters(relation).tolist()
        [0, 1, 1]
    """
    relation = as_equivalence(equivalent)
    ids = np.full(len(relation), -1, dtype=np.intp)
    count = 0
    for i, row in enumerate(relation):
        if ids[i] < 0:
            ids[i] = count
            ids[i + 1 :][row[i + 1 :]] = count
            count += 1
    return ids


def semantic_entropy(cluster_ids: ArrayLike, mean_logprobs: ArrayLike) -> float:
    r"""Return semantic entropy: clusters weighted by their members' probabilities.

    .. math::
        SE = -\sum_C P(C) \ln P(C), \quad
        P(C) = \sum_{i \in C} \mathrm{softmax}(\ell)_i

    The entropy in nats, from 0 (one cluster) to the log of the number of clusters.
    Source: Farquhar et al. 2024, "Detecting hallucinations in large language models
    using semantic entropy". WSNNE gives it by the theorem of the SNNE paper.

    Example:
        >>> round(semantic_entropy([0, 1], [-0.2024, -1.2176]), 4)
        0.5792
    """
    ids = as_cluster_ids(cluster_ids)
    weights = softmax_weights(mean_logprobs, n=len(ids)).tolist()
    return entropy(cluster_masses(ids, weights).values())


def discrete_semantic_entropy(cluster_ids: ArrayLike) -> float:
    r"""Return the entropy of the clusters' sizes, which needs no log-probabilities.

    .. math:: DSE = -\sum_C \frac{|C|}{n} \ln \frac{|C|}{n}

    The entropy in nats, from 0 (one cluster) to ``ln n`` (n clusters). Source: the
    paper named at ``semantic_entropy``, discrete variant.

    Example:
        >>> round(discrete_semantic_entropy([0, 0, 0, 1]), 4)
        0.5623
    """
    ids = as_cluster_ids(cluster_ids)
    return entropy(size / len(ids) for size in Counter(ids).values())


def naive_entropy(mean_logprobs: ArrayLike) -> float:
    r"""Return the Monte Carlo estimate of the entropy over sequences.

    .. math:: NE = -\frac1n \sum_i \ell_i

    The entropy in nats, at least 0 and unbounded; ``inf`` if a log-probability is
    ``-inf``. Source: Malinin and Gales 2021, "Uncertainty Estimation in Autoregressive
    Structured Prediction" (arXiv 2002.07650), length-normalised.

    Example:
        >>> round(naive_entropy([-0.2024, -1.2176]), 4)
        0.71
    """
    logprobs = as_logprobs(mean_logprobs, what="mean_logprobs").tolist()
    return 0.0 - math.fsum(logprobs) / len(logprobs)


def semantic_set_count(cluster_ids: ArrayLike) -> int:
    """Return the number of meanings (NumSet), 1 to n.

    Source: Lin et al. 2024, "Generating with Confidence", on the clusters of semantic
    entropy as in the code of the SNNE paper.

    Example:
        >>> semantic_set_count([0, 0, 1])
        2
    """
    return len(set(as_cluster_ids(cluster_ids)))


def vote_share(cluster_ids: ArrayLike) -> float:
    """Return the share of answers outside the largest cluster, 0 to ``1 - 1/n``.

    Source: Wang et al. 2023, "Self-Consistency Improves Chain of Thought Reasoning in
    Language Models", the majority's share as a confidence.

    Example:
        >>> vote_share([0, 0, 0, 1])
        0.25
    """
    ids = as_cluster_ids(cluster_ids)
    return (len(ids) - max(Counter(ids).values())) / len(ids)


def cluster_masses(ids: Sequence[int], weights: Sequence[float], /) -> dict[int, float]:
    """Return each cluster's share of the weights, which need not add up to 1."""
    members: defaultdict[int, list[float]] = defaultdict(list)
    for cluster, weight in zip(ids, weights, strict=True):
        members[cluster].append(weight)
    # Exact sums, so that sets which differ only in their order tie.
    total = math.fsum(weights)
    return {cluster: math.fsum(parts) / total for cluster, parts in members.items()}


def entropy(shares: Iterable[float], /) -> float:
    """Return the Shannon entropy in nats of shares that add up to 1."""
    terms = [share * math.log(share) for share in shares if share > 0]
    return max(0.0, -math.fsum(terms))


_FARQUHAR = "Farquhar et al. 2024, Detecting hallucinations using semantic entropy"
_LIN = "Lin et al. 2024, Generating with Confidence"
_WANG = "Wang et al. 2023, Self-Consistency"
_MALININ = "Malinin and Gales 2021, arXiv 2002.07650, length-normalised"

_clusters = partial(Method, arguments=("cluster_ids",), default_similarity="nli")
_DSE = _clusters(
    "dse",
    f"{_FARQUHAR}, discrete SE",
    discrete_semantic_entropy,
    limits=(0.0, math.log),
)

METHODS = (
    Method(
        "se",
        f"{_FARQUHAR}, SE",
        semantic_entropy,
        ("cluster_ids", "mean_logprobs"),
        limits=(0.0, math.log),
        default_similarity="nli",
        without_logprobs=_DSE,
    ),
    _DSE,
    Method("ne", _MALININ, naive_entropy, ("mean_logprobs",)),
    _clusters("num_set", f"{_LIN}, NumSet", semantic_set_count, limits=(1.0, float)),
    _clusters(
        "vote_share",
        f"{_WANG}, share of the majority",
        vote_share,
        limits=(0.0, lambda n: (n - 1) / n),
        default_similarity="exact",
    ),
)
