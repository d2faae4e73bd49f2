"""A file that is named again counts once, in the library as on the command line."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.evaluation import evaluate
from snne_guard.evaluation.comparison.files import each_once
from tests.cli.lines import write
from tests.support.evaluating import questions


def test_a_file_that_is_named_again_counts_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *questions(6))
    other = write(tmp_path / "b.jsonl", *questions(6))
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    again = tmp_path / "x" / ".." / "a.jsonl"
    (tmp_path / "x").mkdir()
    paths: list[str | Path] = [path, str(path), other, link, again]

    found = evaluate(paths, methods="snne", draws=2)
    told = CliRunner().invoke(
        build_app(),
        ["evaluate", *map(str, paths), "--methods", "snne", "--draws", "2"],
    )

    assert [one.name for one in found.sets] == ["a", "b"]
    assert len(evaluate(path, methods="snne", draws=2).sets) == 1
    assert told.exit_code == 0
    assert told.stderr.count("the same file is named again; it counts once") == 3


def test_files_that_are_not_there_are_told_apart_too(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "x" / ".." / "a"]
    again: list[Path] = []

    assert each_once(paths, on_again=again.append) == paths[:2]
    assert again == paths[2:]
