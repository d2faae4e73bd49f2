"""Cosine similarity of embeddings, from every kind of model that gives them."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.similarity import Embedding
from tests.similarity.support import is_similarity, save_embedding

TEXTS = ["Paris is the capital", "the capital is Paris", "Lyon", "Paris is the capital"]


def letters(texts: list[str]) -> list[list[float]]:
    return [[1.0, *(text.count(letter) for letter in "abc")] for text in texts]


def cosine(one: Any, other: Any) -> float:
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


@given(st.lists(st.text("abcd", max_size=5), max_size=5))
def test_it_is_the_rescaled_cosine(texts: list[str]) -> None:
    matrix = Embedding(letters)(texts)
    assert is_similarity(matrix, len(texts))
    vectors = letters(texts)
    for i, one in enumerate(vectors):
        for j, other in enumerate(vectors):
            expected = 1 if texts[i] == texts[j] else (1 + cosine(one, other)) / 2
            assert matrix[i, j] == pytest.approx(expected)


def test_langchains_embeddings() -> None:
    model = DeterministicFakeEmbedding(size=8)
    matrix = Embedding(model)(TEXTS)
    one, other = model.embed_documents(TEXTS[:2])
    assert matrix[0, 1] == pytest.approx((1 + cosine(one, other)) / 2)


def test_an_embedding_of_length_0_is_like_half() -> None:
    vectors = {"one": [3, 4], "zero": [0, 0]}
    matrix = Embedding(lambda texts: [vectors[text] for text in texts])(list(vectors))
    assert matrix.tolist() == [[1, 0.5], [0.5, 1]]
    assert Embedding(letters)([]).shape == (0, 0)


@pytest.mark.parametrize(
    "gives",
    [[[1.0]], [[1.0], [1.0, 2.0]], [["a"], ["b"]], [[1.0], [float("nan")]]],
)
def test_what_are_no_vectors(gives: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        Embedding(lambda _: gives)(["a", "b"])


def test_what_is_no_model() -> None:
    with pytest.raises(ConfigurationError, match="expected model"):
        Embedding(5)


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[embeddings\]"):
        Embedding("no/such-model")(TEXTS)


@pytest.mark.slow
def test_a_named_model_is_loaded(tmp_path: Any) -> None:
    folder = save_embedding(tmp_path)
    matrix = Embedding(folder)(TEXTS)
    assert matrix[0, 1] == pytest.approx(1)  # the mean of the same words
    assert matrix[0, 2] < 0.99
    assert Embedding(folder).name == f"embedding:{folder}"
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        Embedding(str(tmp_path / "nothing"))(TEXTS)
