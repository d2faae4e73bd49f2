"""EigenScore, pTrue, perplexity and the probability of the answer."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers.hidden_states import eigen_score
from snne_guard.scorers.likelihood import p_true, perplexity, sequence_probability

logprobs = st.lists(st.floats(-20, 0), min_size=1, max_size=8)


@given(st.integers(1, 5), st.integers(1, 6), st.data())
def test_eigen_score_is_its_formula(n: int, d: int, data: st.DataObject) -> None:
    cells = st.lists(st.floats(-3, 3), min_size=n * d, max_size=n * d)
    z = np.array(data.draw(cells)).reshape(n, d)
    j = np.eye(d) - np.ones((d, d)) / d
    values = np.linalg.eigvalsh(z @ j @ z.T + 1e-3 * np.eye(n))
    expected = np.log(values).mean()
    assert eigen_score(z) == pytest.approx(expected, abs=1e-6)


@given(logprobs)
def test_likelihoods_are_their_formulas(tokens: list[float]) -> None:
    mean = sum(tokens) / len(tokens)
    got = sequence_probability(tokens)
    assert got == pytest.approx(1 - math.exp(sum(tokens)), abs=1e-12)
    assert perplexity(tokens) == pytest.approx(math.exp(-mean))
    assert p_true(tokens[0]) == pytest.approx(1 - math.exp(tokens[0]), abs=1e-12)


def test_answers_without_any_probability() -> None:
    never = [-1.0, -math.inf]
    assert sequence_probability(never) == 1
    assert perplexity(never) == math.inf
    assert perplexity([-1000.0]) == math.inf
