from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import (
    evaluate,
    read_labelled,
    read_questions,
    read_recordings,
    score_frame,
)
from snne_guard.evaluation.tables import Columns
from snne_guard.scorers import score
from tests.evaluation.support import recordings

pd = pytest.importorskip("pandas")


NAMED = {"question": ["Frage"], "answers": ["gold 1", "gold 2"]}


def csv(folder: Path, text: str, *, encoding: str = "utf-8") -> Path:
    path = folder / "q.csv"
    path.write_bytes(text.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("question,answers\nWhy?,Because\n", {}, ("Why?", ("Because",))),
        ('question;answers\nWhy?;"[""a"", ""b, c""]"\n', {}, ("Why?", ("a", "b, c"))),
        ("question\tanswers\nWhy?\t\n", {}, ("Why?", None)),
        ('\ufeffquestion\r\n"Two\r\n""so""?"\r\n', {}, ('Two\r\n"so"?', None)),
        ("Frage,gold 1,gold 2\nWarum?,a,b\n", NAMED, ("Warum?", ("a", "b"))),
        ("question,answers\n=1+1?,[]\n", {}, ("=1+1?", ())),
    ],
)  # fmt: skip
def test_a_csv_file_has_questions(
    tmp_path: Path, text: str, columns: Columns, expected: tuple[Any, ...]
) -> None:
    [found] = read_questions(csv(tmp_path, text), columns=columns)
    answers = found.answers
    assert (found.question, answers) == expected or answers == expected[1] == ()
    # The id is the one that a line of JSON would get.
    [line] = read_questions([b'{"question": "Why?"}'])
    assert (found.id == line.id) == (found.question == "Why?")


def test_context_id_and_every_other_column_are_kept(tmp_path: Path) -> None:
    text = "id,question,context,topic\n07,Why?,So.,sky\n8,How?,,\n"
    first, second = read_questions(csv(tmp_path, text))
    assert (first.id, first.context, first.extra) == ("07", "So.", {"topic": "sky"})
    assert (second.id, second.context, second.extra) == ("8", None, {})


def test_a_csv_file_has_recordings(tmp_path: Path) -> None:
    text = (
        "question,main_answer,samples,label,main_logprobs\n"
        'Why?,a,"[""a"", ""b""]",1,"[-0.5, -1]"\n'
        "How?,,b,0.0,\n"
    )
    first, second = read_recordings(csv(tmp_path, text))
    assert (first.main_answer, first.samples, first.label) == ("a", ("a", "b"), 1)
    assert first.main_logprobs == (-0.5, -1.0)
    # An answer without a text is one, and no sample takes its place.
    assert (second.main_answer, second.samples, second.label) == ("", ("b",), 0)
    assert [row.label for row in read_labelled(csv(tmp_path, text))] == [1, 0]


@pytest.mark.parametrize(
    ("content", "columns", "told"),
    [
        (b"question\nWhy?\nWhy?\n", {}, r"q\.csv, line 3: id: .* is a duplicate"),
        (b"question\nWhy?,b\n", {}, r"line 2: expected 1 cells, got more"),
        (b"text\nWhy?\n", {}, r"line 2: question: Field required"),
        (b"text\nWhy?\n", {"question": ["q"]}, r"expected a column 'q', got text"),
        (b'question,answers\nWhy?,"[1"\n', {}, r"line 2: expected JSON in a cell"),
        (b'question\n"Why?\n', {}, r"unexpected end of data"),
        (b"question\nWh\xff?\n", {}, r"expected UTF-8"),
        (b"question,answers\n" + b"x" * 200_000 + b",b\n", {}, r"field larger"),
    ],
)
def test_a_bad_row_is_named(
    tmp_path: Path, content: bytes, columns: Columns, told: str
) -> None:
    path = tmp_path / "q.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=told):
        list(read_questions(path, columns=columns))


def test_columns_are_those_of_a_table(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="whose columns can be named"):
        list(read_questions([b"{}"], columns={"question": ["q"]}))


LIBRARIES = ["pandas", "polars", "pyarrow"]


def frame(library: str, columns: dict[str, list[Any]]) -> Any:
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    return make(columns)


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_has_questions_and_recordings(library: str) -> None:
    data = frame(
        library,
        {
            "id": [1, 2],
            "question": ["Why?", None],
            "main_answer": ["a", "c"],
            "samples": [["a", "b"], ["c"]],
            "label": [1.0, None],
        },
    )
    first, second = read_recordings(data)
    assert (first.id, first.samples, first.label) == ("1", ("a", "b"), 1)
    assert (second.samples, second.label) == (("c",), None)
    [question] = read_questions(
        frame(library, {"q": ["Why?"]}), columns={"question": ["q"]}
    )
    assert question.question == "Why?"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_frame_is_scored_beside_its_columns(library: str) -> None:
    rows = [["Paris", "Paris", "Lyon"], ["a", "b", "c"], ["x", "x", "x"]]
    data = frame(library, {"q": ["1?", "2?", "3?"], "all": rows})
    import narwhals as nw

    scored = nw.from_native(
        score_frame(data, answers="all", question="q"), eager_only=True
    )
    expected = [score(row, question=f"{n}?") for n, row in enumerate(rows, start=1)]
    assert scored["uncertainty"].to_list() == [each.uncertainty for each in expected]
    assert scored["n"].to_list() == [3, 3, 3]
    assert scored["method"].to_list() == ["snne"] * 3
    assert scored.columns[:2] == ["q", "all"]
    assert type(scored.to_native()) is type(data)


def test_the_index_of_pandas_stays() -> None:
    data = pd.DataFrame({"a": ["x", "y"], "b": ["x", "z"]}, index=[7, 3])
    scored = score_frame(data, answers=["a", "b"], method="snne", similarity="exact")
    assert scored.loc[7, "uncertainty"] == 0
    assert scored.loc[3, "uncertainty"] == 1
    assert list(data.columns) == ["a", "b"]
    assert len(score_frame(data[:0], answers=["a", "b"])) == 0


def test_no_sample_takes_the_place_of_a_missing_answer() -> None:
    data = pd.DataFrame({"a": [None, "x"], "b": ["x", "x"], "c": ["x", None]})
    scored = score_frame(data, answers=["a", "b", "c"])
    assert scored["uncertainty"].isna().tolist() == [True, False]
    assert scored["reasons"].tolist() == ["answer_unreadable", "unreadable_samples"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"answers": "none"}, "row 1: expected a column 'none', got a"),
        ({"answers": "a", "question": "q"}, "row 1: expected a column 'q'"),
        ({"answers": "a", "method": "perplexity"}, "row 1: expected main_logprobs"),
    ],
)
def test_what_cannot_be_scored_is_named(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        score_frame(pd.DataFrame({"a": [["x", "y"]]}), **options)


def test_an_evaluation_is_a_frame() -> None:
    evaluation = evaluate(recordings(), methods="snne,dse[exact]", resamples=2)
    data = evaluation.to_frame()
    methods = ["snne[content_f1]", "dse[exact]", "answer_length"]
    assert list(data.columns) == ["id", "quality", "correct", "u", *methods]
    assert data["id"].tolist() == ["1", "2", "3", "4"]
    assert data["correct"].tolist() == [1, 1, 0, 0]
    assert data["u"].tolist()[0] == 0
