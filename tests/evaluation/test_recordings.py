"""Recordings: what a line may hold, what is wrong with the others, and ids."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import (
    BadLine,
    Recording,
    parse_recordings,
    read_recordings,
)
from tests.support.shared_folder import SHARED

FULL: dict[str, Any] = {
    "id": "q1",
    "question": "Capital of France?",
    "main_answer": "Paris",
    "samples": ["Paris", "Lyon"],
    "context": "A country.",
    "answers": ["Paris"],
    "main_logprobs": [-0.1],
    "token_logprobs": [[-0.1, -0.2], None],
    "label": 1,
    "settings": {"model": "m", "temperature": 1.0},
}
LEAST: dict[str, Any] = {"id": "q", "question": None, "main_answer": "", "samples": []}


def line_of(**changes: Any) -> bytes:
    return json.dumps({**FULL, **changes}).encode()


def parse_one(line: bytes) -> Recording | BadLine:
    [(number, row)] = parse_recordings([line])
    assert number == 1
    return row


def message_of(line: bytes) -> str:
    row = parse_one(line)
    assert isinstance(row, BadLine)
    return row.message


def test_every_field_is_read() -> None:
    assert parse_one(line_of()) == Recording(
        id="q1",
        question="Capital of France?",
        main_answer="Paris",
        samples=("Paris", "Lyon"),
        context="A country.",
        answers=("Paris",),
        main_logprobs=(-0.1,),
        token_logprobs=((-0.1, -0.2), None),
        label=1,
        settings={"model": "m", "temperature": 1.0},
        extra={},
    )


def test_four_fields_are_enough() -> None:
    row = parse_one(json.dumps(LEAST).encode())

    assert row == Recording(id="q", question=None, main_answer="", samples=())


def test_null_is_unknown() -> None:
    unknown = dict.fromkeys(
        ("context", "answers", "main_logprobs", "token_logprobs", "label", "settings")
    )

    assert parse_one(json.dumps({**LEAST, **unknown}).encode()) == Recording(
        id="q", question=None, main_answer="", samples=()
    )


def test_other_fields_pass_through_untouched() -> None:
    other = {"dataset": "nq", "nested": {"a": [1, None, 1.5]}, "score": 0.5}

    row = parse_one(line_of(**other))

    assert isinstance(row, Recording)
    assert row.extra == other


def test_a_recording_shows_no_text_in_its_repr() -> None:
    shown = repr(parse_one(line_of(other="hidden")))

    assert "q1" in shown
    for text in ("Capital", "Paris", "Lyon", "A country", "hidden"):
        assert text not in shown


@pytest.mark.parametrize(
    ("label", "expected"), [(0, 0), (1, 1), (0.0, 0), (1.0, 1), (True, 1)]
)
def test_labels(label: object, expected: int) -> None:
    row = parse_one(line_of(label=label))

    assert isinstance(row, Recording)
    assert row.label == expected
    assert type(row.label) is int


def test_a_whole_number_is_an_id() -> None:
    row = parse_one(line_of(id=17))

    assert isinstance(row, Recording)
    assert row.id == "17"


def test_minus_infinity_is_a_log_probability() -> None:
    row = parse_one(line_of(main_logprobs=[float("-inf")]))

    assert isinstance(row, Recording)
    assert row.main_logprobs == (float("-inf"),)


@pytest.mark.parametrize("name", ["id", "question", "main_answer", "samples"])
def test_a_field_that_must_be_there(name: str) -> None:
    fields = {key: value for key, value in FULL.items() if key != name}

    assert message_of(json.dumps(fields).encode()) == f'expected a field "{name}"'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": None}, '"id" to be a text, got null'),
        ({"id": ""}, '"id" to be a text, got an empty one'),
        ({"id": True}, '"id" to be a text, got true or false'),
        ({"id": 1.5}, '"id" to be a text, got a number'),
        ({"question": 5}, '"question" to be a text or null, got a number'),
        ({"main_answer": None}, '"main_answer" to be a text, got null'),
        ({"main_answer": ["a"]}, '"main_answer" to be a text, got a list'),
        ({"samples": "a"}, '"samples" to be a list of texts, got a text'),
        ({"samples": None}, '"samples" to be a list of texts, got null'),
        ({"samples": ["a", {}]}, '"samples" to be a list of texts, got an object in'),
        ({"context": ["a"]}, '"context" to be a text or null, got a list'),
        ({"answers": "a"}, '"answers" to be a list of texts, got a text'),
        ({"main_logprobs": -0.1}, '"main_logprobs" to be lists of numbers, got a num'),
        ({"main_logprobs": ["a"]}, '"main_logprobs" to be lists of numbers, got a te'),
        ({"main_logprobs": [True]}, "got true or false in them"),
        ({"main_logprobs": [0.5]}, "natural logarithms, at most 0, got 0.5"),
        ({"main_logprobs": [float("nan")]}, "natural logarithms, at most 0, got nan"),
        ({"main_logprobs": [-(10**400)]}, "within the range of a float"),
        ({"token_logprobs": "a"}, '"token_logprobs" to be a list of lists of numbers'),
        ({"token_logprobs": [[-1]]}, '"token_logprobs" of 2 samples, got 1'),
        ({"token_logprobs": [[-1], -2]}, '"token_logprobs" to be lists of numbers'),
        ({"label": 2}, '"label" to be 0, 1 or null, got 2'),
        ({"label": "1"}, '"label" to be 0, 1 or null, got a text'),
        ({"settings": []}, '"settings" to be an object, got a list'),
    ],
)
def test_a_field_of_another_kind(changes: dict[str, Any], message: str) -> None:
    assert message in message_of(line_of(**changes))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[1, 2]", "expected a JSON object, got a list"),
        (b"null", "expected a JSON object, got null"),
        (b'{"id": "a"', "expected a JSON object, Expecting ',' delimiter at column"),
        (b"nonsense", "expected a JSON object, Expecting value at column 1"),
        (b'{"id": "\xff"}', "expected UTF-8, byte 8 is not"),
        (b'{"id": ' + b"1" * 5000 + b"}", "expected plain JSON, got ValueError"),
        (b"[" * 100_000, "expected plain JSON, got RecursionError"),
    ],
)
def test_a_line_that_is_no_object(line: bytes, message: str) -> None:
    assert message in message_of(line)


def test_no_message_shows_what_an_answer_says() -> None:
    for changes in ({"label": "private"}, {"samples": ["private", 1]}, {"id": 1.5}):
        assert "private" not in message_of(line_of(main_answer="private", **changes))


def test_an_id_that_comes_twice() -> None:
    lines = [line_of(id=name) for name in ("a", "b", "a", "c", "b")]

    rows = list(parse_recordings(lines))

    assert [number for number, _ in rows] == [1, 2, 3, 4, 5]
    told = {n: row.message for n, row in rows if isinstance(row, BadLine)}
    assert told == {
        3: 'the id "a" has come before in this file, on line 1',
        5: 'the id "b" has come before in this file, on line 2',
    }


def test_a_bad_line_does_not_take_its_id() -> None:
    rows = list(parse_recordings([line_of(samples=None), line_of()]))

    assert isinstance(rows[1][1], Recording)


def test_half_a_surrogate_pair_is_an_id_too() -> None:
    rows = list(parse_recordings([line_of(id="\ud800"), line_of(id="\ud800")]))

    assert isinstance(rows[0][1], Recording)
    assert rows[1][1] == BadLine(
        message='the id "\\ud800" has come before in this file, on line 1'
    )


def test_blank_lines_are_passed_over_but_counted() -> None:
    rows = list(parse_recordings([b"\n", line_of(), b"  \r\n", b"x"]))

    assert [number for number, _ in rows] == [2, 4]


def test_a_byte_order_mark_is_no_fault() -> None:
    assert isinstance(parse_one(b"\xef\xbb\xbf" + line_of()), Recording)
    rows = list(parse_recordings([line_of(), b"\xef\xbb\xbf" + line_of(id="q2")]))
    assert isinstance(rows[1][1], BadLine)


def test_strict_ends_at_the_first_bad_line() -> None:
    rows = parse_recordings([line_of(), b"x", line_of(id="q2")], strict=True)

    assert next(rows)[0] == 1
    with pytest.raises(InputError, match="line 2: expected a JSON object"):
        next(rows)


def test_a_line_is_taken_only_when_it_is_needed() -> None:
    taken: list[int] = []

    def lines() -> Iterator[bytes]:
        for number in range(3):
            taken.append(number)
            yield line_of(id=str(number))

    rows = parse_recordings(lines())
    next(rows)
    assert taken == [0]
    next(rows)
    assert taken == [0, 1]


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(line_of() + b"\n" + b"x\n" + line_of(id="last"))

    rows = list(read_recordings(path))

    assert [type(row) for _, row in rows] == [Recording, BadLine, Recording]
    with pytest.raises(InputError, match="line 2"):
        list(read_recordings(str(path), strict=True))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        next(read_recordings(tmp_path / "none.jsonl"))


@pytest.mark.skipif(
    not (SHARED / "data").is_dir(), reason="the recorded generations are not here"
)
@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("generations_gsm8k_4systems", 348),
        ("generations_pot_aqua_codex", 143),
        ("generations_sac3_hotpot", 157),
        ("generations_sac3_nq", 136),
        ("generations_uqnlg_triviaqa", 296),
        ("generations_wikibio119_gpt35", 62),
        ("recorded_qwen15", 488),
    ],
)
def test_recorded_generations_have_no_bad_line(name: str, rows: int) -> None:
    read = list(read_recordings(SHARED / "data" / f"{name}.jsonl", strict=True))

    assert len(read) == rows
