"""Questions: what a line may hold, ids for those without, the prompt."""

import json
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import BadLine, Question, parse_questions, read_questions
from tests.support.shared_folder import SHARED

FULL: dict[str, Any] = {
    "id": "q1",
    "question": "Capital of France?",
    "context": "A country.",
    "answers": ["Paris"],
    "type": {"of": "place"},
}


def parse_one(fields: object) -> Question | BadLine:
    [(number, row)] = parse_questions([json.dumps(fields).encode()])
    assert number == 1
    return row


def test_every_field_is_read_and_kept() -> None:
    assert parse_one(FULL) == Question(
        id="q1",
        text="Capital of France?",
        context="A country.",
        answers=("Paris",),
        fields=FULL,
    )


def test_a_question_is_enough() -> None:
    row = parse_one({"question": "Why?"})
    assert isinstance(row, Question)
    assert (row.context, row.answers) == (None, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, 'expected a field "question"'),
        ({"question": None}, 'expected "question" to be a text, got null'),
        ({"question": " "}, 'expected "question" to be a text, got an empty one'),
        ({"question": "?", "id": ""}, 'expected "id" to be a text, got an empty one'),
        ({"question": "?", "id": 1.5}, 'expected "id" to be a text, got a number'),
        ({"question": "?", "context": ["a"]}, '"context" to be a text or null'),
        ({"question": "?", "answers": "a"}, '"answers" to be a list of texts'),
        ("text", "expected a JSON object, got a text"),
    ],
)
def test_a_line_that_is_no_question(fields: object, message: str) -> None:
    row = parse_one(fields)
    assert isinstance(row, BadLine)
    assert message in row.message


def test_an_id_is_made_of_question_and_context() -> None:
    made = [
        Question.from_dict(fields).id
        for fields in (
            {"question": "ab"},
            {"question": "ab", "other": 1, "id": None},
            {"question": "ab", "context": ""},
            {"question": "a", "context": "b"},
            {"question": "ab", "context": "c"},
            {"question": "\ud800"},
        )
    ]
    assert made[0] == made[1] == made[2]
    assert len(set(made[2:])) == 4
    assert all(name.startswith("q-") and len(name) == 18 for name in made)


def test_the_same_question_twice_without_ids_is_told_with_both_lines() -> None:
    line = b'{"question": "Why?"}'
    rows = list(parse_questions([line, b"", line]))
    assert isinstance(rows[1][1], BadLine)
    assert rows[1][0] == 3
    assert rows[1][1].message.endswith("has come before in this file, on line 1")


def test_a_number_is_an_id_and_may_come_once() -> None:
    rows = list(parse_questions([b'{"id": 7, "question": "?"}'] * 2))
    assert isinstance(rows[0][1], Question)
    assert rows[0][1].id == "7"
    assert rows[1][1] == BadLine(
        message='the id "7" has come before in this file, on line 1'
    )


def test_the_context_stands_above_the_question() -> None:
    asked = Question.from_dict({"question": "Who?", "context": "Anna won."})
    assert asked.prompt == "Context: Anna won.\n\nQuestion: Who?"
    assert Question.from_dict({"question": "Who?", "context": ""}).prompt == "Who?"


def test_a_file_is_read_and_strict_ends_at_the_first_bad_line(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"question": "a"}\n\n{}\n{"question": "b"}')
    assert [number for number, _ in read_questions(path)] == [1, 3, 4]
    with pytest.raises(InputError, match="line 3: expected a field"):
        list(read_questions(path, strict=True))


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the data are not here")
def test_the_data_sets_are_read() -> None:
    for name in ("squad", "triviaqa", "nq_open", "svamp", "bioasq", "mt_de_en_ntrex"):
        found = list(read_questions(SHARED / "data" / f"{name}.jsonl", strict=True))
        assert len(found) > 200
        with_context = sum(
            isinstance(row, Question) and row.context is not None for _, row in found
        )
        assert with_context == (len(found) if name in {"squad", "bioasq"} else 0)
