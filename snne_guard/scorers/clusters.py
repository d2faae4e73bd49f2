"""Which answers mean the same: pairs of equal meaning to clusters."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.types import BoolArray, IntArray

__all__ = ["as_equivalence", "cluster_masses", "greedy_clusters"]


def greedy_clusters(equivalent: ArrayLike) -> IntArray:
    """Return clusters as the authors of semantic entropy form them.

    In order, each answer without a cluster founds one and takes in every later answer
    that is equivalent to it, even one of an earlier cluster. If the relation is not
    transitive, the order of the answers matters.

    Args:
        equivalent: ``(n, n)`` booleans, n >= 1, symmetric.

    Returns:
        ``(n,)`` cluster ids 0, 1, ... in the order of founding.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy", the authors' code.

    Example:
        >>> relation = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1]], dtype=bool)
        >>> greedy_clusters(relation).tolist()
        [0, 1, 1]
    """
    relation = as_equivalence(equivalent)
    ids = np.full(len(relation), -1, dtype=np.intp)
    founded = 0
    for i, row in enumerate(relation):
        if ids[i] < 0:
            ids[i] = founded
            ids[i + 1 :][row[i + 1 :]] = founded
            founded += 1
    return ids


def as_equivalence(values: ArrayLike, /, *, n: int | None = None) -> BoolArray:
    """Return an ``(n, n)`` symmetric matrix of booleans, or say what is wrong."""
    relation = np.asarray(values)
    n = len(np.atleast_1d(relation)) if n is None else n
    if not n or relation.shape != (n, n) or relation.dtype != np.bool_:
        msg = (
            f"expected {(n, n)} booleans of which texts mean the same, "
            f"got {relation.dtype} of shape {relation.shape}"
        )
        raise InputError(msg)
    if (relation != relation.T).any():
        i, j = np.argwhere(relation != relation.T)[0].tolist()
        msg = f"expected a symmetric relation, but ({i}, {j}) is not ({j}, {i})"
        raise InputError(msg)
    return relation


def cluster_masses(ids: Sequence[int], weights: Sequence[float], /) -> dict[int, float]:
    """Return each cluster's share of the weights, which need not add up to 1.

    Example:
        >>> cluster_masses([0, 1, 0], [1.0, 1.0, 2.0])
        {0: 0.75, 1: 0.25}
    """
    members: defaultdict[int, list[float]] = defaultdict(list)
    for one, weight in zip(ids, weights, strict=True):
        members[one].append(weight)
    # Exact sums, so that sets which differ only in their order tie.
    total = math.fsum(weights)
    return {one: math.fsum(found) / total for one, found in members.items()}
