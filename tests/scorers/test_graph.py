"""LexSim, SumEigv, Deg and Eccen: numbers, slow oracles, both ends."""

import math

import numpy as np
import pytest
from hypothesis import given

from snne_guard.scorers.graph import (
    degree,
    eccentricity,
    eigenvalue_sum,
    lexical_similarity,
)
from snne_guard.types import FloatArray
from tests.scorers.support import SIMILARITY, similarities


def slow_laplacian(f: FloatArray) -> FloatArray:
    n = len(f)
    degrees = [sum(f[i]) for i in range(n)]
    shares = [
        [f[i, j] / math.sqrt(degrees[i] * degrees[j]) for j in range(n)]
        for i in range(n)
    ]
    return np.eye(n) - np.array(shares)


@given(similarities())
def test_methods_are_their_formulas(f: FloatArray) -> None:
    n = len(f)
    values, vectors = np.linalg.eigh(slow_laplacian(f))
    count = sum(max(0.0, 1 - value) for value in values)
    assert eigenvalue_sum(f) == pytest.approx(count, abs=1e-9)
    pairs = [f[i, j] for i in range(n) for j in range(n) if i != j]
    mean = sum(pairs) / len(pairs) if pairs else 1.0
    assert lexical_similarity(f) == pytest.approx(-mean)
    far = sum(1 - f[i, j] for i in range(n) for j in range(n)) / n
    assert degree(f) == pytest.approx(far, abs=1e-12)
    if min(abs(values - 0.9)) > 1e-9:  # it jumps there
        chosen = [vectors[:, k] for k in range(n) if values[k] < 0.9]
        square = sum(float(np.var(one)) * n for one in chosen)
        assert eccentricity(f) == pytest.approx(math.sqrt(max(square, 0)), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_both_ends(n: int) -> None:
    alike, different = np.ones((n, n)), np.eye(n)
    assert [eigenvalue_sum(alike), eigenvalue_sum(different)] == [1, n]
    assert [degree(alike), degree(different)] == [0, n - 1]
    assert eccentricity(alike) == pytest.approx(0, abs=1e-9)
    assert eccentricity(different) == pytest.approx(math.sqrt(n - 1))
    assert lexical_similarity(alike) == -1
    assert lexical_similarity(different) == (0 if n > 1 else -1)


def test_a_similarity_that_is_not_symmetric_counts_by_its_mean() -> None:
    f = np.array(SIMILARITY)
    f[0, 1], f[1, 0] = 0.9, 0.7
    assert eigenvalue_sum(f) == pytest.approx(eigenvalue_sum(SIMILARITY))
