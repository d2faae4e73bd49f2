from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard.scorers import score
from tests.cli.support import run
from tests.evaluation.support import ROWS, write_jsonl


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "r.jsonl")


def scored(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_summary_is_printed(recording: Path) -> None:
    found = run("score", "-", keys=recording.read_text())
    assert found.exit_code == 0, found.output
    lines = found.stdout.splitlines()
    assert lines[:2] == ["recordings   4", "scored       4"]
    assert "methods      snne 4" in lines
    assert [line for line in lines if line.startswith("mean u       0.")]


def test_output_has_the_scores_and_all_else(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    run("score", recording, "--output", out)
    lines = scored(out)
    assert [{**line, "snne_guard": 0} for line in lines] == [
        {**row, "snne_guard": 0} for row in ROWS
    ]
    for line in lines:
        expected = score(
            [line["main_answer"], *line["samples"]], question=line["question"]
        )
        added = line["snne_guard"]
        assert added["uncertainty"] == expected.uncertainty
        assert added["score"] == expected.value
        assert added["method"] == "snne"
        assert added["similarity"] == "content_f1"
        assert added["n"] == 4
    # Scored once more, the new figures take the place of the old.
    again = tmp_path / "again.jsonl"
    run("score", out, "--output", again, "--without-answer")
    for line in scored(again):
        assert line["snne_guard"]["n"] == 3


@pytest.mark.parametrize("output", ["r.jsonl", ".", "none/new", "/dev/null"])
def test_an_output_that_is_no_new_file_of_a_folder_is_refused(
    recording: Path, output: str
) -> None:
    before = recording.read_bytes()
    found = run("score", recording, "--output", recording.parent / output)
    assert found.exit_code == 2
    assert "cannot write " in found.stderr
    assert recording.read_bytes() == before


def test_log_probabilities_choose_the_method(tmp_path: Path) -> None:
    row = {**ROWS[0], "main_logprobs": [-0.1], "token_logprobs": [[-0.2]] * 3}
    found = run("score", write_jsonl(tmp_path / "r.jsonl", [row, ROWS[1]]))
    assert "methods      wsnne 1, snne 1" in found.stdout
    assert "not comparable" in found.stderr


def test_what_cannot_be_scored_is_told(tmp_path: Path) -> None:
    rows = [
        ROWS[0],
        {**ROWS[1], "samples": []},
        {**ROWS[2], "main_answer": "  "},
    ]
    found = run("score", write_jsonl(tmp_path / "r.jsonl", rows))
    assert found.exit_code == 0
    assert "scored       1" in found.stdout
    assert "reasons" in found.stdout
    found = run("score", tmp_path / "r.jsonl", "--method", "perplexity")
    assert found.exit_code == 2
    assert "recording '1': expected main_logprobs" in found.stderr
