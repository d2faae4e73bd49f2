"""SE, DSE, NE, NumSet and the vote share against numbers, oracles and properties."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    discrete_semantic_entropy,
    naive_entropy,
    semantic_entropy,
    semantic_set_count,
    vote_share,
)
from tests.support.graphs import clusterings, logprobs
from tests.support.known_answers import MEAN_LOGPROBS

CLUSTERS = [0, 0, 0, 1, 0]
OF_CLUSTERS = pytest.mark.parametrize(
    "function", [discrete_semantic_entropy, semantic_set_count, vote_share]
)


def slow_entropy(clusters: Sequence[int], weights: Sequence[float]) -> float:
    """The entropy of the clusters' shares as it is written."""
    shares: defaultdict[int, float] = defaultdict(float)
    for cluster, weight in zip(clusters, weights, strict=True):
        shares[cluster] += weight / sum(weights)
    return -sum(share * math.log(share) for share in shares.values() if share > 0)


def likely(values: Sequence[float]) -> list[float]:
    return [math.exp(value - max(values)) for value in values]


def test_known_answers() -> None:
    assert semantic_entropy(CLUSTERS, MEAN_LOGPROBS) == pytest.approx(
        0.6040274869132107, abs=1e-12
    )
    assert discrete_semantic_entropy(CLUSTERS) == pytest.approx(
        0.5004024235381879, abs=1e-12
    )
    assert naive_entropy(MEAN_LOGPROBS) == pytest.approx(0.529615, abs=1e-12)
    assert naive_entropy(MEAN_LOGPROBS, reading="normalised") == pytest.approx(
        1.5290271520297583, abs=1e-12
    )
    assert semantic_set_count(CLUSTERS) == 2
    assert vote_share(CLUSTERS) == pytest.approx(0.2, abs=1e-15)


def test_one_and_two_answers() -> None:
    assert semantic_entropy([0], [-3.0]) == 0.0
    assert discrete_semantic_entropy([7]) == 0.0
    assert semantic_entropy([0, 1], [-0.2024, -1.2176]) == pytest.approx(
        0.5792025177718861, abs=1e-12
    )
    assert discrete_semantic_entropy([0, 1]) == pytest.approx(math.log(2), abs=1e-15)
    assert naive_entropy([-0.8207]) == 0.8207
    assert (semantic_set_count([3]), vote_share([3])) == (1, 0.0)
    assert (semantic_set_count([0, 1]), vote_share([0, 1])) == (2, 0.5)


def test_log_probabilities_far_below_what_a_float_can_raise() -> None:
    extreme = [-899.0, -899.2, -900.05]

    assert semantic_entropy([0, 1, 2], extreme) == pytest.approx(
        slow_entropy([0, 1, 2], likely(extreme)), abs=1e-12
    )
    assert naive_entropy(extreme) == pytest.approx(899.4166666666666, abs=1e-9)


def test_log_probabilities_of_zero_are_equal_weights() -> None:
    assert semantic_entropy([0, 1, 2], [0.0] * 3) == pytest.approx(math.log(3))
    assert semantic_entropy([0, 0, 1], [0.0] * 3) == pytest.approx(
        discrete_semantic_entropy([0, 0, 1]), abs=1e-15
    )
    assert math.copysign(1, naive_entropy([0.0, -0.0])) == 1.0


def test_an_impossible_answer_has_no_weight() -> None:
    none = -math.inf

    assert semantic_entropy([0, 1, 1], [-1.0, -1.0, none]) == pytest.approx(math.log(2))
    assert semantic_entropy([0, 1], [none, none]) == pytest.approx(math.log(2))
    assert naive_entropy([-1.0, none]) == math.inf
    assert naive_entropy([-1.0, none], reading="normalised") == 0.0


