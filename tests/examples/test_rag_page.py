"""What the page about retrieval says that the guard finds, and that it cannot find."""

from __future__ import annotations

import re

import numpy as np
import pytest
from langchain_openai import ChatOpenAI

from benchmarks import rag
from benchmarks.certificate import SHARED, WITH_LOGPROBS
from snne_guard import SNNEGuard
from tests.examples.doc_pages import DOCS, table

PAGE = DOCS / "rag.md"

recorded = pytest.mark.skipif(
    not (SHARED / "data" / WITH_LOGPROBS).is_file(),
    reason="the recordings are not there; SNNE_GUARD_SHARED names their folder",
)


@recorded
def test_the_figures_are_those_that_the_program_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rag.report_recorded()
    page = PAGE.read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", capsys.readouterr().out, re.MULTILINE)
    assert len(tables) == 3
    for each in tables:
        assert each in page


@recorded
def test_the_questions_are_those_that_the_page_tells_of() -> None:
    rows = rag.known()
    unanswerable, wrong, _ = rag.tasks(rows)
    counts = (len(rows), unanswerable.positive.sum(), (~wrong.positive).sum())
    assert counts == (89, 45, 33)
    said = "89 questions about a paragraph of Wikipedia, 45 of which"
    assert said in PAGE.read_text(encoding="utf-8")


def slow_auroc(values: list[float], positive: list[bool], among: list[bool]) -> float:
    places = [place for place, counts in enumerate(among) if counts]
    scores = [
        1.0 if values[high] > values[low] else 0.5 * (values[high] == values[low])
        for high in places
        for low in places
        if positive[high] and not positive[low]
    ]
    return sum(scores) / len(scores)


def test_auroc_is_the_share_of_pairs_in_the_right_order() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        values = rng.integers(0, 4, size=(3, 12)).astype(float)
        task = rag.Task(
            name="x", positive=np.arange(12) % 3 == 0, among=rng.random(12) < 0.8
        )
        positive, among = task.positive.tolist(), task.among.tolist()
        each = [slow_auroc(row, positive, among) for row in values.tolist()]
        assert rag.auroc(values, task)[0] == pytest.approx(np.mean(each))
        # A question that counts twice is as good as one that is there twice.
        weights = rng.integers(1, 4, size=12)
        places = np.repeat(np.arange(12), weights)
        again = rag.Task(
            name="x", positive=task.positive[places], among=task.among[places]
        )
        assert rag.auroc(values, task, weights[None].astype(float)) == pytest.approx(
            rag.auroc(values[:, places], again)
        )


@pytest.mark.parametrize("number", [0, 2, 10])
def test_a_false_context_is_repeated_and_accepted(
    embedded: ChatOpenAI, number: int
) -> None:
    question, text, true, false = rag.FACTS[number]
    model = embedded.model_copy(update={"temperature": 0, "stop": ["\n"]})
    guard = SNNEGuard(model, threshold=0.5)
    found = guard.assess(rag.prompt(question, text.format(false)))
    assert rag.says(found, false)
    assert not rag.says(found, true)
    assert found.decision == "accept"


def test_the_page_has_the_figures_about_false_contexts() -> None:
    rows = {row[0]: row[1:] for row in table(PAGE, first="context")}
    assert list(rows) == ["true", "false", "none"]
    assert all(row[0].endswith(f" of {len(rag.FACTS)}") for row in rows.values())
    assert int(rows["false"][3]) >= len(rag.FACTS) // 3
