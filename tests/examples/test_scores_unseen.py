"""The recordings that no choice of the default score looked at, and their graders."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from typing import Any

import pytest

from benchmarks import scores_unseen
from benchmarks.scores import DEFAULT
from benchmarks.scores_unseen import (
    FIRST,
    FOURTH,
    GRADERS,
    RECORDINGS,
    SECOND,
    THIRD,
    computed,
    first,
    number,
)
from snne_guard.evaluation import Recording
from tests.examples.doc_pages import DOCS, table

PAGE = (DOCS / "scores.md").read_text(encoding="utf-8")
README = (DOCS.parent / "README.md").read_text(encoding="utf-8")


def lines(name: str) -> list[dict[str, Any]]:
    text = (RECORDINGS / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def asked(answers: tuple[str, ...], choices: tuple[str, ...] = ()) -> Recording:
    return Recording(
        id="1",
        question="?",
        main_answer="",
        samples=(),
        answers=answers,
        extra={"choices": list(choices)},
    )


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Eight plus three is eleven", "11"),
        ("There are 3 * 8 = 24 marbles in 3 boxes", "24"),
        ("Nine - five = four apples", "4"),
        ("That makes twenty-one coins", "21"),
        ("Thirty two", "32"),
        ("It is 12.", "12"),
        ("Eleven of nineteen", "19"),
    ],
)
def test_numbers_are_read_in_digits_and_in_words(answer: str, right: str) -> None:
    assert number(answer, asked((right,))) == 1
    assert number(answer, asked((f"1{right}",))) == 0


def test_without_a_number_an_answer_is_wrong() -> None:
    assert number("Many", asked(("4",))) == 0
    assert number("The sum is = ?", asked(("4",))) == 0


@pytest.mark.parametrize(
    ("answer", "graded"),
    [
        ("Boris is older than Anna", 1),
        ("Anna is older than Boris", 0),
        ("Borislav is", 0),
        ("Nobody", 0),
        ("", 0),
    ],
)
def test_of_the_choices_the_first_that_is_named_counts(
    answer: str, graded: int
) -> None:
    assert first(answer, asked(("Boris",), ("Anna", "Boris"))) == graded


@pytest.mark.parametrize(
    ("answer", "graded"),
    [
        ("The box holds 13 pencils and 8 rulers", 1),
        ("There are eight rulers", 1),
        ("13 + 8 = 21 rulers", 0),
        ("2 * 4 = 8 rulers", 1),
        ("13 pencils", 0),
    ],
)
def test_a_number_that_was_computed_is_the_one_behind_the_sign(
    answer: str, graded: int
) -> None:
    assert computed(answer, asked(("8", "eight"))) == graded


@pytest.mark.parametrize("name", [*FIRST, *SECOND, *THIRD, *FOURTH])
def test_every_question_has_an_answer_and_eleven_samples(name: str) -> None:
    rows = lines(name)
    assert len(rows) == (130 if name in FIRST else 100)
    assert {len(row["samples"]) for row in rows} == {11}
    for field in ("id", "prompt"):
        found = [f"{row.get('context')} {row['question']}" for row in rows]
        found = [row["id"] for row in rows] if field == "id" else found
        assert len(set(found)) == len(rows)
    for row in rows:
        assert row["answers"]
        assert all(row["answers"][0] in row["choices"] for _ in row.get("choices", ()))
    most = Counter(row["answers"][0] for row in rows).most_common(1)[0][1]
    assert most < len(rows) / 4  # no answer that one could always give


def test_the_page_of_the_recordings_names_the_graders() -> None:
    rows = table(RECORDINGS / "README.md", first="file")
    said = {
        row[0].strip("`").removesuffix(".jsonl"): row[-1].strip("`") for row in rows
    }
    assert said == {
        name: GRADERS[name].__name__ for name in (*FIRST, *SECOND, *THIRD, *FOURTH)
    }


def test_the_recordings_are_small() -> None:
    sizes = [path.stat().st_size for path in RECORDINGS.glob("*.jsonl")]
    assert len(sizes) == len(FIRST) + len(SECOND) + len(THIRD) + len(FOURTH)
    assert max(sizes) < 180_000
    assert sum(sizes) < 2_400_000


def test_the_page_has_what_the_command_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["scores_unseen"])
    assert scores_unseen.main() == 0
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines() if line]
    said = set(PAGE.splitlines())
    assert sum("thirds" in line for line in printed) == 126
    assert not [line for line in printed if line not in said]
    gains = [
        re.search(r"([+-]\d.\d+) \[(\S+), (\S+)\]", line)
        for line in printed
        if line.endswith(DEFAULT)
    ]
    found = [one.groups() for one in gains if one is not None]
    assert len(found) == 8
    for point, low, high in found:
        assert f"{point} ({low} to {high})" in README
