"""Kernel Language Entropy: kernels and their entropies against slow oracles."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm

from snne_guard import score
from snne_guard.scorers import METHODS
from snne_guard.scorers.cluster_entropy import semantic_entropy
from snne_guard.scorers.kernel_entropy import (
    cluster_kernel,
    heat_kernel,
    kle,
    kle_full,
    matern_kernel,
    von_neumann_entropy,
)
from snne_guard.types import FloatArray
from tests.scorers.support import CLUSTERS, GRAPH, MEANS


@st.composite
def graphs(draw: st.DrawFn) -> FloatArray:
    n = draw(st.integers(1, 6))
    edges = st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0])
    cells = draw(st.lists(edges, min_size=n * n, max_size=n * n))
    upper = np.triu(np.array(cells).reshape(n, n), 1)
    matrix: FloatArray = upper + upper.T
    return matrix


def laplacian(weights: FloatArray) -> FloatArray:
    return np.diag(weights.sum(axis=1)) - weights


@given(graphs(), st.sampled_from([0.1, 0.3, 1.0]))
def test_heat_kernel_is_the_exponential_of_the_laplacian(
    weights: FloatArray, t: float
) -> None:
    expected = expm(-t * laplacian(weights))
    assert np.allclose(heat_kernel(weights, t=t), expected, atol=1e-9)


@given(graphs(), st.sampled_from([1.0, 2.0]), st.sampled_from([1, 2, 3]))
def test_matern_kernel_is_a_power_of_an_inverse(
    weights: FloatArray, kappa: float, nu: int
) -> None:
    shift = 2 * nu / kappa**2
    inverse = np.linalg.inv(shift * np.eye(len(weights)) + laplacian(weights))
    expected = np.linalg.matrix_power(inverse, nu) * shift**nu
    got = matern_kernel(weights, kappa=kappa, nu=nu)
    assert np.allclose(got, expected, atol=1e-9)


@given(graphs())
def test_entropies_are_within_their_limits(weights: FloatArray) -> None:
    n = len(weights)
    for kernel in (heat_kernel, matern_kernel):
        for normalised in (False, True):
            chosen = partial(kernel, normalised=normalised)
            assert 0 <= kle(weights, kernel=chosen) <= math.log(n) + 1e-9


@settings(max_examples=20)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_the_kernel_of_clusters_has_semantic_entropy(
    ids: list[int], data: st.DataObject
) -> None:
    n = len(ids)
    logprobs = data.draw(st.lists(st.floats(-5, 0), min_size=n, max_size=n))
    kernel = cluster_kernel(ids, logprobs)
    assert np.trace(kernel) == pytest.approx(1)
    expected = semantic_entropy(ids, logprobs)
    assert von_neumann_entropy(kernel) == pytest.approx(expected, abs=1e-6)
    got = kle_full(np.zeros((n, n)), ids, logprobs, alpha=0)
    assert got == pytest.approx(expected, abs=1e-6)


def test_alpha_1_is_the_graph_alone() -> None:
    assert kle_full(GRAPH, CLUSTERS, MEANS, alpha=1) == kle(GRAPH)


def test_unlike_answers_have_the_entropy_of_their_number() -> None:
    assert kle(np.zeros((5, 5))) == pytest.approx(math.log(5))
    assert kle(np.zeros((5, 5)), kernel=matern_kernel) == pytest.approx(math.log(5))


@pytest.mark.parametrize("method", ["kle_heat", "kle_matern", "kle_full"])
@pytest.mark.parametrize("n", [2, 3, 5, 11])
def test_replies_that_are_alike_have_no_uncertainty(method: str, n: int) -> None:
    def u(texts: list[str]) -> float:
        logprobs = [[-0.1 * (place + 1)] for place in range(n)]
        found = score(
            texts, method=method, similarity="exact", token_logprobs=logprobs
        ).uncertainty
        assert found is not None
        return found

    assert u(["Paris"] * n) == pytest.approx(0, abs=1e-9)
    unlike = u([f"answer {place}" for place in range(n)])
    assert unlike == pytest.approx(1) or method == "kle_full"
    assert 0 < u(["Paris"] * (n - 1) + ["Lyon"]) <= unlike


@given(graphs(), st.data())
def test_no_replies_are_below_those_that_are_alike(
    weights: FloatArray, data: st.DataObject
) -> None:
    n = len(weights)
    ids = data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    logprobs = data.draw(st.lists(st.floats(-9, 0), min_size=n, max_size=n))
    for name, value in (
        ("kle_heat", kle(weights)),
        ("kle_matern", kle(weights, kernel=matern_kernel)),
        ("kle_full", kle_full(weights, ids, logprobs)),
    ):
        limits = METHODS[name].bounds(n)
        assert limits is not None
        assert limits[0] - 1e-9 <= value <= limits[1] + 1e-9
