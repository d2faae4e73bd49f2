"""``snne-guard label``: what is shown, what keys do, what is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.cli._keys import Keys
from snne_guard.evaluation.labelling.labels import Labels
from snne_guard.evaluation.labelling.store import LabelStore
from tests.cli.lines import read, write
from tests.support.full_disk import full_after

KEYS = "r right   w wrong"


def row(name: str, **fields: Any) -> dict[str, Any]:
    own = {"question": f"What is {name}?", "main_answer": f"It is {name}."}
    return {"id": name, **own, "samples": ["x", "y"], **fields}


# In their random order.
C, D, A, B = (row(name) for name in "cdab")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "r.jsonl", A, B, C, D)


def run(*arguments: str | Path, keys: str = "") -> Result:
    lines = "".join(f"{key}\n" for key in keys)
    return CliRunner().invoke(build_app(), ["label", *map(str, arguments)], input=lines)


def labels(source: Path) -> dict[str, int | None]:
    kept = Labels.read(source.with_name("r.labels.jsonl"))
    return {name: one.label for name, one in kept.by_id.items()}


def shown(result: Result) -> list[str]:
    """Return the questions that were shown, in order."""
    lines = result.stdout.splitlines()
    return [line.split()[3][0] for line in lines if line.startswith("Question")]


def test_answers_are_graded_and_the_recording_stays(source: Path) -> None:
    before = source.read_bytes()

    result = run(source, keys="rwsq")

    assert result.exit_code == 0, result.output
    assert shown(result) == ["c", "d", "a", "b"]
    assert labels(source) == {"c": 1, "d": 0, "a": None}
    assert source.read_bytes() == before
    assert result.stdout.splitlines()[-5:] == [
        "right        1",
        "wrong        1",
        "skipped      1",
        "left         1",
        f"labels       {source.with_name('r.labels.jsonl')}",
    ]
    told = " ".join(result.stderr.split())
    assert f"snne-guard calibrate {source} --error-rate 0.1 --out guard.json" in told
    named = source.with_name("x y.jsonl")
    told = " ".join(run(source, "--labels", named, keys="rq").stderr.split())
    assert f"{source} --labels '{named}' --error-rate" in told
    assert "calibrate" not in run(source, "--labels", f"{named}2", keys="q").stderr


def test_the_same_command_goes_on(source: Path) -> None:
    run(source, keys="rw")
    result = run(source, keys="rr")
    assert shown(result) == ["a", "b"]
    assert labels(source) == {"c": 1, "d": 0, "a": 1, "b": 1}
    assert run(source).stdout.splitlines()[0] == "right        3"


def test_other_letters_and_words_do_too(source: Path) -> None:
    result = CliRunner().invoke(
        build_app(), ["label", str(source)], input="\nYes\n  no\n0\n1\n"
    )
    assert result.exit_code == 0
    assert labels(source) == {"c": 1, "d": 0, "a": 0, "b": 1}


def test_back_takes_a_label_back_and_goes_on_where_it_was(source: Path) -> None:
    result = run(source, keys="brwbbwr")
    assert "this is the first one" in result.stdout
    assert shown(result) == ["c", "d", "a", "d", "c", "a", "b"]
    assert labels(source) == {"c": 0, "d": 0, "a": 1}
    assert "so far right   k keeps it" in result.stdout


def test_back_reaches_what_was_graded_the_day_before(source: Path) -> None:
    run(source, keys="rw")
    result = run(source, keys="bkbsq")
    assert shown(result) == ["a", "d", "a", "d", "a"]
    assert labels(source) == {"c": 1, "d": None}


def test_the_last_answer_can_be_taken_back_until_it_ends(source: Path) -> None:
    run(source, keys="rrrb")
    assert labels(source) == {"c": 1, "d": 1, "a": 1}


def test_skipped_ones_are_asked_again_on_demand(source: Path) -> None:
    run(source, keys="ssrr")
    assert shown(run(source)) == []
    result = run(source, "--skipped", keys="wr")
    assert shown(result) == ["c", "d"]
    assert labels(source) == {"c": 0, "d": 1, "a": 1, "b": 1}


def test_what_a_grader_needs_is_shown_and_nothing_else(tmp_path: Path) -> None:
    told = {
        "context": "Paris\x1b[2J is\n\tthe capital.",
        "answers": ["Paris", "Paree"],
        "main_answer": "par is",
        "samples": ["SAMPLE"],
    }
    source = write(tmp_path / "r.jsonl", row("a", **told))
    result = run(source, keys="q")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert lines[1:7] == [
        "Context    Paris␛[2J is",
        "               the capital.",
        "Question   What is a?",
        "Reference  Paris",
        "           Paree",
        "Answer     par is",
    ]
    assert "SAMPLE" not in result.stdout
    assert "\x1b" not in result.stdout


def test_odd_answers_are_shown_as_what_they_are(tmp_path: Path) -> None:
    odd = row("a", question=None, main_answer=" ", answers=[])
    result = run(write(tmp_path / "r.jsonl", odd), keys="q")
    for told in ("(there was none)", "(empty)", "(it has no answer)"):
        assert told in result.stdout


def test_a_long_context_is_cut_until_it_is_asked_for(tmp_path: Path) -> None:
    long = row("a", context=f"{'word ' * 400}the end")
    source = write(tmp_path / "r.jsonl", long)
    assert "the end" not in run(source, keys="q").stdout
    assert "the end" in run(source, keys="cq").stdout


def test_keys_are_explained(source: Path) -> None:
    result = run(source, keys="xc?")
    assert result.stdout.count(KEYS) == 4
    assert "Skip (or space)" in result.stdout
    assert labels(source) == {}


def test_hardest_first_is_kept_in_the_labels(tmp_path: Path) -> None:
    alike = row("alike", main_answer="x", samples=["x", "x"])
    apart = row("zzz", main_answer="u", samples=["v", "w"])
    source = write(tmp_path / "r.jsonl", alike, apart)
    result = run(source, "--hardest-first", keys="r")
    assert shown(result) == ["z", "a"]
    assert "no promise" in result.stderr
    [line] = read(source.with_name("r.labels.jsonl"))
    assert (line["id"], line["order"], line["label"]) == ("zzz", "hardest_first", 1)
    # What a later sitting takes back was picked that way all the same.
    run(source, "--hardest-first", keys="bw")
    assert [one["order"] for one in read(source.with_name("r.labels.jsonl"))] == [
        "hardest_first"
    ] * 2


@pytest.mark.parametrize("first", [[], ["--hardest-first"]])
def test_the_two_orders_are_kept_apart(source: Path, first: list[str]) -> None:
    run(source, *first, keys="r")
    second = [] if first else ["--hardest-first"]
    result = run(source, *second, keys="r")
    assert result.exit_code == 2
    assert "name another file with --labels" in " ".join(result.stderr.split())
    assert len(labels(source)) == 1
    other = source.with_name("other.jsonl")
    assert run(source, *second, "--labels", other, keys="r").exit_code == 0
    assert len(read(other)) == 1


def test_a_label_that_the_recording_has_stays_unless_asked_for(tmp_path: Path) -> None:
    source = write(tmp_path / "r.jsonl", {**A, "label": 1}, B)
    result = run(source, keys="w")
    assert "1 of 2 answers have a label in the recording; --regrade" in result.stderr
    assert shown(result) == ["b"]
    assert shown(run(source, "--regrade", keys="w")) == ["a"]
    assert labels(source) == {"b": 0, "a": 0}


def test_labels_of_other_answers_are_told_and_asked_again(source: Path) -> None:
    run(source, keys="rrrr")
    write(source, {**A, "main_answer": "New."}, B, C, D)
    result = run(source, keys="w")
    assert "1 label is of another answer to the same question" in result.stderr
    assert shown(result) == ["a"]
    assert labels(source)["a"] == 0
    write(source, *({**each, "main_answer": "Newer."} for each in (A, B, C, D)))
    told = run(source, keys="q").stderr
    assert "4 labels are of other answers to the same questions" in told


def test_the_recording_is_written_with_its_labels(source: Path) -> None:
    write(source, A, b"nonsense", B, D)
    copy = source.with_name("copy.jsonl")
    result = run(source, "--output", copy, keys="rsw")
    assert result.exit_code == 1
    assert "line 2: expected a JSON object" in result.stderr
    raw = copy.read_bytes().splitlines()
    assert raw[:2] == source.read_bytes().splitlines()[:2]
    picked = {"label_order": "random"}
    assert read(write(copy, *raw[2:])) == [
        {**B, "label": 0, **picked},
        {**D, "label": 1, **picked},
    ]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--labels", "r.jsonl"], "is the recording itself"),
        (["--output", "r.jsonl"], "is the recording itself"),
        (["--output", "r.labels.jsonl"], "is where the labels are kept"),
    ],
)
def test_no_file_is_written_over(source: Path, options: list[str], told: str) -> None:
    before = source.read_bytes()
    result = run(source, options[0], source.with_name(options[1]), keys="r")
    assert result.exit_code == 2
    assert told in " ".join(result.stderr.split())
    assert source.read_bytes() == before
    assert not source.with_name("r.labels.jsonl").exists()


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path / "none.jsonl")
    assert result.exit_code == 2
    assert "No such file" in result.stderr


def test_a_label_that_was_torn_by_a_kill_is_told(source: Path) -> None:
    run(source, keys="r")
    kept = source.with_name("r.labels.jsonl")
    with kept.open("ab") as file:
        file.write(b'{"id": "d", "la')
    result = run(source, keys="w")
    assert "15 bytes of a torn line are now in" in " ".join(result.stderr.split())
    assert labels(source) == {"c": 1, "d": 0}


def test_two_sittings_on_one_file(source: Path) -> None:
    with LabelStore(source.with_name("r.labels.jsonl")):
        result = run(source, keys="r")
    assert result.exit_code == 2
    assert "another run is writing" in " ".join(result.stderr.split())


def reader(*chunks: str) -> Callable[[], str]:
    left = iter(chunks)
    return lambda: next(left)


def test_keys_that_were_typed_ahead_all_count() -> None:
    keys = Keys(reader("Rw", "\x1b[A", "s", ""))
    assert [keys.next() for _ in range(4)] == ["r", "w", "s", None]


def test_ctrl_c_within_what_was_typed_ahead() -> None:
    keys = Keys(reader("r\x03w"))
    assert keys.next() == "r"
    with pytest.raises(KeyboardInterrupt):
        keys.next()
    assert keys.next() == "w"


def test_ctrl_d_is_the_end() -> None:
    assert Keys(reader("\x04")).next() is None


def test_a_full_disk_is_told_with_the_name_of_the_file(source: Path) -> None:
    run(source, keys="rq")
    kept = source.with_name("r.labels.jsonl")
    before = kept.read_bytes()
    with full_after(len(before) + 9):
        result = run(source, keys="w")
    assert result.exit_code == 2
    assert f"snne-guard: {kept}: File too large" in result.stderr
    assert kept.read_bytes() == before
