"""The paper's two theorems: DSE and SE are SNNE and WSNNE of special similarities."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers import snne, wsnne
from snne_guard.scorers.cluster_entropy import (
    discrete_semantic_entropy,
    semantic_entropy,
)
from snne_guard.scorers.entailment import luq_pair
from snne_guard.scorers.graph import degree, lexical_similarity
from snne_guard.types import FloatArray
from tests.scorers.support import entailed, logprob_lists, similarities

partitions = st.lists(st.integers(0, 4), min_size=1, max_size=10)
taus = st.sampled_from([0.01, 0.1, 1.0, 10.0])


def of_clusters(
    partition: Sequence[int], weights: Sequence[float], tau: float
) -> FloatArray:
    """Return f_ij = tau log(share of j) within a cluster, -inf between two."""
    ids = np.array(partition)
    shares = np.array(weights) / sum(weights)
    return np.where(ids[:, None] == ids, tau * np.log(shares)[None, :], -math.inf)


@given(partitions, taus)
def test_discrete_semantic_entropy_is_snne(partition: list[int], tau: float) -> None:
    got = snne(of_clusters(partition, [1.0] * len(partition), tau), tau=tau)
    assert got == pytest.approx(discrete_semantic_entropy(partition), abs=1e-9)


@given(partitions, taus, st.data())
def test_semantic_entropy_is_wsnne(
    partition: list[int], tau: float, data: st.DataObject
) -> None:
    logprobs = data.draw(logprob_lists(len(partition), least=-8))
    likely = [math.exp(value) for value in logprobs]
    got = wsnne(of_clusters(partition, likely, tau), logprobs, tau=tau)
    assert got == pytest.approx(semantic_entropy(partition, logprobs), abs=1e-9)


@given(similarities(), st.sampled_from([1e2, 1e4, 1e6]))
def test_a_large_tau_ranks_as_deg_and_lex_sim_do(
    matrix: FloatArray, tau: float
) -> None:
    # By the second order of the log of a mean of exponentials, the distance from the
    # limit is at most 1 / (8 tau) for f in [0, 1].
    n = len(matrix)
    near = tau * (snne(matrix, tau=tau) + math.log(n))
    slack = 1e-14 * tau * (1 + math.log(n)) + 1e-12
    assert near == pytest.approx(degree(matrix) / n - 1, abs=1 / (8 * tau) + slack)
    assert degree(matrix) == pytest.approx((n - 1) * (1 + lexical_similarity(matrix)))


@given(partitions, st.sampled_from([0.1, 0.01, 0.001]))
def test_a_small_tau_counts_duplicates_alone(partition: list[int], tau: float) -> None:
    ids = np.array(partition)
    matrix = np.where(ids[:, None] == ids, 1.0, 0.5)
    near = snne(matrix, tau=tau) + 1 / tau + math.log(len(partition))
    slack = 10 * math.exp(-0.5 / tau) + 1e-9
    assert near == pytest.approx(discrete_semantic_entropy(partition), abs=slack)


@given(similarities())
def test_without_the_diagonal_a_small_tau_is_the_nearest_neighbour(
    matrix: FloatArray,
) -> None:
    if len(matrix) > 1:
        near = 1 + 1e-6 * snne(matrix, tau=1e-6, include_self=False)
        assert near == pytest.approx(luq_pair(entailed(matrix)), abs=1e-5)
