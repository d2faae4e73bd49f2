"""LexSim against numbers, an oracle and its properties."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.scorers import lexical_similarity
from snne_guard.similarity import rouge_l
from snne_guard.types import FloatArray
from tests.support.graphs import supports
from tests.support.known_answers import SIMILARITY


def test_known_matrices() -> None:
    assert lexical_similarity(SIMILARITY) == pytest.approx(-0.64304, abs=1e-12)
    assert lexical_similarity([[0.3, 0.5], [0.25, 0.9]]) == -0.375
    assert lexical_similarity([[1.0]]) == -1.0


@pytest.mark.parametrize("n", [2, 3, 10])
def test_all_alike_and_nothing_in_common(n: int) -> None:
    assert lexical_similarity(np.ones((n, n))) == -1.0
    assert lexical_similarity(np.eye(n)) == 0.0
    assert math.copysign(1, lexical_similarity(np.eye(n))) == 1.0


def test_empty_texts_are_alike() -> None:
    assert lexical_similarity(rouge_l(["", "", "Paris"])) == pytest.approx(-1 / 3)


@given(supports())
def test_it_is_its_literal_definition_and_within_its_bounds(matrix: FloatArray) -> None:
    n = len(matrix)
    pairs = [matrix[i, j] for i in range(n) for j in range(n) if i != j]
    expected = -sum(pairs) / len(pairs) if pairs else -1.0

    got = lexical_similarity(matrix)

    assert got == pytest.approx(expected, abs=1e-12)
    assert -1 - 1e-12 <= got <= 0


@given(supports(), st.data())
def test_the_order_does_not_matter_at_all(
    matrix: FloatArray, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(matrix))))

    assert lexical_similarity(matrix[np.ix_(order, order)]) == lexical_similarity(
        matrix
    )


@pytest.mark.parametrize(
    "wrong", [[], [[1, 2]], 1.0, [[math.nan]], [[math.inf]], "no", np.zeros((1, 1, 1))]
)
def test_what_is_no_matrix(wrong: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        lexical_similarity(wrong)
