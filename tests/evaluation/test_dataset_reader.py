"""Questions of the paper's data sets, from files of questions."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import BadLine, Question
from snne_guard.evaluation.data.dataset_reader import read_dataset
from snne_guard.evaluation.data.datasets import DATASETS, dataset_named
from snne_guard.evaluation.recording.drawn import Drawn, as_fields
from tests.support.shared_folder import SHARED


def line(number: int, **fields: Any) -> dict[str, Any]:
    asked = {"id": f"q{number}", "question": f"What is {number}?"}
    return {**asked, "answers": [str(number)], **fields}


def lines(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def chosen(places: Sequence[int], size: int, *, seed: int = 10) -> list[int]:
    """Return what Python draws, as the authors do."""
    return random.Random(seed).sample(places, size)  # noqa: S311 - no secret


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return lines(tmp_path / "in.jsonl", [line(number) for number in range(20)])


def questions(*args: Any, **options: Any) -> list[Question]:
    rows = [row for _, row in read_dataset(*args, **options)]
    assert all(isinstance(row, Question) for row in rows)
    return [row for row in rows if isinstance(row, Question)]


def test_shots_are_taken_first_and_never_asked(file: Path) -> None:
    asked = questions("triviaqa", path=file)
    ids = [each.id for each in asked]
    places = chosen(range(20), 5)
    assert sorted(ids) == sorted(
        {f"q{place}" for place in range(20) if place not in places}
    )
    shown = "".join(
        f"Question: What is {place}?\nAnswer: {place}\n\n" for place in places
    )
    for each in asked:
        assert each.prompt == (
            "Answer the following question as briefly as possible.\n"
            f"{shown}Question: {each.text}\nAnswer:"
        )
        assert each.fields["prompt"] == each.prompt
        assert each.fields["dataset"] == "triviaqa"


def test_numbers_are_those_of_the_lines(file: Path) -> None:
    for number, row in read_dataset("triviaqa", path=file):
        assert isinstance(row, Question)
        assert row.id == f"q{number - 1}"


def test_the_choice_is_the_same_again_and_grows_with_the_limit(file: Path) -> None:
    every = [each.id for each in questions("squad", path=file)]
    assert [each.id for each in questions("squad", path=file)] == every
    for limit in (0, 1, 7, 15, 100):
        some = questions("squad", path=file, limit=limit)
        assert [each.id for each in some] == every[:limit]
    other = [each.id for each in questions("squad", path=file, seed=11)]
    assert other != every
    assert len(other) == len(every)


def test_no_more_than_the_paper_takes_but_on_request(tmp_path: Path) -> None:
    file = lines(tmp_path / "in.jsonl", [line(number) for number in range(450)])
    four_hundred = [each.id for each in questions("wmt14_fr_en", path=file)]
    places = chosen(range(450), 400, seed=42)
    assert four_hundred == [f"q{place}" for place in places]
    more = [each.id for each in questions("wmt14_fr_en", path=file, limit=1000)]
    assert more[:400] == four_hundred
    assert len(set(more)) == 450


def test_other_shots_than_in_the_paper(file: Path) -> None:
    two = questions("triviaqa", path=file, n_shots=2)
    assert two[0].prompt.count("Question:") == 3
    assert len(two) == 18
    none = questions("triviaqa", path=file, n_shots=0)
    assert none[0].prompt.count("Question:") == 1
    assert len(none) == 20


def test_only_answered_questions_are_shown_and_of_squad_asked(tmp_path: Path) -> None:
    empty: list[list[str]] = [[], [" "]]
    rows = [line(number) for number in range(6)]
    rows += [line(9 + place, answers=each) for place, each in enumerate(empty)]
    file = lines(tmp_path / "in.jsonl", [*rows, {"id": "q20", "question": "Why?"}])
    [squad] = questions("squad", path=file)
    assert int(squad.id[1:]) < 6
    others = {each.id for each in questions("triviaqa", path=file)}
    assert others == {squad.id, "q9", "q10", "q20"}


def test_too_few_questions_with_answers(tmp_path: Path) -> None:
    file = lines(tmp_path / "in.jsonl", [line(1), line(2)])
    with pytest.raises(InputError, match="expected at least 5 questions with answers"):
        questions("nq_open", path=file)
    assert len(questions("nq_open", path=file, n_shots=1)) == 1


def test_bad_lines_come_first(file: Path) -> None:
    file.write_bytes(b"nonsense\n" + file.read_bytes() + b'{"id": "q3"}\n')
    rows = list(read_dataset("triviaqa", path=file, limit=1))
    assert [number for number, row in rows if isinstance(row, BadLine)] == [1, 22]
    assert isinstance(rows[2][1], Question)
    with pytest.raises(InputError, match="line 1: expected a JSON object"):
        list(read_dataset("triviaqa", path=file, strict=True))


def test_a_question_mark_is_added_for_nq_where_there_is_none(tmp_path: Path) -> None:
    rows = [line(1, question="who sang it"), line(2, question="who?")]
    file = lines(tmp_path / "in.jsonl", rows)
    found = {each.id: each for each in questions("nq_open", path=file, n_shots=0)}
    assert found["q1"].text == found["q1"].fields["question"] == "who sang it?"
    assert found["q1"].prompt.endswith("Question: who sang it?\nAnswer:")
    assert found["q2"].text == "who?"


def test_what_a_recording_says(tmp_path: Path) -> None:
    row = line(1, context="All.", title="x", dataset="other", prompt="Other?")
    file = lines(tmp_path / "in.jsonl", [row])
    [closed] = questions("squad", path=file, n_shots=0)
    assert as_fields(closed, Drawn(), {}) == {
        "id": "q1",
        "question": "What is 1?",
        "answers": ["1"],
        "title": "x",
        "dataset": "squad",
        "prompt": "Answer the following question as briefly as possible.\n"
        "Question: What is 1?\nAnswer:",
        "samples": [],
        "settings": {},
        "drawn": as_fields(closed, Drawn(), {})["drawn"],
    }
    [shown] = questions("svamp", path=file, n_shots=0)
    assert shown.fields["context"] == shown.context == "All."
    assert "Context: All.\nQuestion: What is 1?" in shown.prompt


@pytest.mark.parametrize("name", ["squad_v2", "", "SVAMP"])
def test_a_data_set_that_is_not_there(name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"expected a data set of .*'svamp'"):
        dataset_named(name)


def test_a_data_set_of_ones_own_is_taken_as_it_is(file: Path) -> None:
    own = DATASETS["xsum"]
    assert dataset_named(own) is own
    assert questions(own, path=file, limit=1)[0].prompt.startswith("Here's the text")


@pytest.mark.parametrize(
    ("name", "stem", "expected"),
    [
        ("squad", "squad", 181),
        ("triviaqa", "triviaqa", 228),
        ("nq_open", "nq_open", 233),
        ("svamp", "svamp", 236),
        ("bioasq", "bioasq", 245),
        ("wmt14_de_en", "mt_de_en_ntrex", 233),
        ("wmt14_fr_en", "mt_fr_en_ntrex", 233),
    ],
)
def test_real_questions(name: str, stem: str, expected: int) -> None:
    file = SHARED / "data" / f"{stem}.jsonl"
    if not file.exists():
        pytest.skip(f"no {stem}.jsonl")
    found = questions(name, path=file)
    assert len(found) == expected
    assert len({each.id for each in found}) == expected
    for each in found:
        assert each.prompt.count(each.text) >= 1
        assert "{" not in each.prompt.replace(each.text, "")[:60]
