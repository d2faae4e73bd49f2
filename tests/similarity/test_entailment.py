"""What is read from an NLI model's probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity.entailment import (
    edge_weights,
    entail_similarity,
    entailment_ratio,
    equivalence,
)
from snne_guard.types import FloatArray

ALL = pytest.mark.parametrize(
    "function", [equivalence, entail_similarity, entailment_ratio, edge_weights]
)

# Premise, hypothesis, [contradiction, neutral, entailment]: 0 and 1 entail each other,
# 0 entails 2 and 2 is neutral to 0, 1 and 2 are neutral both ways, 3 contradicts all.
FOUR = np.array(
    [
        [[0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.8, 0.1, 0.1]],
        [[0.0, 0.4, 0.6], [0.9, 0.1, 0.0], [0.1, 0.8, 0.1], [0.7, 0.2, 0.1]],
        [[0.1, 0.7, 0.2], [0.2, 0.6, 0.2], [0.9, 0.1, 0.0], [0.5, 0.3, 0.2]],
        [[0.6, 0.4, 0.0], [0.9, 0.1, 0.0], [0.1, 0.2, 0.7], [0.9, 0.1, 0.0]],
    ]
)


def probabilities(most: int = 6) -> st.SearchStrategy[FloatArray]:
    logits = st.integers(1, most).flatmap(
        lambda n: arrays(np.float64, (n, n, 3), elements=st.floats(-30, 30))
    )
    return logits.map(softmax)


def softmax(logits: FloatArray) -> FloatArray:
    raised: FloatArray = np.exp(logits - logits.max(axis=2, keepdims=True))
    shares: FloatArray = raised / raised.sum(axis=2, keepdims=True)
    return shares


def test_equivalence_of_known_probabilities() -> None:
    strict = np.eye(4, dtype=bool)
    strict[0, 1] = strict[1, 0] = True
    loose = strict.copy()
    loose[0, 2] = loose[2, 0] = True

    assert np.array_equal(equivalence(FOUR), strict)
    assert np.array_equal(equivalence(FOUR, strict=False), loose)


def test_of_equal_classes_the_first_counts() -> None:
    tied = np.full((2, 2, 3), 1 / 3)
    tied[0, 1] = tied[1, 0] = (0.0, 0.5, 0.5)

    assert not equivalence(tied)[0, 1]
    assert not equivalence(tied, strict=False)[0, 1]


def test_similarity_of_known_probabilities() -> None:
    assert entail_similarity(FOUR) == pytest.approx(
        np.array(
            [
                [1.0, 0.65, 0.4, 0.05],
                [0.65, 1.0, 0.15, 0.05],
                [0.4, 0.15, 1.0, 0.45],
                [0.05, 0.05, 0.45, 1.0],
            ]
        ),
        abs=1e-12,
    )
    with_neutral = entail_similarity(FOUR, neutral=0.5)
    assert with_neutral[0, 2] == pytest.approx((0.7 + 0.55) / 2, abs=1e-12)
    assert with_neutral[2, 0] == with_neutral[0, 2]


def test_ratio_of_known_probabilities() -> None:
    ratio = entailment_ratio(FOUR)

    assert ratio[0, 1] == pytest.approx(0.875, abs=1e-12)
    assert ratio[1, 0] == 1.0
    assert ratio[3, 1] == 0.0
    assert np.diag(ratio).tolist() == [1.0] * 4


def test_what_is_wholly_neutral_is_neither_supported_nor_denied() -> None:
    neutral = np.zeros((2, 2, 3))
    neutral[:, :, 1] = 1.0

    assert entailment_ratio(neutral).tolist() == [[1.0, 0.5], [0.5, 1.0]]


def test_weights_of_known_probabilities() -> None:
    assert edge_weights(FOUR).tolist() == [
        [0.0, 2.0, 1.5, 0.0],
        [2.0, 0.0, 1.0, 0.0],
        [1.5, 1.0, 0.0, 1.0],
        [0.0, 0.0, 1.0, 0.0],
    ]
    confidence = edge_weights(FOUR, weights="confidence")
    assert confidence[0, 1] == pytest.approx(1.3, abs=1e-12)
    assert confidence[0, 3] == pytest.approx(1.4, abs=1e-12)
    assert confidence[0, 0] == 0.0


@given(probabilities())
def test_each_is_its_literal_definition(table: FloatArray) -> None:
    n = len(table)
    same, loose = equivalence(table), equivalence(table, strict=False)
    alike, ratio, edges = (
        entail_similarity(table),
        entailment_ratio(table),
        edge_weights(table),
    )
    for i in range(n):
        for j in range(n):
            if i == j:
                assert same[i, i]
                assert loose[i, i]
                assert (alike[i, i], ratio[i, i], edges[i, i]) == (1.0, 1.0, 0.0)
                continue
            there, back = int(table[i, j].argmax()), int(table[j, i].argmax())
            assert same[i, j] == (there == back == 2)
            assert loose[i, j] == (0 not in (there, back) and (there, back) != (1, 1))
            assert alike[i, j] == (table[i, j, 2] + table[j, i, 2]) / 2
            c, _, e = table[i, j]
            assert ratio[i, j] == (e / (e + c) if e + c > 0 else 0.5)
            assert (
                edges[i, j]
                == {2: 1.0, 1: 0.5, 0: 0.0}[there]
                + {
                    2: 1.0,
                    1: 0.5,
                    0: 0.0,
                }[back]
            )


@ALL
@given(table=probabilities(), data=st.data())
def test_the_order_of_the_texts_does_not_matter(
    function: Any, table: FloatArray, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(table))))

    assert np.array_equal(
        function(table[np.ix_(order, order)]), function(table)[np.ix_(order, order)]
    )


@ALL
def test_the_diagonal_means_nothing_and_the_table_is_not_changed(function: Any) -> None:
    unknown = FOUR.copy()
    unknown[np.arange(4), np.arange(4)] = math.nan
    before = unknown.copy()

    assert np.array_equal(function(unknown), function(FOUR))
    assert np.array_equal(unknown, before, equal_nan=True)


@ALL
def test_no_texts_and_one_text(function: Any) -> None:
    assert function(np.empty((0, 0, 3))).shape == (0, 0)
    assert function(np.full((1, 1, 3), math.nan)).shape == (1, 1)


@ALL
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("no", "expected probabilities as numbers, got str"),
        (0.5, r"expected \(n, n, 3\) probabilities, got shape \(\)"),
        (np.zeros((2, 3, 3)), r"got shape \(2, 3, 3\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.zeros((2, 2, 3)), r"add up to 1, got \[0.0, 0.0, 0.0\] at \(0, 1\)"),
        (np.full((2, 2, 3), math.nan), r"got \[nan, nan, nan\] at \(0, 1\)"),
        ([[[0, 0, 1], [2.5, -1, -0.5]]] * 2, r"got \[2.5, -1.0, -0.5\] at \(0, 1\)"),
    ],
)
def test_what_is_no_table_of_probabilities(
    function: Any, table: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        function(table)


def test_words_and_numbers_that_make_no_sense() -> None:
    with pytest.raises(ConfigurationError, match=r"neutral in \[0, 1\], got 2"):
        entail_similarity(FOUR, neutral=2)
    with pytest.raises(ConfigurationError, match="'manual' or 'confidence', got 'x'"):
        edge_weights(FOUR, weights="x")  # type: ignore[arg-type]
