"""Similarities by name, and the check of a user's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from snne_guard import similarity as package
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity import (
    SIMILARITIES,
    WithQuestion,
    checked_similarity,
    resolve_similarity,
    rouge_l,
    rouge_l_paper,
    structured,
)
from snne_guard.types import FloatArray


def exact(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    del question
    return np.array([[float(a == b) for b in texts] for a in texts])


class Named:
    def __init__(self, **attributes: object) -> None:
        self.__dict__.update(attributes)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return exact(texts, question=question)


def test_names() -> None:
    assert dict(SIMILARITIES) == {
        "rouge_l": rouge_l,
        "rouge_l_paper": rouge_l_paper,
        "rouge_l+question": WithQuestion(rouge_l, "rouge_l+question"),
        "rouge_l_paper+question": WithQuestion(rouge_l_paper, "rouge_l_paper+question"),
        "content_f1": package.content_f1,
        "structured": structured,
        "exact": package.exact,
        "normalised": package.normalised,
        "numeric": package.numeric,
    }
    with pytest.raises(TypeError):
        SIMILARITIES["mine"] = exact  # type: ignore[index]


def test_every_similarity_keeps_the_contract() -> None:
    texts = ["Paris", "Lyon", "", "Paris", '{"a": 1}', "\u6771\u4eac"]
    for similarity in SIMILARITIES.values():
        matrix = similarity(texts, question="What is the capital?")
        assert (checked_similarity(matrix, len(texts)) == matrix).all()


@pytest.mark.parametrize("name", list(SIMILARITIES))
def test_resolve_a_name(name: str) -> None:
    assert resolve_similarity(name) == (name, SIMILARITIES[name])


def test_resolve_none_is_rouge_l() -> None:
    assert resolve_similarity(None) == ("rouge_l", rouge_l)


@pytest.mark.parametrize(
    ("similarity", "name"),
    [
        (exact, "exact"),
        (Named(name="cosine"), "cosine"),
        (Named(name=""), "Named"),
        (Named(name=5, __qualname__="mine"), "mine"),
        (Named(), "Named"),
    ],
)
def test_resolve_a_callable(similarity: Any, name: str) -> None:
    assert resolve_similarity(similarity) == (name, similarity)


@pytest.mark.parametrize("similarity", ["cosine", "", 5, ["rouge_l"]])
def test_resolve_something_else(similarity: Any) -> None:
    with pytest.raises(
        ConfigurationError, match=r"'rouge_l_paper', .*'structured', 'nli"
    ):
        resolve_similarity(similarity)


def test_the_same_embedding_model_is_the_same_object() -> None:
    name, similarity = resolve_similarity("embedding:some/model")
    assert name == "embedding:some/model"
    assert resolve_similarity("embedding:some/model")[1] is similarity
    assert resolve_similarity("embedding:other")[1] is not similarity
    with pytest.raises(ConfigurationError, match="expected embedding:MODEL"):
        resolve_similarity("embedding:")


def test_checked_is_a_clean_copy() -> None:
    given = np.array([[0.9, 1 + 1e-10], [-1e-10, 1.0]])
    assert checked_similarity(given, 2).tolist() == [[1, 1], [0, 1]]
    assert given[0, 0] == 0.9
    assert checked_similarity([[1, 0], [0, 1]], 2).dtype == np.float64
    assert checked_similarity(np.eye(2, dtype=np.float32), 2).dtype == np.float64
    assert checked_similarity(np.empty((0, 0)), 0).shape == (0, 0)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.ones((2, 3)), r"shape \(2, 2\), got \(2, 3\)"),
        (1.0, r"shape \(2, 2\), got \(\)"),
        (None, "without NaN|of numbers|shape"),
        ([["a", "b"], ["c", "d"]], "of numbers, got list"),
        ([[1.0], [1.0, 2.0]], "of numbers, got list"),
        ([[1.0, float("nan")], [0.0, 1.0]], "without NaN, got NaN"),
        ([[1.0, 1.1], [0.0, 1.0]], r"in \[0, 1\], got 1.1"),
        ([[1.0, -0.1], [0.0, 1.0]], r"in \[0, 1\], got -0.1"),
        ([[1.0, float("inf")], [0.0, 1.0]], r"in \[0, 1\], got inf"),
        ([[1.0, 1j], [0.0, 1.0]], "of numbers, got list"),
    ],
)
def test_checked_says_what_is_wrong(matrix: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_similarity(matrix, 2)


def test_public_names_are_there() -> None:
    assert len(set(package.__all__)) == len(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None


async def in_a_task(texts: Sequence[str], *, question: str | None = None) -> Any:
    return texts, question


class InATask:
    async def __call__(self, texts: Sequence[str], *, question: str | None) -> Any:
        return texts, question


@pytest.mark.parametrize(
    ("similarity", "told"),
    [
        (in_a_task, "in_a_task is async"),
        (InATask(), "InATask is async"),
        (lambda texts: texts, "question=None"),
        (lambda one, other: (one, other), "similarity\\(texts, question=None\\)"),
    ],
)
def test_what_cannot_be_called_as_a_similarity_is_refused_at_once(
    similarity: Any, told: str
) -> None:
    with pytest.raises(ConfigurationError, match=told):
        resolve_similarity(similarity)


def test_what_does_not_say_how_it_is_called_is_tried() -> None:
    class Unknown:
        __signature__ = "none"

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return args, kwargs

    assert resolve_similarity(Unknown())[0].endswith("Unknown")
