"""``snne-guard score``: bad lines, where it reads and writes, wrong usage."""

from pathlib import Path

import pytest

from tests.cli.lines import read, write
from tests.cli.score_command import ALIKE, APART, MIXED, run


def test_bad_lines_are_named_and_skipped(tmp_path: Path) -> None:
    source = write(
        tmp_path / "in.jsonl", ALIKE, b"nonsense", b"", {"id": "b"}, ALIKE, APART
    )
    output = tmp_path / "out.jsonl"

    result = run(source, "-o", output)

    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        "snne-guard: line 2: expected a JSON object, Expecting value at column 1",
        'snne-guard: line 4: expected a field "question"',
        'snne-guard: line 5: the id "a" has come before in this file, on line 1',
    ]
    assert [row["id"] for row in read(output)] == ["a", "d"]
    assert result.stdout.splitlines()[:4] == [
        "rows         5",
        "scored       2",
        "unscored     0",
        "skipped      3",
    ]


def test_a_recording_that_a_method_cannot_score_is_a_bad_line(tmp_path: Path) -> None:
    known = {"main_logprobs": [-0.1], "token_logprobs": [[-0.2], [-2.0]]}
    source = write(tmp_path / "in.jsonl", {**MIXED, **known}, ALIKE)

    result = run(source, "--method", "wsnne")

    assert result.exit_code == 1
    assert "line 2: expected mean_logprobs for method 'wsnne'" in result.stderr
    assert "scored       1" in result.stdout


def test_no_samples_and_no_answer_is_a_bad_line(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", {**ALIKE, "samples": []})

    result = run(source, "--without-answer")

    assert result.exit_code == 1
    assert "line 1: expected at least one answer, got none" in result.stderr


def test_strict_stops_at_the_first_bad_line_and_leaves_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ALIKE, b"x", b"y")
    folder = tmp_path / "out"
    folder.mkdir()

    result = run(source, "--strict", "-o", folder / "out.jsonl")

    assert result.exit_code == 1
    assert result.stderr.count("line 2") == 1
    assert "line 3" not in result.stderr
    assert result.stdout == ""
    assert list(folder.iterdir()) == []


def test_strict_leaves_an_earlier_output_as_it_was(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", ALIKE, b"x")
    output = tmp_path / "out.jsonl"
    output.write_text("before")

    run(source, "--strict", "-o", output)

    assert output.read_text() == "before"


def test_an_output_replaces_an_earlier_one_and_keeps_its_mode(
    recordings: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("before")
    output.chmod(0o640)

    assert run(recordings, "-o", output).exit_code == 0

    assert len(read(output)) == 3
    assert output.stat().st_mode & 0o777 == 0o640


def test_an_output_through_a_link_keeps_the_link(
    recordings: Path, tmp_path: Path
) -> None:
    target, link = tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(target)

    assert run(recordings, "-o", link).exit_code == 0

    assert link.is_symlink()
    assert len(read(target)) == 3


@pytest.mark.parametrize("kind", ["same", "symlink", "hardlink"])
def test_the_input_is_never_overwritten(
    recordings: Path, tmp_path: Path, kind: str
) -> None:
    before = recordings.read_bytes()
    output = recordings if kind == "same" else tmp_path / "other.jsonl"
    if kind == "symlink":
        output.symlink_to(recordings)
    if kind == "hardlink":
        output.hardlink_to(recordings)

    result = run(recordings, "-o", output)

    assert result.exit_code == 2
    assert "is the input itself" in result.stderr
    assert recordings.read_bytes() == before


def test_a_device_is_never_replaced(recordings: Path) -> None:
    result = run(recordings, "-o", "/dev/null")

    assert result.exit_code == 2
    assert "expected --output to be a regular file" in result.stderr
    assert Path("/dev/null").is_char_device()


def test_a_dash_is_standard_input(recordings: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    output.write_text("before")

    result = run("-", "-o", output, stdin=recordings.read_bytes())

    assert result.exit_code == 0
    assert "scored       3" in result.stdout
    assert len(read(output)) == 3


def test_an_empty_file_is_no_error(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.touch()

    result = run(source)

    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "rows         0"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl: No such file or directory"),
        (["."], ".: Is a directory"),
        (["in.jsonl", "-o", "no/such/folder.jsonl"], "No such file or directory"),
        (["in.jsonl", "--method", "best"], "expected method 'auto'"),
        (["in.jsonl", "--similarity", "cosine"], "expected similarity"),
        (["in.jsonl", "--tau", "0"], "finite number above 0"),
        (["in.jsonl", "--tau", "nan"], "finite number above 0"),
        (["in.jsonl", "--threshold", "1.5"], "threshold"),
        (["in.jsonl", "--threshold", "nan"], "threshold"),
    ],
)
def test_where_nothing_can_be_done_the_status_is_2(
    recordings: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(recordings.parent)

    result = run(*arguments)

    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""
