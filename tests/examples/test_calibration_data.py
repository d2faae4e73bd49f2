"""The recording in ``examples/calibration``: what its page says, and its scores."""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import pytest

from snne_guard import score
from snne_guard.evaluation import (
    Recording,
    auroc,
    grade_all,
    read_recordings,
    resolve_grader,
)
from tests.examples.doc_pages import blocks, table
from tests.support.examples import EXAMPLES

FOLDER = EXAMPLES / "calibration"
PAGE = FOLDER / "README.md"


@cache
def recordings() -> list[Recording]:
    found = [row for _, row in read_recordings(FOLDER / "recording.jsonl", strict=True)]
    return [row for row in found if isinstance(row, Recording)]


@cache
def correct() -> tuple[int, ...]:
    grades = grade_all(recordings(), resolve_grader("contains"))
    return tuple(
        grade.correct for grade in grades if grade and grade.correct is not None
    )


def lines(name: str) -> list[dict[str, Any]]:
    text = (FOLDER / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_every_question_is_recorded_and_none_was_changed() -> None:
    asked = lines("questions.jsonl")
    recorded = lines("recording.jsonl")
    assert len(asked) == 200
    assert [{name: row[name] for name in asked[0]} for row in recorded] == asked


def test_no_question_comes_twice() -> None:
    asked = lines("questions.jsonl")
    for name in ("id", "context", "question"):
        assert len({row[name] for row in asked}) == len(asked)


def test_texts_answer_the_questions_that_they_should() -> None:
    for row in lines("questions.jsonl"):
        assert bool(row["answers"]) == (row["kind"] != "no answer")
        found = [answer.lower() in row["context"].lower() for answer in row["answers"]]
        assert any(found) or not found


def test_the_page_counts_what_is_right() -> None:
    kinds = [str(row.extra["kind"]) for row in recordings()]
    asked, right = Counter(kinds), Counter[str]()
    for kind, grade in zip(kinds, correct(), strict=True):
        right[kind] += grade
    said = {
        re.split(r"[,:]", name)[0]: (int(of), int(those))
        for name, of, those in table(PAGE, first="kind")
    }
    assert said.pop("all") == (len(kinds), sum(correct()))
    assert said == {kind: (asked[kind], right[kind]) for kind in asked}


def test_the_page_has_the_command_that_drew_it() -> None:
    (command,) = (block for block in blocks(PAGE) if block.language == "bash")
    words = shlex.split(command.text)
    stops = [words[i + 1] for i, word in enumerate(words) if word == "--stop"]
    (settings,) = {json.dumps(row["settings"]) for row in lines("recording.jsonl")}
    said = json.loads(settings)

    assert stops == [r"\n", "."]
    assert said["stop"] == ["\n", "."]
    for name in ("samples", "temperature", "max_tokens", "seed", "system"):
        option = f"--{name.replace('_', '-')}"
        assert words[words.index(option) + 1] == str(said[name])


def test_the_guards_score_tells_right_from_wrong_and_length_does_not() -> None:
    found = [
        score([row.main_answer, *row.samples], question=row.question).uncertainty
        for row in recordings()
    ]
    lengths = [len(row.main_answer.split()) for row in recordings()]
    right = np.array(correct())
    assert auroc([u for u in found if u is not None], right) > 0.85
    assert auroc(lengths, right) < 0.65


@pytest.mark.parametrize("name", ["questions.jsonl", "recording.jsonl"])
def test_the_files_are_small(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 400_000
