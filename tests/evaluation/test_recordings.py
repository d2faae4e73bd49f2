from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.errors import InputError
from snne_guard.evaluation import (
    Question,
    Recording,
    read_questions,
    read_recordings,
    shard_of,
    write_recordings,
)
from tests.evaluation.support import ROWS, recording, write_jsonl

GOOD = b'{"id": "1", "question": "?", "main_answer": "a", "samples": ["b"]}'
HIDDEN = "the secret answer"


def line(**fields: object) -> bytes:
    usual = {"id": "1", "question": "?", "main_answer": HIDDEN, "samples": ["b"]}
    return json.dumps(usual | fields).encode()


def test_null_fields_say_no_more_than_missing_ones() -> None:
    assert recording(answers=None, label=None, settings=None) == recording()


def test_a_round_trip_keeps_all_fields(tmp_path: Path) -> None:
    rows = [
        {**ROWS[0], "token_logprobs": [[-0.1], [-0.2], None], "kind": {"deep": [1]}},
        {
            **ROWS[2],
            "context": "c",
            "main_logprobs": [-0.5],
            "settings": {"model": "m"},
        },
        {**ROWS[1], "question": None},
    ]
    path = write_jsonl(tmp_path / "in.jsonl", rows)
    out = tmp_path / "out.jsonl"
    write_recordings(out, read_recordings(path))
    assert [json.loads(text) for text in out.read_text().splitlines()] == rows


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=5,
        ),
    )
)
def test_unknown_fields_pass_through_untouched(extra: dict[str, object]) -> None:
    row = ROWS[0] | {f"x{name}": value for name, value in extra.items()}
    assert json.loads(json.dumps(Recording.from_dict(row).to_dict())) == row


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (b"", None),
        (b"{", "expected a JSON object: .* at column 2"),
        (b"\xff\xfe", "expected UTF-8, but byte 0 is not"),
        (b"1" * 5000, "expected a plain JSON object: a number is too long"),
        (b"[" * 100_000, "expected a plain JSON object: nested too deeply"),
        (b'{"id": "1"}', "question: Field required"),
        (line(samples=["a", None]), r"samples.1: Input should be a valid string"),
        (line(samples=["\ud800"]), "samples.0: "),
        (line(label=2), "label: Input should be less than or equal to 1"),
        (line(main_logprobs=[HIDDEN]), "main_logprobs.0"),
        (line(token_logprobs=[[-1], [-1]]), "expected one list for each of 1 samples"),
    ],
)
def test_a_damaged_line_is_named_and_quotes_nothing(
    bad: bytes, told: str | None
) -> None:
    lines = iter(read_recordings([GOOD, bad, GOOD.replace(b'"1"', b'"2"')]))
    assert next(lines).id == "1"
    if told is None:  # a blank line is passed over
        assert [row.id for row in lines] == ["2"]
        return
    with pytest.raises(InputError, match=told) as error:
        next(lines)
    assert str(error.value).startswith("input, line 2: ")
    assert HIDDEN not in str(error.value)


@given(st.binary(max_size=60))
def test_no_bytes_raise_anything_but_input_error(content: bytes) -> None:
    with contextlib.suppress(InputError):
        list(read_recordings([content]))


def test_an_id_that_comes_twice_is_refused() -> None:
    with pytest.raises(InputError, match="line 3: id: '1' is a duplicate"):
        list(read_recordings([GOOD, b"\n", GOOD]))


def test_questions_get_an_id_from_question_and_context() -> None:
    plain = Question.from_dict({"question": "Capital of France?"})
    assert plain.id == "q-f6b06248ab5c4909"
    other = Question.from_dict({"question": "Capital of France?", "context": "x"})
    assert other.id != plain.id
    assert other.prompt == "Context: x\n\nQuestion: Capital of France?"


@pytest.mark.parametrize("question", ["", " \n", None, 3])
def test_a_blank_question_is_refused(question: object) -> None:
    with pytest.raises(InputError, match="question"):
        Question.from_dict({"question": question})


def test_a_file_of_recordings_is_one_of_questions(tmp_path: Path) -> None:
    questions = list(read_questions(write_jsonl(tmp_path / "a.jsonl")))
    assert [one.id for one in questions] == ["1", "2", "3", "4"]
    assert questions[0].extra["main_answer"] == "Paris"


def test_what_json_cannot_hold_is_an_input_error(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    out.write_text("before")
    with pytest.raises(InputError, match="cannot be written as JSON"):
        write_recordings(out, [recording(score=float("nan"))])
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_parts_of_a_set_do_not_change() -> None:
    # Written down: a recording is drawn in parts, on several machines, over months.
    assert [shard_of(each, 3) for each in ("1", "q-86de8525172ae71e", "é", "")] == [
        *(3, 3, 1, 1)
    ]
    parts = [shard_of(str(number), 16) for number in range(3200)]
    assert {*parts} == {*range(1, 17)}
    assert all(150 < parts.count(part) < 250 for part in range(1, 17))
