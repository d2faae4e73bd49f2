"""SAR, tokenSAR and sentSAR."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers.relevance import sar, sent_sar, token_sar
from snne_guard.types import FloatArray
from tests.scorers.support import similarities


def slow_entropy(tokens: list[float], weights: list[float]) -> float:
    if not any(weights):
        weights = [1.0] * len(tokens)
    pairs = zip(tokens, weights, strict=True)
    return sum(-token * weight for token, weight in pairs) / sum(weights)


def slow_shared(entropies: list[float], f: FloatArray) -> float:
    n, likely = len(entropies), [math.exp(-one) for one in entropies]
    total = 0.0
    for i in range(n):
        shared = sum(f[i, j] * likely[j] for j in range(n) if j != i) / 0.001
        total -= math.log(likely[i] + shared)
    return total / n


@given(similarities(), st.data())
def test_methods_are_their_formulas(f: FloatArray, data: st.DataObject) -> None:
    n = len(f)
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
    logprobs = st.floats(-10, 0)
    tokens = [data.draw(st.lists(logprobs, min_size=k, max_size=k)) for k in lengths]
    shares = st.sampled_from([0.0, 0.1, 0.5, 1.0])
    weights = [data.draw(st.lists(shares, min_size=k, max_size=k)) for k in lengths]
    relevant = [slow_entropy(*pair) for pair in zip(tokens, weights, strict=True)]
    assert token_sar(tokens, weights) == pytest.approx(sum(relevant) / n)
    sums = [-sum(one) for one in tokens]
    expected = slow_shared(sums, f)
    assert sent_sar(tokens, f) == pytest.approx(expected, abs=1e-9)
    expected = slow_shared(relevant, f)
    assert sar(tokens, weights, f) == pytest.approx(expected, abs=1e-9)


def test_probabilities_that_are_0_as_floats() -> None:
    tokens = [[-2000.0], [-2001.0]]
    got = sent_sar(tokens, np.eye(2))
    assert got == pytest.approx(2000.5)
    assert sent_sar([[-math.inf], [-1.0]], np.eye(2)) == math.inf
    assert token_sar([[-math.inf, -1.0]], [[0.0, 0.5]]) == 1.0
