"""Similarities by name, a user's own, the question before each answer, blind spots."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity import (
    NLI,
    SIMILARITIES,
    CrossEncoder,
    Embedding,
    WithQuestion,
    blind_spots,
    checked_matrix,
    content_f1,
    resolve_similarity,
    rouge_l,
    rouge_l_paper,
)


def test_every_name_gives_a_matrix() -> None:
    assert set(SIMILARITIES) == {
        *("rouge_l", "rouge_l_paper", "rouge_l+question", "rouge_l_paper+question"),
        *("content_f1", "structured", "exact", "normalised", "numeric"),
    }
    texts = ["Paris", "It is Paris", "5", '{"a": 1}', "", "\u6771\u4eac"]
    for name in SIMILARITIES:
        found, compare = resolve_similarity(name)
        assert found == name
        matrix = compare(texts, question="Where?")
        assert (checked_matrix(matrix, len(texts)) == matrix).all()
        assert compare([], question="Where?").shape == (0, 0)


def test_families_name_a_model_and_give_one_object() -> None:
    assert resolve_similarity(None) == ("content_f1", content_f1)
    name, nli = resolve_similarity("nli:some/model")
    assert name == "nli:some/model"
    assert nli == NLI("some/model")
    assert nli is resolve_similarity("nli:some/model")[1]
    assert resolve_similarity("nli")[0] == "nli:microsoft/deberta-v2-xlarge-mnli"
    assert resolve_similarity("embedding:m")[1] == Embedding("m")
    assert resolve_similarity("cross_encoder:m")[1] == CrossEncoder("m")


class Named:
    name = "mine"

    def __call__(self, texts: Any, /, *, question: str | None = None) -> Any:
        del question
        return np.eye(len(texts))

    def blind_spots(self, texts: Any, /, *, question: str | None = None) -> bool:
        return question is None and "long" in texts


async def not_plain(texts: Any, *, question: str | None = None) -> Any:
    del question
    return np.eye(len(texts))


def test_a_users_own() -> None:
    def own(texts: Any, question: str | None = None) -> Any:
        del question
        return np.eye(len(texts))

    assert resolve_similarity(Named())[0] == "mine"
    assert resolve_similarity(own)[0].endswith("own")
    assert blind_spots(Named(), ["long"])
    assert not blind_spots(Named(), ["short"])
    assert not blind_spots(own, ["long"])


@pytest.mark.parametrize(
    "wrong",
    ["cosine", "embedding", "embedding:", "", 5, lambda texts: texts, not_plain],
)
def test_what_is_none(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        resolve_similarity(wrong)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[1, 0.5]], "shape"),
        ("text", "numbers"),
        ([[1, float("nan")], [0, 1]], "finite"),
        ([[1, float("inf")], [0, 1]], "finite"),
        ([[1, 1.1], [1.1, 1]], r"in \[0, 1\], got 1.1"),
        ([[1, 0.5], [0.4, 1]], "symmetric"),
    ],
)
def test_a_matrix_that_is_none(matrix: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_matrix(matrix, 2)


def test_a_matrix_is_copied_and_cleaned() -> None:
    given = np.array([[0.9, 1 + 1e-12], [1.0, 0.0]])
    assert checked_matrix(given, 2).tolist() == [[1, 1], [1, 1]]
    assert given[0, 0] == 0.9


def test_the_question_stands_before_each_answer() -> None:
    asked, texts = "Capital of France?", ["Paris", "Lyon", "Paris"]
    found = SIMILARITIES["rouge_l+question"](texts, question=asked)
    assert (found == rouge_l([f"{asked} {text}" for text in texts])).all()
    assert found[0, 1] == 0.75
    assert (SIMILARITIES["rouge_l+question"](texts) == rouge_l(texts)).all()
    mine = WithQuestion(rouge_l_paper, "mine")
    assert blind_spots(mine, ["\u6771\u4eac"], question=asked)
    assert mine.name == "mine"
    with pytest.raises(InputError):
        mine("text", question=asked)


def test_importing_loads_neither_torch_nor_langchain() -> None:
    code = (
        "import sys, snne_guard.similarity as s; s.content_f1(['a', 'b']);"
        "print([m for m in ('torch', 'langchain_core', 'transformers',"
        "'sentence_transformers') if m in sys.modules])"
    )
    found = subprocess.run(  # noqa: S603 - this interpreter, our own text
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
