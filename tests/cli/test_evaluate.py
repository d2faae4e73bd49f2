from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from snne_guard.evaluation import evaluate, read_recordings
from snne_guard.evaluation.grade import resolve_grader
from snne_guard.evaluation.label import labels_path
from tests.cli.support import run
from tests.evaluation.support import EXAMPLE, ROWS, write_jsonl


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    rng = np.random.default_rng(2)
    rows: list[dict[str, Any]] = []
    for number in range(40):
        right = bool(rng.random() < 0.5)
        samples = [f"w{rng.integers(2 if right else 9)}" for _ in range(3)]
        rows.append(
            {
                "id": str(number),
                "question": f"question {number}",
                "main_answer": samples[0],
                "samples": samples[1:],
                "answers": [samples[0] if right else "other"],
                "label": int(right),
            }
        )
    return write_jsonl(tmp_path / "r.jsonl", rows)


def test_the_table_is_that_of_the_library(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    found = run(
        *("evaluate", EXAMPLE, "--methods", "snne,dse[exact]", "--grader", "contains"),
        *("--draws", "20", "--json", out),
    )
    assert found.exit_code == 0, found.output
    assert "200 of 200 questions, 51.5% right by contains" in found.stdout
    expected = evaluate(
        read_recordings(EXAMPLE),
        methods="snne,dse[exact]",
        grader=resolve_grader("contains"),
        draws=20,
        name=str(EXAMPLE),
    )
    assert json.loads(out.read_text()) == [expected.to_dict()]
    for row in expected.ranked:
        assert f"{row.metrics['auroc'].value:.3f}" in found.stdout


def test_sentences_are_ranked_where_they_are_labelled(
    recording: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    hidden = "It was a secret tree of the year"
    answers = [
        (["It is oak.", f"{hidden} 1907."], [1, 0], [f"It is oak. {hidden} 1911."]),
        ([f"{hidden} 1920."], [1], [f"{hidden} 1921."]),
        (["It is oak."], [1], ["It is oak."]),
    ]
    for row, (sentences, labels, samples) in zip(rows, answers, strict=False):
        row |= {"sentences": sentences, "sentence_labels": labels}
        row |= {"main_answer": " ".join(sentences), "samples": samples * 2}
    page = tmp_path / "t.html"
    options = ("--draws", "5", "--methods", "snne", "--html", page)
    found = run("evaluate", write_jsonl(recording, rows), *options)
    # The wrong one is above two right ones and as high as the third.
    told = (
        "4 sentences of 3 answers, 75.0% right; AUROC 0.833 of all, "
        "1.000 as the mean within answers"
    )
    assert told in found.stdout
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert told in page.read_text()
    assert "secret" not in page.read_text()
    rows[0]["sentence_labels"] = [1]
    refused = run("evaluate", write_jsonl(recording, rows), *options)
    assert refused.exit_code == 2
    assert "expected 2 sentence_labels, got 1" in refused.stderr


def test_recipes_are_compared_where_there_is_a_self_check(
    recording: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    out = tmp_path / "out.json"
    options = ("--draws", "5", "--methods", "snne", "--json", out)
    plain = run("evaluate", recording, *options)
    assert "rounds" not in plain.stdout
    assert json.loads(out.read_text())[0]["recipes"] is None
    checked = [row | {"self_check": 0.9 if row["label"] else 0.1} for row in rows]
    write_jsonl(recording, checked)
    found = run("evaluate", recording, *options, "--calls", "3")
    assert found.exit_code == 0, found.output
    compared = evaluate(
        read_recordings(recording), methods="snne", calls=3, draws=5
    ).recipes
    assert compared is not None
    for recipe in compared.recipes:
        assert f"{recipe.auroc:.3f}" in found.stdout
    assert compared.at_equal_calls is not None
    assert (
        f"{compared.at_equal_calls.gain:+.3f} over plain with 3 calls" in found.stdout
    )
    assert "Best for no more money: none, for want of" in found.stdout
    (written,) = json.loads(out.read_text())
    assert written["recipes"]["at_equal_calls"]["name"] == "plain + check"


def test_the_paper_scores_samples_alone(recording: Path) -> None:
    paper = ("--similarity", "rouge_l_paper", "--without-answer")
    found = run("evaluate", recording, *paper, "--methods", "snne", "--draws", "5")
    assert "2 samples without the delivered answer" in found.stdout
    assert "snne[rouge_l_paper]" in found.stdout


def test_files_are_ranked_apart_and_all_can_be(recording: Path, tmp_path: Path) -> None:
    other, out = write_jsonl(tmp_path / "other.jsonl", ROWS), tmp_path / "t.json"
    options = ("--methods", "snne", "--draws", "5", "--json", out)
    found = run("evaluate", recording, other, *options)
    assert found.exit_code == 0, found.output
    assert [len(each["ids"]) for each in json.loads(out.read_text())] == [40, 4]
    write_jsonl(other, [{**row, "label": None} for row in ROWS])
    found = run("evaluate", recording, other, *options)
    assert found.exit_code == 2
    assert f"{other}: expected questions to rank, got none" in found.stderr


@pytest.fixture
def unlabelled(recording: Path) -> Path:
    rows = [json.loads(line) for line in recording.open()]
    kept = [{k: v for k, v in row.items() if k != "label"} for row in rows]
    return write_jsonl(recording, kept)


def test_a_judge_grades_once(unlabelled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def judge(prompt: str, **options: Any) -> AIMessage:
        assert options == {"temperature": 0}
        asked.append(prompt)
        return AIMessage("yes" if '"question 1"' in prompt else "no")

    def chat_model(name: str, *, base_url: str | None = None) -> Any:
        assert (name, base_url) == ("openai:some-model", "http://127.0.0.1:1/v1")
        return RunnableLambda(judge)

    monkeypatch.setattr("snne_guard.cli.models.chat_model", chat_model)
    rows = [json.loads(line) for line in unlabelled.open()]
    write_jsonl(unlabelled, [row | {"self_check": 0.5} for row in rows])
    found = run(
        *("evaluate", unlabelled, "--grader", "judge:openai:some-model"),
        *("--base-url", "http://127.0.0.1:1/v1", "--methods", "snne", "--draws", "5"),
    )
    assert found.exit_code == 0, found.output
    assert "2.5% right by judge:openai:some-model" in found.stdout
    assert "plain + check" in found.stdout
    assert len(asked) == 40


def test_a_hostile_recording_does_nothing_to_a_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\x07[bold]\u202e"
    rows = [
        {**row, "id": f"{n}{hostile}", "main_answer": hostile}
        for n, row in enumerate(ROWS)
    ]
    path = write_jsonl(tmp_path / f"r{hostile}.jsonl", rows)
    page = tmp_path / "r.html"
    found = run(
        *("evaluate", path, "--methods", "snne,dse"),
        *("--draws", "5", "--html", page),
    )
    assert found.exit_code == 0, found.output
    assert not set("\x1b\x07\u202e") & set(found.output)
    assert not set("\x1b\x07\u202e") & set(page.read_text())
    assert "[bold]" in found.stdout


@pytest.mark.parametrize(
    "options",
    [
        ["--methods", "nonsense"],
        ["--similarity", "cosine"],
        ["--grader", "nonsense"],
    ],
)
def test_wrong_usage_is_status_two(recording: Path, options: list[str]) -> None:
    found = run("evaluate", recording, *options)
    assert found.exit_code == 2
    assert found.stderr


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_neither_recording_nor_labels_are_overwritten(
    recording: Path, option: str
) -> None:
    for target in (recording, labels_path(recording)):
        assert run("evaluate", recording, option, target).exit_code == 2
    assert len(list(read_recordings(recording))) == 40
