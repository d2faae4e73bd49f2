"""LUQ and LUQ-Pair."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers.entailment import luq, luq_pair
from snne_guard.types import FloatArray
from tests.scorers.support import entailed


@st.composite
def supports(draw: st.DrawFn) -> FloatArray:
    n = draw(st.integers(1, 6))
    cells = draw(st.lists(st.floats(0, 1), min_size=n * n, max_size=n * n))
    return np.array(cells).reshape(n, n)


@given(supports())
def test_methods_are_their_formulas(s: FloatArray) -> None:
    n = len(s)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    if n == 1:
        assert [luq(entailed(s)), luq_pair(entailed(s))] == [1, 1]
        return
    mean = sum(sum(s[i, j] for j in others[i]) / (n - 1) for i in range(n)) / n
    assert luq(entailed(s)) == pytest.approx(1 - mean)
    best = sum(max(s[min(i, j), max(i, j)] for j in others[i]) for i in range(n)) / n
    assert luq_pair(entailed(s)) == pytest.approx(1 - best)
