"""The paper's two theorems: DSE and SE are SNNE and WSNNE of special similarities."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers import (
    degree,
    discrete_semantic_entropy,
    lexical_similarity,
    semantic_entropy,
    snne,
    wsnne,
)
from snne_guard.types import FloatArray
from tests.support.graphs import similarities

partitions = st.lists(st.integers(0, 4), min_size=1, max_size=10)
taus = st.sampled_from([0.01, 0.1, 1.0, 10.0])


def clustered_entropy(partition: Sequence[int], weights: Sequence[float]) -> float:
    shares: defaultdict[int, float] = defaultdict(float)
    for cluster, weight in zip(partition, weights, strict=True):
        shares[cluster] += weight / sum(weights)
    return -sum(share * math.log(share) for share in shares.values())


def cluster_matrix(
    partition: Sequence[int], weights: Sequence[float], tau: float
) -> list[list[float]]:
    """f_ij = tau log(share of j) within a cluster, -inf between two."""
    total = sum(weights)
    return [
        [
            tau * math.log(weight / total) if there == here else -math.inf
            for there, weight in zip(partition, weights, strict=True)
        ]
        for here in partition
    ]


@given(partitions, taus)
def test_discrete_semantic_entropy_is_snne(partition: list[int], tau: float) -> None:
    equal = [1.0] * len(partition)

    got = snne(cluster_matrix(partition, equal, tau), tau=tau)

    assert got == pytest.approx(clustered_entropy(partition, equal), abs=1e-9)
    assert got == pytest.approx(discrete_semantic_entropy(partition), abs=1e-9)


@given(partitions, taus, st.data())
def test_semantic_entropy_is_wsnne(
    partition: list[int], tau: float, data: st.DataObject
) -> None:
    n = len(partition)
    logprobs = data.draw(st.lists(st.floats(-8, 0), min_size=n, max_size=n))
    likely = [math.exp(value) for value in logprobs]

    got = wsnne(cluster_matrix(partition, likely, tau), logprobs, tau=tau)

    assert got == pytest.approx(clustered_entropy(partition, likely), abs=1e-9)
    assert got == pytest.approx(semantic_entropy(partition, logprobs), abs=1e-9)


# fmt: off
TEN = (
    -0.6752, -1.2497, -0.2256, -0.0338, -0.792,
    -1.5346, -0.862, -1.1218, -0.8523, -0.0311,
)
# fmt: on
FIVE = (-0.3704, -0.298, -0.6722, -0.8414, -0.7681)


@pytest.mark.parametrize(
    ("partition", "logprobs", "dse", "se"),
    [
        (
            [0, 0, 1, 1, 1, 2, 3, 3, 3, 3],
            TEN,
            1.2798542258336676,
            1.1436995721487606,
        ),
        (
            [0, 1, 0, 1, 2],
            FIVE,
            1.0549201679861442,
            1.025131220496194,
        ),
    ],
)
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_both_on_known_partitions(
    partition: list[int], logprobs: tuple[float, ...], dse: float, se: float, tau: float
) -> None:
    likely = np.exp(logprobs).tolist()
    equal = [1.0] * len(partition)

    assert snne(cluster_matrix(partition, equal, tau), tau=tau) == pytest.approx(
        dse, abs=1e-9
    )
    assert wsnne(
        cluster_matrix(partition, likely, tau), logprobs, tau=tau
    ) == pytest.approx(se, abs=1e-9)
    assert discrete_semantic_entropy(partition) == pytest.approx(dse, abs=1e-9)
    assert semantic_entropy(partition, logprobs) == pytest.approx(se, abs=1e-9)


def test_without_the_diagonal_a_cluster_of_one_makes_it_infinite() -> None:
    matrix = cluster_matrix([0, 0, 1], [1.0, 1.0, 1.0], 1.0)

    assert snne(matrix, include_self=False) == math.inf


@given(similarities(), st.sampled_from([1e2, 1e4, 1e6]))
def test_a_large_tau_makes_it_the_mean_distance(matrix: FloatArray, tau: float) -> None:
    """tau (SNNE + ln n) goes to -mean f, which ranks as Deg and LexSim do.

    By the second order of the logarithm of a mean of exponentials the distance from
    the limit is at most 1 / (8 tau) for f in [0, 1].
    """
    n = len(matrix)
    deg = degree(matrix, normalised=True)

    near = tau * (snne(matrix, tau=tau) + math.log(n))

    slack = 1e-14 * tau * (1 + math.log(n)) + 1e-12
    assert near == pytest.approx(deg - 1, abs=1 / (8 * tau) + slack)
    assert n * deg == pytest.approx((n - 1) * (1 + lexical_similarity(matrix)))


@given(partitions, st.sampled_from([0.1, 0.01, 0.001]))
def test_a_small_tau_with_the_diagonal_counts_duplicates_alone(
    partition: list[int], tau: float
) -> None:
    ids = np.array(partition)
    matrix = np.where(ids[:, None] == ids, 1.0, 0.5)
    sizes = [partition.count(cluster) for cluster in partition]

    near = snne(matrix, tau=tau) + 1 / tau

    limit = -sum(math.log(size) for size in sizes) / len(sizes)
    assert near == pytest.approx(limit, abs=10 * math.exp(-0.5 / tau) + 1e-9)
    assert limit + math.log(len(sizes)) == pytest.approx(
        discrete_semantic_entropy(partition)
    )
