"""ROUGE-L as a matrix: literal cases, an oracle, rouge-score, long texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from snne_guard.errors import InputError
from snne_guard.similarity import rouge_l, rouge_l_paper, unicode_tokens
from snne_guard.similarity.lexical import ROUGE_L_TOKENS
from tests.similarity.support import is_similarity

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
    ("2024-05-01", "2024-05-02", 2 / 3),
    ("[1]", "[2]", 0.0),
    ("{}", "[]", 0.0),
    ('{"city": "Paris"}', '{"city": "Lyon"}', 0.5),
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


def slow_rouge_l(one: str, other: str) -> float:
    """Lin's definition, literally, without brackets beside other tokens."""
    cut = map(unicode_tokens, (one, other))
    left, right = ([t for t in each if t not in {*"[]{}"}] or each for each in cut)
    total = len(left) + len(right)
    return 2 * slow_lcs(left, right) / total if total else 1.0


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


@given(TEXTS)
def test_matrix_is_the_oracles(texts: list[str]) -> None:
    matrix = rouge_l(texts)
    assert is_similarity(matrix, len(texts))
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            assert matrix[row, column] == pytest.approx(slow_rouge_l(one, other))


def test_long_texts_are_compared_by_what_fits() -> None:
    head = " ".join(f"w{n}" for n in range(ROUGE_L_TOKENS))
    matrix = rouge_l([f"{head} a b", f"{head} b a", f"{head} a c", f"{head} a b"])
    n = ROUGE_L_TOKENS + 2
    # All that is common, the order of the rest unseen.
    assert matrix[0, 1] == pytest.approx(0.99)
    assert matrix[0, 2] == pytest.approx(min((n - 1) / n, 0.99))
    assert matrix[0, 3] == 1
    assert rouge_l([f"{head} a b", "w0 w4999"])[0, 1] == pytest.approx(4 / (n + 2))


@pytest.mark.parametrize("texts", ["one text", ["a", None], [b"a"]])
def test_texts_must_be_texts(texts: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        rouge_l(texts)
