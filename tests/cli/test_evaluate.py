from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snne_guard.evaluation import evaluate, read_recordings
from snne_guard.evaluation.grade import resolve_grader
from snne_guard.evaluation.jsonl import beside
from tests.cli.support import run
from tests.evaluation.support import EXAMPLE, ROWS, write_jsonl
from tests.support.openai_server import Answer, Asked, Server


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
        *("--resamples", "20", "--json", out),
    )
    assert found.exit_code == 0, found.output
    assert "200 of 200 questions, 52.5% right by contains" in found.stdout
    expected = evaluate(
        read_recordings(EXAMPLE),
        methods="snne,dse[exact]",
        grader=resolve_grader("contains"),
        resamples=20,
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
    options = ("--resamples", "5", "--methods", "snne", "--report", page)
    found = run("evaluate", write_jsonl(recording, rows), *options)
    # The wrong one is above two right ones and as high as the third.
    told = (
        "4 sentences of 3 answers, 75.0% right; AUROC 0.833 of all, "
        "1.000 as the mean within answers"
    )
    assert told in found.stdout
    assert told in page.read_text()
    assert "secret" not in page.read_text()
    rows[0]["sentence_labels"] = [1]
    refused = run("evaluate", write_jsonl(recording, rows), *options)
    assert refused.exit_code == 2
    assert "expected 2 sentence_labels, got 1" in refused.stderr


def test_fields_are_shown_by_path_and_never_by_value(
    recording: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    for number, row in enumerate(rows):
        wrong = number % 4 == 0
        lines = [{"a/b": "secret", "2024": number}, {"a/b": "hidden", "2024": 7}]
        other = [{**lines[0], "2024": number + 100 * wrong}, lines[1]]
        row["main_answer"] = json.dumps({"lines": lines[: 1 + number % 2]})
        row["samples"] = [json.dumps({"lines": other})] * 2
        if number < 20:
            row["field_labels"] = {"/lines/0/2024": int(not wrong)}
            row["field_labels"] |= {"/lines/0/a~1b": 1} if number < 5 else {}
    too_deep = '{"a": ' * 500 + "1" + "}" * 500
    rows[37]["main_answer"], rows[39]["main_answer"] = "No object.", too_deep
    page = tmp_path / "t.html"
    options = ("--resamples", "5", "--methods", "snne", "--report", page)
    found = run("evaluate", write_jsonl(recording, rows), *options)
    assert found.exit_code == 0, found.output
    told = "3 fields; the most uncertain is /lines/-, with a mean u of 0.91 in 20 answ"
    assert told in found.stdout
    table = re.sub(r"<[^>]*>", " ", page.read_text())
    assert "/lines/-  20  20  0.91  100%" in table
    # One of four is never supported: 10 of 56, and 5 of the 20 that are labelled.
    assert "/lines/*/2024  38  56  0.16  18%  20  25.0%  1.000" in table
    assert "/lines/*/a~1b  38  56  0.00  0%  5  0.0%   " in table
    assert "answer, only the paths of fields" in table
    for value in ("secret", "hidden"):
        assert value not in page.read_text() + found.stdout
    rows[0]["field_labels"] = {"/lines/9/2024": 1}
    refused = run("evaluate", write_jsonl(recording, rows), *options)
    assert refused.exit_code == 2
    assert "has no field '/lines/9/2024' to label" in refused.stderr


def test_files_are_ranked_apart_and_all_can_be(recording: Path, tmp_path: Path) -> None:
    other, out = write_jsonl(tmp_path / "other.jsonl", ROWS), tmp_path / "t.json"
    options = ("--methods", "snne", "--resamples", "5", "--json", out)
    found = run("evaluate", recording, other, *options)
    assert found.exit_code == 0, found.output
    assert [len(each["ids"]) for each in json.loads(out.read_text())] == [40, 4]
    write_jsonl(other, [{**row, "label": None} for row in ROWS])
    found = run("evaluate", recording, other, *options)
    assert found.exit_code == 2
    assert f"{other}: expected questions to rank, got none" in found.stderr
    assert "snne-guard label, or by a program with --grader" in found.stderr


def test_a_judge_grades_once(recording: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    rows = [json.loads(line) for line in recording.open()]
    write_jsonl(recording, [row | {"label": None, "self_check": 0.5} for row in rows])

    def judge(asked: Asked) -> Answer:
        assert asked.body["temperature"] == 0
        prompt = asked.body["messages"][-1]["content"]
        return Answer(texts=["yes" if '"question 1"' in prompt else "no"])

    with Server(judge) as server:
        found = run(
            *("evaluate", recording, "--grader", "judge:openai:some-model"),
            *("--base-url", server.url, "--methods", "snne", "--resamples", "5"),
        )
    assert found.exit_code == 0, found.output
    assert "2.5% right by judge:openai:some-model" in found.stdout
    assert "plain + self-check" in found.stdout
    assert len(server.requests) == 40


def test_the_page_has_the_tables(recording: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    found = run("evaluate", recording, "--methods", "snne", "--report", page)
    assert found.exit_code == 0, found.output
    for figure in re.findall(r"\b0\.\d{3}\b", found.stdout):
        assert figure in page.read_text()
    assert "question 1" not in page.read_text()
    texts = run("evaluate", recording, "--report", page, "--show-texts")
    assert texts.exit_code == 0, texts.output
    assert "fooled the guard" in page.read_text()
    assert "question " in page.read_text()


def test_a_hostile_recording_does_nothing_to_a_terminal_or_a_page(
    tmp_path: Path,
) -> None:
    hostile = "\x1b[2J\x07[bold]\u202e<img src=x onerror=alert(1)>"
    rows = [
        {**row, "id": f"{n}{hostile}", "main_answer": f"hidden {hostile}", "label": 1}
        for n, row in enumerate(ROWS)
    ]
    path = write_jsonl(tmp_path / f"r{hostile}.jsonl", rows)
    page, figures = tmp_path / "r.html", tmp_path / "r.json"
    found = run(
        *("evaluate", path, "--methods", "snne,dse"),
        *("--resamples", "5", "--report", page, "--json", figures),
    )
    assert found.exit_code == 0, found.output
    for shown in (found.output, page.read_text()):
        assert not set("\x1b\x07\u202e") & set(shown)
        assert "[bold]" in shown
    assert "<img" not in page.read_text()
    assert "hidden" not in page.read_text() + figures.read_text()


def test_a_missing_package_is_named_before_anything_is_computed(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    found = run("evaluate", recording, "--report", tmp_path / "r.html")
    assert found.exit_code == 2
    assert "snne-guard[eval]" in found.stderr
    assert not found.stdout


@pytest.mark.parametrize("methods", ["wsnne", "perplexity,wsnne", "dse"])
def test_nothing_but_the_baseline_is_an_error(recording: Path, methods: str) -> None:
    found = run("evaluate", recording, "--methods", methods)
    assert found.exit_code == 2
    assert "nothing but the baseline answer_length can be ranked: " in found.stderr
    assert run("evaluate", recording, "--methods", "answer_length").exit_code == 0


def test_answers_that_no_guard_accepts_are_told_with_the_cause(
    recording: Path, tmp_path: Path
) -> None:
    rows = [json.loads(line) for line in recording.read_text().splitlines()]
    ends = {"finish_reasons": ["stop", "length", "stop"], "kinds": [None] * 3}
    path = write_jsonl(recording, [{**row, "drawn": ends} for row in rows])
    page = tmp_path / "r.html"
    found = run("evaluate", path, "--methods", "snne", "--report", page)
    told = "never accepts 40 of these answers: truncated_samples"
    assert told in found.stdout
    assert "--max-tokens" in found.stdout
    assert "Mend the recording first" in page.read_text()
    scored = run("score", path)
    assert "never accepts 40 of 40 answers: truncated_samples" in scored.stdout
    out = tmp_path / "guard.json"
    made = run("calibrate", path, "--error-rate", 0.2, "--out", out)
    assert "40 for truncated_samples (" in made.stderr
    assert "--max-tokens" in made.stderr
    few = [{**row, "drawn": ends} for row in rows[:3]] + rows[3:]
    made = run("calibrate", write_jsonl(path, few), "--error-rate", 0.2, "--out", out)
    headline = made.stdout.splitlines()[2]
    assert headline.startswith("3 of 40 answers can never be accepted: truncated_")


def test_an_earlier_report_is_replaced_whole(recording: Path, tmp_path: Path) -> None:
    for option in ("--json", "--report"):
        report, link = tmp_path / f"{option}.new", tmp_path / f"{option}.old"
        report.write_text("the earlier report")
        link.hardlink_to(report)
        options = ("--methods", "snne", "--resamples", 2, option, report)
        assert run("evaluate", recording, *options).exit_code == 0
        assert "snne[content_f1]" in report.read_text()
        assert link.read_text() == "the earlier report"


def test_neither_recording_nor_labels_are_overwritten(recording: Path) -> None:
    both = recording.with_name("new")
    for target, more in (
        (recording, ()),
        (beside(recording, "labels"), ()),
        (both, ("--report", both)),
    ):
        found = run("evaluate", recording, "--json", target, *more)
        assert found.exit_code == 2
        assert "uses this file for something else" in found.stderr
    assert len(list(read_recordings(recording))) == 40
