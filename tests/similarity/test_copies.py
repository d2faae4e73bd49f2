"""Copies of what compares answers, for another guard or another process."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import SNNEGuard
from snne_guard.similarity import Embedding, EntailmentJudge
from tests.support.tiny_embedding import save_embedding

TEXTS = ["ab", "abab", "a"]


def letters(texts: list[str]) -> list[list[float]]:
    return [[1.0, *(text.count(letter) for letter in "ab")] for text in texts]


def says_entailment(_prompt: str, /) -> str:
    return "entailment"


def pickled(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


COPIES = pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])


@COPIES
def test_an_embedding(copied: Any) -> None:
    embedding = Embedding(letters, condition_on_question=True)
    before = embedding(TEXTS)
    other = copied(embedding)
    assert other.name == embedding.name == "embedding:letters+question"
    np.testing.assert_array_equal(other(TEXTS), before)


@COPIES
def test_a_model_that_was_loaded_by_name_is_loaded_again(
    copied: Any, tmp_path: Path
) -> None:
    embedding = Embedding(save_embedding(tmp_path))
    before = embedding(TEXTS)
    raw = pickle.dumps(embedding)
    assert len(raw) < 2_000
    np.testing.assert_array_equal(copied(embedding)(TEXTS), before)


@COPIES
def test_a_judge_begins_to_count_anew(copied: Any) -> None:
    judge = EntailmentJudge(says_entailment, max_concurrency=2, strict=False)
    assert judge(TEXTS).all()
    other = copied(judge)
    assert (other.name, other.strict, other.calls) == (judge.name, False, 0)
    assert other(TEXTS).all()
    # A shallow copy knows what the judge knows.
    assert (other.calls, judge.calls) == (0 if copied is copy.copy else 6, 6)
    assert other._slots is not judge._slots


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
@pytest.mark.parametrize(
    ("method", "similarity"),
    [("snne", Embedding(letters)), ("dse", EntailmentJudge(says_entailment))],
)
def test_a_guard_with_one(copied: Any, method: str, similarity: Any) -> None:
    model = FakeListChatModel(responses=["ab"])
    guard = SNNEGuard(model, method=method, similarity=similarity, n=3, threshold=0.5)
    assert copied(guard).invoke("Which?").content == "ab"
