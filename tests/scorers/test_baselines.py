"""EigenScore, pTrue, CoCoA, semantic density, perplexity and the length."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.scorers.eigen_score import eigen_score
from snne_guard.scorers.entailment import semantic_density
from snne_guard.scorers.likelihood import (
    cocoa,
    p_true,
    perplexity,
    sequence_probability,
)

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
    assert cocoa(tokens, [1.0, 0.25]) == pytest.approx(-sum(tokens) * 0.375)
    assert cocoa(tokens, [1.0, 0.25], per_token=True) == pytest.approx(-mean * 0.375)
    assert p_true(tokens[0]) == pytest.approx(1 - math.exp(tokens[0]), abs=1e-12)


def test_answers_without_any_probability() -> None:
    never = [-1.0, -math.inf]
    assert sequence_probability(never) == 1
    assert perplexity(never) == math.inf
    assert perplexity([-1000.0]) == math.inf
    assert cocoa(never, [1.0]) == 0
    assert cocoa(never, [0.5], per_token=True) == math.inf


AGREES, DIFFERS = [[0.0, 0.2, 0.8]] * 2, [[0.9, 0.1, 0.0]] * 2


@given(st.integers(1, 5), st.data())
def test_semantic_density_is_its_formula(m: int, data: st.DataObject) -> None:
    likely = data.draw(st.lists(st.floats(-10, 0), min_size=m, max_size=m))
    texts = data.draw(st.lists(st.sampled_from("ab"), min_size=m, max_size=m))
    rows = data.draw(
        st.lists(st.sampled_from([AGREES, DIFFERS]), min_size=m, max_size=m)
    )
    total = density = 0.0
    for text, one, row in zip(texts, likely, rows, strict=True):
        weight = math.exp(one) / texts.count(text)
        distance = sum(way[0] + 0.5 * way[1] for way in row) / 2
        total += weight
        density += weight * (1 - distance)
    got = semantic_density(rows, likely, answers=["the answer", *texts])
    assert got == pytest.approx(1 - density / total)


def test_semantic_density_of_probabilities_that_underflow() -> None:
    far = semantic_density([AGREES, DIFFERS], [-2000.0, -2000.0], ["a", "b"])
    assert far == pytest.approx(0.525)
