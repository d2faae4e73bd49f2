"""Clusters, and the entropies and counts that look at them."""

import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers.cluster_entropy import (
    discrete_semantic_entropy,
    greedy_clusters,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
    vote_share,
)
from tests.scorers.support import logprob_lists

partitions = st.lists(st.integers(0, 4), min_size=1, max_size=10)


def slow_entropy(partition: list[int], weights: list[float]) -> float:
    masses: defaultdict[int, float] = defaultdict(float)
    for cluster, weight in zip(partition, weights, strict=True):
        masses[cluster] += weight / sum(weights)
    return -sum(mass * math.log(mass) for mass in masses.values())


@given(partitions, st.data())
def test_entropies_are_their_formulas(
    partition: list[int], data: st.DataObject
) -> None:
    logprobs = data.draw(logprob_lists(len(partition)))
    likely = [math.exp(one) for one in logprobs]
    got = semantic_entropy(partition, logprobs)
    assert got == pytest.approx(slow_entropy(partition, likely), abs=1e-9)
    got = discrete_semantic_entropy(partition)
    expected = slow_entropy(partition, [1.0] * len(partition))
    assert got == pytest.approx(expected, abs=1e-9)
    assert semantic_set_count(partition) == len(set(partition))
    assert naive_entropy(logprobs) == pytest.approx(-np.mean(logprobs))
    largest = max(partition.count(one) for one in partition)
    assert vote_share(partition) == pytest.approx(1 - largest / len(partition))


def test_no_entropy_is_below_0() -> None:
    assert math.copysign(1, discrete_semantic_entropy([5])) == 1
    assert naive_entropy([-1.0, -math.inf]) == math.inf


def test_semantic_entropy_of_log_probabilities_that_underflow() -> None:
    near = semantic_entropy([0, 0, 1], [-0.5, -1.0, -2.0])
    far = semantic_entropy([0, 0, 1], [-2000.5, -2001.0, -2002.0])
    assert far == pytest.approx(near, abs=1e-9)
    assert semantic_entropy([0, 1], [0.0, -math.inf]) == 0
    assert semantic_entropy([0, 1], [-math.inf] * 2) == pytest.approx(math.log(2))


@given(st.integers(1, 7), st.data())
def test_clusters_are_formed_in_order(n: int, data: st.DataObject) -> None:
    cells = data.draw(st.lists(st.booleans(), min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(cells).reshape(n, n), 1)
    relation = upper | upper.T | np.eye(n, dtype=bool)
    slow = [-1] * n
    founded = 0
    for i in range(n):
        if slow[i] == -1:
            slow[i] = founded
            for j in range(i + 1, n):
                if relation[i, j]:
                    slow[j] = founded
            founded += 1
    assert greedy_clusters(relation).tolist() == slow
