"""ROUGE-L as a matrix: literal cases, an oracle, rouge-score, long texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity import (
    rouge_l,
    rouge_l_paper,
    rouge_tokens,
    unicode_tokens,
)
from snne_guard.similarity.lexical import ROUGE_L_TOKENS
from snne_guard.types import FloatArray

Tokens = Literal["unicode", "rouge"]
VECTORS = Path(__file__).parents[3] / "shared" / "reference" / "vectors.json"
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=20)
NEAR_TEXT = st.text(st.sampled_from("ab5 -.,%\u212a\u0130\u00e9\u6771$"), max_size=20)
TEXTS = st.lists(ANY_TEXT | NEAR_TEXT, max_size=6)

# text, text, similarity
PAIRS: list[tuple[str, str, float]] = [
    ("", "", 1.0),
    ("", " \n", 1.0),
    ("", "Paris", 0.0),
    ("Paris.", "paris", 1.0),
    ("the cat sat", "the cat ran", 2 / 3),
    ("the cat sat on the mat", "the cat", 0.5),
    ("\u6771\u4eac", "\u4eac\u90fd", 0.5),
    ("S\u00e3o Paulo", "Sa\u0303o Paulo", 1.0),
    ("STRASSE", "Stra\u00dfe", 1.0),
    ("1,200", "1200", 1.0),
    ("1.5", "1,5", 1.0),
    ("\u22125", "-5", 1.0),
    ("C++", "C#", 0.0),
    ("2024-05-01", "2024-05-02", 2 / 3),
]


@pytest.mark.parametrize(("one", "other", "expected"), PAIRS)
def test_pairs(one: str, other: str, expected: float) -> None:
    for pair in ([one, other], [other, one]):
        assert rouge_l(pair) == pytest.approx(np.array([[1, expected], [expected, 1]]))


SCORER = RougeScorer(["rougeL"])


@given(st.lists(ANY_TEXT | NEAR_TEXT, min_size=1, max_size=4))
def test_rouge_is_rouge_score(texts: list[str]) -> None:
    matrix = rouge_l_paper(texts)
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            expected = SCORER.score(one, other)["rougeL"].fmeasure
            if row == column:
                expected = 1.0
            assert abs(matrix[row, column] - expected) <= 1e-12


@pytest.mark.skipif(not VECTORS.exists(), reason="needs the reference vectors")
def test_the_reference_vectors() -> None:
    vectors: dict[str, Any] = json.loads(VECTORS.read_text("utf-8"))
    for pair in vectors["rouge_pairs"]:
        found = rouge_l([pair["prediction"], pair["reference"]], tokens="rouge")
        if pair["prediction"] != pair["reference"]:
            assert found[0, 1] == pytest.approx(pair["f"])


def slow_rouge_l(texts: Sequence[str], tokens: Tokens) -> FloatArray:
    """Lin's definition, literally, pair by pair."""
    cut = unicode_tokens if tokens == "unicode" else rouge_tokens
    matrix = np.eye(len(texts))
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            left, right = map(cut, (one, other))
            if row == column:
                continue
            if not left and not right:
                matrix[row, column] = 1.0 if tokens == "unicode" else 0.0
            else:
                common = slow_lcs(left, right)
                matrix[row, column] = 2 * common / (len(left) + len(right))
    return matrix


def slow_lcs(left: Sequence[str], right: Sequence[str]) -> int:
    lengths = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            lengths[i + 1][j + 1] = (
                lengths[i][j] + 1
                if one == other
                else max(lengths[i][j + 1], lengths[i + 1][j])
            )
    return lengths[-1][-1]


@given(TEXTS, st.sampled_from(["unicode", "rouge"]))
def test_matrix_is_the_oracles(texts: list[str], tokens: Tokens) -> None:
    matrix = rouge_l(texts, tokens=tokens)
    assert matrix.shape == (len(texts), len(texts))
    assert matrix.dtype == np.float64
    assert matrix == pytest.approx(slow_rouge_l(texts, tokens), abs=1e-12)
    assert (matrix == matrix.T).all()
    assert ((matrix >= 0) & (matrix <= 1)).all()
    assert (matrix.diagonal() == 1).all()


def test_long_texts_are_compared_by_what_fits() -> None:
    head = " ".join(f"w{n}" for n in range(ROUGE_L_TOKENS))
    matrix = rouge_l([f"{head} a b", f"{head} b a", f"{head} a c", f"{head} a b"])
    n = ROUGE_L_TOKENS + 2
    # All that is common, the order of the rest unseen.
    assert matrix[0, 1] == pytest.approx(0.99)
    assert matrix[0, 2] == pytest.approx(min((n - 1) / n, 0.99))
    assert matrix[0, 3] == 1
    assert rouge_l([f"{head} a b", "w0 w4999"])[0, 1] == pytest.approx(4 / (n + 2))


def test_more_tokens_than_the_ready_characters() -> None:
    words = [f"w{number}" for number in range(57_000)]
    matrix = rouge_l([" ".join(words), "w0 w4999", "w4999 w0"])
    assert matrix[0] == pytest.approx([1, 4 / 57_002, 2 / 57_002])


@pytest.mark.parametrize("texts", ["one text", ["a", None], [b"a"]])
def test_texts_must_be_texts(texts: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        rouge_l(texts)


def test_unknown_tokenizer() -> None:
    with pytest.raises(ConfigurationError, match=r"one of \['unicode', 'rouge'\], got"):
        rouge_l(["a"], tokens="bert")  # type: ignore[arg-type] # what is tested
