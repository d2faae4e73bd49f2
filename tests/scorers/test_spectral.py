"""SumEigv, Deg and Eccen against numbers, oracles and their properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import (
    degree,
    eccentricity,
    eigenvalue_sum,
    laplacian_spectrum,
)
from snne_guard.types import FloatArray
from tests.support.graphs import clusterings, similarities
from tests.support.known_answers import SIMILARITY

OF_MATRICES = pytest.mark.parametrize(
    "function", [eigenvalue_sum, degree, eccentricity]
)


def slow_laplacian(matrix: FloatArray) -> FloatArray:
    n = len(matrix)
    degrees = [sum(matrix[i]) for i in range(n)]
    laplacian = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            diagonal = degrees[i] if i == j else 0.0
            laplacian[i, j] = (diagonal - matrix[i, j]) / math.sqrt(
                degrees[i] * degrees[j]
            )
    return laplacian


def slow_eccentricity(matrix: FloatArray, count: int) -> float:
    """Through the projection on the eigenvectors, whose basis does not matter."""
    _, vectors = np.linalg.eigh(slow_laplacian(matrix))
    projection = vectors[:, :count] @ vectors[:, :count].T
    return math.sqrt(max(np.trace(projection) - projection.sum() / len(matrix), 0.0))


def below(matrix: FloatArray, threshold: float) -> int:
    """Count the eigenvalues below a threshold, none of which is too near to it."""
    values = np.linalg.eigvalsh(slow_laplacian(matrix))
    assume(np.abs(values - threshold).min() > 1e-9)
    return int((values < threshold).sum())


def test_known_answers() -> None:
    assert eigenvalue_sum(SIMILARITY) == pytest.approx(1.4669111388871263, abs=1e-9)
    assert degree(SIMILARITY) == pytest.approx(1.42784, abs=1e-9)
    assert degree(SIMILARITY, normalised=True) == pytest.approx(0.285568, abs=1e-9)
    assert eccentricity(SIMILARITY) == pytest.approx(1.0003912276086184, abs=1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_all_alike_and_nothing_in_common(n: int) -> None:
    """Exactly, so that questions with such answers tie."""
    alike, different = np.ones((n, n)), np.eye(n)

    assert (eigenvalue_sum(alike), eigenvalue_sum(different)) == (1.0, float(n))
    assert (degree(alike), degree(different)) == (0.0, n - 1.0)
    assert degree(different, normalised=True) == pytest.approx(1 - 1 / n, abs=1e-15)
    assert eccentricity(alike) == 0.0
    assert eccentricity(different) == pytest.approx(math.sqrt(n - 1), abs=1e-12)


@given(clusterings(), st.data())
def test_clusters_without_edges_between_them_are_counted(
    clusters: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(clusters))))
    ids = np.array(clusters)
    matrix = (ids[:, None] == ids).astype(np.float64)
    moved = matrix[np.ix_(order, order)]
    number = len(set(clusters))

    assert eigenvalue_sum(matrix) == eigenvalue_sum(moved) == number
    assert eccentricity(matrix) == eccentricity(moved)
    assert eccentricity(matrix) == pytest.approx(math.sqrt(number - 1), abs=1e-9)
    assert degree(matrix) == degree(moved)


@given(similarities())
def test_they_are_their_literal_definitions(matrix: FloatArray) -> None:
    n = len(matrix)
    values = np.linalg.eigvalsh(slow_laplacian(matrix))

    assert eigenvalue_sum(matrix) == pytest.approx(
        sum(max(0.0, 1 - value) for value in values), abs=1e-9
    )
    literal = sum(1 - matrix[i, j] for i in range(n) for j in range(n)) / n
    assert degree(matrix) == pytest.approx(literal, abs=1e-9)
    assert degree(matrix, normalised=True) == pytest.approx(literal / n, abs=1e-9)
    assert eccentricity(matrix) == pytest.approx(
        slow_eccentricity(matrix, below(matrix, 0.9)), abs=1e-7
    )


@given(similarities(), st.data())
def test_a_number_of_eigenvectors_instead_of_a_threshold(
    matrix: FloatArray, data: st.DataObject
) -> None:
    values = np.linalg.eigvalsh(slow_laplacian(matrix))
    count = data.draw(st.integers(1, len(matrix)))
    assume(count == len(matrix) or values[count] - values[count - 1] > 1e-6)

    assert eccentricity(matrix, smallest=count) == pytest.approx(
        slow_eccentricity(matrix, count), abs=1e-7
    )


@given(similarities(), st.sampled_from([0.25, 0.5, 0.9, 1.5, 3.0]))
def test_other_thresholds(matrix: FloatArray, threshold: float) -> None:
    assert eccentricity(matrix, threshold=threshold) == pytest.approx(
        slow_eccentricity(matrix, below(matrix, threshold)), abs=1e-7
    )


@given(similarities(), st.data())
def test_the_order_does_not_matter(matrix: FloatArray, data: st.DataObject) -> None:
    below(matrix, 0.9)
    order = data.draw(st.permutations(range(len(matrix))))
    moved = matrix[np.ix_(order, order)]

    assert eigenvalue_sum(moved) == pytest.approx(eigenvalue_sum(matrix), abs=1e-9)
    assert eccentricity(moved) == pytest.approx(eccentricity(matrix), abs=1e-7)
    assert degree(moved) == degree(matrix)


@given(similarities(), st.integers(2, 3))
def test_a_set_said_twice_has_the_same_graph(matrix: FloatArray, times: int) -> None:
    below(matrix, 0.9)
    again = np.kron(np.ones((times, times)), matrix)

    assert eigenvalue_sum(again) == pytest.approx(eigenvalue_sum(matrix), abs=1e-9)
    assert eccentricity(again) == pytest.approx(eccentricity(matrix), abs=1e-7)
    assert degree(again, normalised=True) == pytest.approx(
        degree(matrix, normalised=True), abs=1e-12
    )


def test_an_eigenvalue_at_the_threshold_is_not_below_it() -> None:
    """With c = 9/19 in a matrix of ten all but one eigenvalue are exactly 0.9."""
    matrix = np.full((10, 10), 9 / 19)
    np.fill_diagonal(matrix, 1.0)

    assert laplacian_spectrum(matrix).values[1:] == pytest.approx(0.9, abs=1e-12)
    assert eccentricity(matrix) == 0.0
    assert eccentricity(matrix, threshold=0.9 + 1e-9) == pytest.approx(3.0)


def test_one_direction_and_the_other_are_averaged() -> None:
    one_way = np.array([[1.0, 0.9, 0.2], [0.1, 1.0, 0.0], [0.4, 0.6, 1.0]])
    both = (one_way + one_way.T) / 2

    assert eigenvalue_sum(one_way) == eigenvalue_sum(both)
    assert eccentricity(one_way) == eccentricity(both)
    assert degree(one_way) == pytest.approx(degree(both), abs=1e-12)


def test_several_methods_share_one_decomposition() -> None:
    matrix = SIMILARITY * 1.0

    assert laplacian_spectrum(matrix) is laplacian_spectrum(matrix.copy())
    changed = matrix.copy()
    changed[0, 1] = changed[1, 0] = 0.5
    assert laplacian_spectrum(changed) is not laplacian_spectrum(matrix)
    with pytest.raises(ValueError, match="read-only"):
        laplacian_spectrum(matrix).values[0] = 1.0


def test_a_large_matrix_is_not_kept() -> None:
    large = np.eye(65)

    assert laplacian_spectrum(large) is not laplacian_spectrum(large)
    assert eigenvalue_sum(large) == 65.0


@OF_MATRICES
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], r"got shape \(0,\)"),
        ([[1.0, 0.5]], r"got shape \(1, 2\)"),
        ([[math.nan]], r"got NaN at \(0, 0\)"),
        ([[math.inf]], r"got \+inf at \(0, 0\)"),
        ("no", "to be numbers, got str"),
    ],
)
def test_what_is_no_matrix(function: Any, wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        function(wrong)


@pytest.mark.parametrize("function", [eigenvalue_sum, eccentricity])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[1.0, -0.2], [-0.2, 1.0]], "weights of at least 0, got -0.2"),
        ([[1.0, -math.inf], [-math.inf, 1.0]], "weights of at least 0, got -inf"),
        ([[1.0, 0.0], [0.0, 0.0]], "expected no row of zeros, got one at 1"),
    ],
)
def test_what_is_no_graph(function: Any, wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        function(wrong)


@pytest.mark.parametrize("count", [0, 3])
def test_more_eigenvectors_than_there_are(count: int) -> None:
    with pytest.raises(ConfigurationError, match=f"smallest in 1 to 2, got {count}"):
        eccentricity(np.eye(2), smallest=count)