@given(clusterings(), st.data())
def test_they_are_their_literal_definitions(
    clusters: list[int], data: st.DataObject
) -> None:
    n = len(clusters)
    values = data.draw(logprobs(n))

    assert semantic_entropy(clusters, values) == pytest.approx(
        slow_entropy(clusters, likely(values)), abs=1e-9
    )
    assert discrete_semantic_entropy(clusters) == pytest.approx(
        slow_entropy(clusters, [1.0] * n), abs=1e-9
    )
    assert naive_entropy(values) == pytest.approx(-sum(values) / n, rel=1e-9)
    assert naive_entropy(values, reading="normalised") == pytest.approx(
        slow_entropy(range(n), likely(values)), abs=1e-9
    )
    sizes = [clusters.count(cluster) for cluster in clusters]
    assert vote_share(clusters) == pytest.approx(1 - max(sizes) / n, abs=1e-12)
    assert semantic_set_count(clusters) == sum(
        cluster not in clusters[:place] for place, cluster in enumerate(clusters)
    )


@given(clusterings(), st.data())
def test_order_and_names_of_clusters_do_not_matter_at_all(
    clusters: list[int], data: st.DataObject
) -> None:
    """To the last bit, since metrics count ties."""
    values = data.draw(logprobs(len(clusters)))
    order = data.draw(st.permutations(range(len(clusters))))
    names = data.draw(st.permutations(range(5)))
    moved = [names[clusters[place]] for place in order]
    moved_values = [values[place] for place in order]

    assert semantic_entropy(moved, moved_values) == semantic_entropy(clusters, values)
    assert naive_entropy(moved_values) == naive_entropy(values)
    for function in (discrete_semantic_entropy, semantic_set_count, vote_share):
        assert function(moved) == function(clusters)


@given(clusterings(), st.data(), st.integers(2, 3))
def test_a_set_said_twice_has_the_same_entropy(
    clusters: list[int], data: st.DataObject, times: int
) -> None:
    values = data.draw(logprobs(len(clusters)))

    assert semantic_entropy(clusters * times, values * times) == pytest.approx(
        semantic_entropy(clusters, values), abs=1e-9
    )
    assert discrete_semantic_entropy(clusters * times) == pytest.approx(
        discrete_semantic_entropy(clusters), abs=1e-9
    )
    assert vote_share(clusters * times) == vote_share(clusters)
    assert semantic_set_count(clusters * times) == semantic_set_count(clusters)


@given(clusterings(), st.floats(-50, 0))
def test_equal_log_probabilities_leave_the_discrete_entropy(
    clusters: list[int], value: float
) -> None:
    assert semantic_entropy(clusters, [value] * len(clusters)) == pytest.approx(
        discrete_semantic_entropy(clusters), abs=1e-9
    )


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 49])
def test_answers_that_are_all_alike_or_all_different(n: int) -> None:
    assert discrete_semantic_entropy([0] * n) == 0.0
    assert discrete_semantic_entropy(range(n)) == pytest.approx(math.log(n), abs=1e-12)
    assert semantic_entropy([0] * n, np.linspace(-1, 0, n)) == 0.0
    assert vote_share(range(n)) == pytest.approx(1 - 1 / n, abs=1e-15)


@OF_CLUSTERS
@pytest.mark.parametrize(
    "wrong", [[], 3, [0.0, 1.0], ["a"], [[0, 1]], [True, False], np.zeros((2, 2), int)]
)
def test_what_are_no_clusters(function: Any, wrong: Any) -> None:
    with pytest.raises(InputError, match=r"expected \(n,\) cluster ids as whole"):
        function(wrong)


@pytest.mark.parametrize(
    ("clusters", "values", "message"),
    [
        ([], [], "cluster ids"),
        ([0, 1], [-1.0], "expected 2 mean log-probabilities"),
        ([0, 1], [-1.0, math.nan], "got NaN at"),
        ([0, 1], [-1.0, math.inf], r"got \+inf at"),
    ],
)
def test_what_semantic_entropy_refuses(
    clusters: list[int], values: list[float], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        semantic_entropy(clusters, values)


@pytest.mark.parametrize("reading", ["code", "normalised"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([], r"expected \(n,\) mean log-probabilities, got shape \(0,\)"),
        ([[-1.0]], r"got shape \(1, 1\)"),
        ([math.nan], "got NaN"),
        (["a"], "to be numbers"),
    ],
)
def test_what_naive_entropy_refuses(reading: Any, values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        naive_entropy(values, reading=reading)


def test_a_reading_that_there_is_not() -> None:
    with pytest.raises(ConfigurationError, match="'code' or 'normalised', got 'x'"):
        naive_entropy([-1.0], reading="x")  # type: ignore[arg-type]
