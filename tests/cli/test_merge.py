"""Shards: each drawn by itself, whatever ends it, and joined into one recording."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from snne_guard.evaluation import Recording
from tests.cli.support import apart, record_command, run
from tests.evaluation.support import write_jsonl, write_labels
from tests.support.openai_server import Server, always

N = 24


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with Server(always("Paris", delay=0.01)) as server:
        yield server.url


@pytest.fixture(scope="module")
def made(url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the questions and the three parts, drawn once."""
    folder = tmp_path_factory.mktemp("parts")
    for number in (1, 2, 3):
        done = apart(*command(folder, number, url))
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def parts(made: Path, tmp_path: Path) -> list[Path]:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return [part(tmp_path, number) for number in (1, 2, 3)]


@pytest.fixture
def questions(parts: list[Path]) -> Path:
    return parts[0].with_name("q.jsonl")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "all.jsonl"


def part(folder: Path, number: int) -> Path:
    return folder / f"part-{number}-of-3.jsonl"


def command(folder: Path, number: int, url: str) -> list[str]:
    shard = ("--shard", f"{number}/3", "--output", part(folder, number))
    return record_command(folder, url, *shard, "--samples", "2", n=N)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_shards_are_joined(parts: list[Path], output: Path, questions: Path) -> None:
    result = run("merge", *parts, "--output", output, "--questions", questions)
    assert result.exit_code == 0, result.output
    assert "24 questions are in" in result.stdout
    rows = [row for path in parts for row in read(path)]
    known = [{k: v for k, v in row.items() if v is not None} for row in rows]
    assert read(output) == known
    assert {row["id"] for row in read(output)} == {str(n) for n in range(N)}


def test_what_fails_and_labels_beside_a_part_are_passed_over(
    parts: list[Path], output: Path, questions: Path
) -> None:
    failed = parts[0].with_suffix(".failed.jsonl")
    failed.write_text(json.dumps(read(parts[0])[0] | {"error": "too few"}) + "\n")
    labels = parts[0].with_suffix(".labels.jsonl")
    labels.write_text('{"id": "1", "label": 1, "answer": "0123"}\n')
    result = run("merge", *parts, failed, labels, "--output", output)
    assert result.exit_code == 0, result.stderr
    assert len(read(output)) == N


def test_the_labels_of_the_parts_are_kept(parts: list[Path], output: Path) -> None:
    graded = [Recording.from_dict(row) for row in read(parts[0])]
    write_labels(parts[0], 1, graded)
    assert run("merge", *parts, "--output", output).exit_code == 0
    labelled = {row["id"] for row in read(output) if row.get("label") == 1}
    assert labelled == {row.id for row in graded}


def test_a_question_that_failed_in_a_part_is_named(
    parts: list[Path], output: Path
) -> None:
    row, *others = parts[0].read_text().splitlines(keepends=True)
    parts[0].write_text("".join(others))
    failed = parts[0].with_suffix(".failed.jsonl")
    failed.write_text(row + others[0] + row + '{"id": "to')  # one was drawn since
    result = run("merge", *parts, "--output", output)
    assert result.exit_code == 1
    assert f"missing (1): '{json.loads(row)['id']}'\n" in result.stderr
    assert len(read(output)) == N - 1


def test_a_missing_shard_is_named_and_the_rest_written(
    parts: list[Path], output: Path, questions: Path
) -> None:
    result = run("merge", *parts[1:], "--output", output)
    assert result.exit_code == 1
    assert "missing (1): 'shard 1/3'\n" in result.stderr
    assert len(read(output)) == N - len(read(parts[0]))
    lost = read(parts[0])[0]["id"]
    parts[0].write_text("".join(parts[0].read_text().splitlines(keepends=True)[1:]))
    result = run("merge", *parts, "-o", output, "--questions", questions)
    assert result.exit_code == 1
    assert f"missing (1): '{lost}'\n" in result.stderr


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda row: row, "is in"),
        (
            lambda row: row | {"settings": row["settings"] | {"temperature": 2}},
            "other settings: temperature was 1.0, here it is 2",
        ),
        (lambda row: row | {"samples": "none"}, "other.jsonl, line 1: samples"),
    ],
    ids=["shard twice", "other settings", "no recording"],
)
def test_parts_that_do_not_fit_leave_everything_as_it_was(
    parts: list[Path], output: Path, questions: Path, change: Any, why: str
) -> None:
    other = questions.with_name("other.jsonl")
    write_jsonl(other, [change(read(parts[0])[0])])
    output.write_text("as it was")
    before = {path: path.read_bytes() for path in questions.parent.iterdir()}
    result = run("merge", *parts, other, "--output", output)
    assert result.exit_code == 2
    assert why in result.stderr
    assert "other.jsonl" in result.stderr
    assert {path: path.read_bytes() for path in questions.parent.iterdir()} == before


@pytest.mark.parametrize("shard", ["0/3", "4/3", "a/b"])
def test_a_shard_that_cannot_be_is_refused(tmp_path: Path, shard: str) -> None:
    result = run(*record_command(tmp_path, "http://127.0.0.1:1", "--shard", shard))
    assert result.exit_code == 2
    assert "expected --shard K/N with K from 1 to N" in result.stderr
    assert not (tmp_path / "r.jsonl").exists()


_SMALL_DISK = """
import resource
from snne_guard.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows limits no file's size")
def test_a_full_disk_ends_a_shard_and_a_merge_and_nothing_is_lost(
    parts: list[Path], output: Path, url: str
) -> None:
    # A file that may not grow stands in for a disk that is full.
    parts[0].unlink()
    full = apart(*command(output.parent, 1, url), program=_SMALL_DISK)
    assert full.returncode == 2, full.stderr
    assert "File too large" in full.stderr
    kept = read(parts[0])
    assert kept
    again = apart(*command(output.parent, 1, url))
    assert again.returncode == 0, again.stderr
    assert read(parts[0])[: len(kept)] == kept
    merging = ["merge", *map(str, parts), "--output", str(output)]
    full = apart(*merging, program=_SMALL_DISK)
    assert full.returncode == 2, full.stderr
    assert "File too large" in full.stderr
    assert not output.exists()
    assert not list(output.parent.glob(".all*"))
    assert run(*merging).exit_code == 0
