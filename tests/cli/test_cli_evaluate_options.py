"""``snne-guard evaluate``: what is refused before a line is read."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.cli.lines import write
from tests.support.evaluating import questions


def run(*arguments: str | Path) -> Result:
    quick = ["--methods", "snne", "--draws", "2"]
    return CliRunner().invoke(
        build_app(), ["evaluate", *quick, *map(str, arguments)], env={"COLUMNS": "200"}
    )


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    return write(tmp_path / "labelled.jsonl", *questions(6))


@pytest.mark.parametrize("option", ["--csv", "--json", "--html"])
def test_a_recording_is_never_overwritten(
    labelled: Path, tmp_path: Path, option: str
) -> None:
    before = labelled.read_bytes()
    link, twin = tmp_path / "link", tmp_path / "twin"
    link.symlink_to(labelled)
    os.link(labelled, twin)
    for output in (labelled, tmp_path / "." / "labelled.jsonl", link, twin):
        result = run(labelled, option, output)
        assert result.exit_code == 2
        assert f"{option} {output} is a file that is read" in result.stderr
        assert result.stdout == ""
        assert labelled.read_bytes() == before


def test_outputs_do_not_overwrite_each_other(labelled: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"

    result = run(labelled, "--csv", output, "--json", tmp_path / "." / "out")

    assert result.exit_code == 2
    assert "--csv and --json name the same file" in result.stderr
    assert not output.exists()


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("none/out.csv", "is not there"),
        ("labelled.jsonl/out.csv", "is not there"),
        (".", "regular file"),
    ],
)
def test_an_output_that_cannot_be_is_refused_at_once(
    labelled: Path, tmp_path: Path, output: str, told: str
) -> None:
    result = run(labelled, "--csv", tmp_path / output)

    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs Linux's /proc")
def test_a_folder_that_takes_no_files_is_refused_at_once(labelled: Path) -> None:
    result = run(labelled, "--csv", "/proc/out.csv")

    assert result.exit_code == 2
    assert "cannot be written to" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--paper", "--similarity", "exact"], "--paper compares by rouge_l_paper"),
        (["--paper", "--tau", "9"], "--paper sets tau to 1, got --tau 9"),
        (["--no-cache", "--cache", "kept"], "leave one off"),
        (["--similarity", " , "], "--similarity names nothing"),
        (["--methods", ""], "--methods names nothing"),
        (["--by", "datset"], "no recording has a field 'datset'"),
    ],
)
def test_options_that_contradict_or_say_nothing(
    labelled: Path, arguments: list[str], told: str
) -> None:
    result = run(labelled, *arguments)

    assert result.exit_code == 2
    assert told in result.stderr
    assert result.stdout == ""


def test_options_that_say_the_same_as_the_paper(labelled: Path) -> None:
    same = ["--similarity", "rouge_l_paper", "--tau", "1", "--without-answer"]

    result = run(labelled, "--paper", *same)

    assert result.exit_code == 0
    assert "samples without the delivered answer" in result.stdout


def test_a_field_of_one_file_is_enough_to_split_by(
    labelled: Path, tmp_path: Path
) -> None:
    rows = [{**fields, "dataset": "squad"} for fields in questions(6)]
    other = write(tmp_path / "other.jsonl", b"{", *rows)

    result = run(labelled, other, "--by", "dataset")

    assert result.exit_code == 1
    assert "labelled · no dataset\n" in result.stdout
    assert "other · squad\n" in result.stdout


def test_without_a_recording_no_field_is_missed(tmp_path: Path) -> None:
    assert run(write(tmp_path / "empty.jsonl"), "--by", "dataset").exit_code == 2
    assert run(tmp_path, "--by", "dataset").exit_code == 2


def test_a_file_that_is_named_twice_counts_once(labelled: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    again.symlink_to(labelled)

    result = run(labelled, again, labelled, "--mean")

    assert result.exit_code == 0
    assert result.stderr.count("the same file is named again") == 2
    assert "mean of 1 sets" in result.stdout
