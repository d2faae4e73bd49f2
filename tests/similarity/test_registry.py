"""Similarities by name, and a user's own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from snne_guard.settings import GuardSettings
from snne_guard.similarity import (
    NLI,
    SIMILARITIES,
    CrossEncoder,
    Embedding,
    Match,
    content_f1,
    resolve_similarity,
)
from tests.similarity.support import is_similarity


def test_every_name_gives_a_matrix() -> None:
    texts = ["Paris", "It is Paris", "5", '{"a": 1}', "", "\u6771\u4eac"]
    for name in SIMILARITIES:
        found, compare = resolve_similarity(name)
        assert found == name
        matrix = compare(texts, question="Where?")
        assert is_similarity(matrix, len(texts))
        assert compare([], question="Where?").shape == (0, 0)
        with pytest.raises(InputError):
            compare("one text")


def test_families_name_a_model_and_give_one_object() -> None:
    assert resolve_similarity(None) == ("content_f1", content_f1)
    name, nli = resolve_similarity("nli:some/model")
    assert name == "nli:some/model"
    assert nli == NLI("some/model")
    assert resolve_similarity("nli")[0] == "nli:microsoft/deberta-v2-xlarge-mnli"
    assert resolve_similarity("embedding:m")[1] == Embedding("m")
    assert resolve_similarity("cross_encoder:m")[1] == CrossEncoder("m")


@pytest.mark.parametrize(
    ("option", "extra"),
    [
        ({"similarity": "nli:m"}, "nli"),
        ({"similarity": "embedding:m"}, "embeddings"),
        ({"method": "luq"}, "nli"),
    ],
)
def test_a_guard_without_the_extra_of_its_similarity_is_refused(
    option: dict[str, Any], extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=rf"snne-guard\[{extra}\]"):
        GuardSettings(**option)


async def not_plain(texts: Any, *, question: str | None = None) -> Any:
    del question
    return np.eye(len(texts))


def test_a_users_own() -> None:
    def own(texts: Any, question: str | None = None) -> Any:
        del question
        return np.eye(len(texts))

    assert resolve_similarity(Match("mine", len))[0] == "mine"
    assert resolve_similarity(own)[0].endswith("own")


@pytest.mark.parametrize(
    "wrong",
    ["cosine", "embedding:", 5, lambda texts: texts, not_plain],
)
def test_what_is_none(wrong: Any) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        resolve_similarity(wrong)
