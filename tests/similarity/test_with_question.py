"""The question before each answer, where a similarity is to see both."""

from __future__ import annotations

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.scorers import score
from snne_guard.similarity import SIMILARITIES, WithQuestion, rouge_l, rouge_l_paper
from tests.support.reference_vectors import NEEDS_VECTORS, vectors

PAPER = WithQuestion(rouge_l_paper, "rouge_l_paper+question")
QUESTION = "What is the capital of France?"


def test_the_words_of_the_question_are_in_common_to_all() -> None:
    matrix = PAPER(["Paris", "Lyon"], question=QUESTION)

    assert matrix[0, 1] == pytest.approx(6 / 7, abs=1e-12)
    padded = [f"{QUESTION} Paris", f"{QUESTION} Lyon"]
    assert np.array_equal(matrix, rouge_l_paper(padded))


def test_without_a_question_it_is_the_similarity_alone() -> None:
    texts = ["It is Paris", "Paris", "Lyon"]

    assert np.array_equal(PAPER(texts), rouge_l_paper(texts))


@pytest.mark.parametrize("name", ["rouge_l+question", "rouge_l_paper+question"])
def test_it_has_a_name_that_an_option_takes(name: str) -> None:
    got = score(["Paris", "Lyon"], question=QUESTION, method="lex_sim", similarity=name)

    assert got.similarity == name
    assert got.value == pytest.approx(-6 / 7, abs=1e-12)
    assert getattr(SIMILARITIES[name], "name", None) == name


def test_what_are_no_texts() -> None:
    with pytest.raises(InputError):
        WithQuestion(rouge_l, "x")("Paris", question=QUESTION)


@NEEDS_VECTORS
def test_it_gives_lexical_similarity_as_in_the_paper_s_code() -> None:
    for case in vectors()["cases"]:
        matrix = PAPER(case["answers"], question=case["question"])
        expected = case["expected"]["rougeL_with_question_nostem"]
        assert np.allclose(matrix, expected, rtol=0, atol=1e-12), case["id"]
