"""``snne-guard evaluate``: the table, the files it writes, the exit status."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from snne_guard.cli._evaluation_table import print_evaluation
from snne_guard.evaluation import EvaluatedSet, Evaluation, MethodResult, Metric
from tests.cli.lines import write
from tests.support.evaluating import questions, row


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(build_app(), ["evaluate", *map(str, arguments)])


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """Return a file of thirty recordings."""
    return write(tmp_path / "labelled.jsonl", *questions(30))


def test_the_table(labelled: Path) -> None:
    result = run(labelled, "--methods", "snne,wsnne", "--draws", "20")

    assert result.exit_code == 0
    title, facts, *rest = result.stdout.splitlines()
    assert title == "labelled"
    assert facts == (
        "30 of 30 questions, 33.3% right by label; 4 samples with the delivered answer"
    )
    assert rest[0] == "beware: only 30 questions: the intervals are wide"
    assert rest[1].split() == [
        *("method", "box", "AUROC", "AUARC", "PRR", "normalised"),
        *("by", "length", "ms", "calls"),
    ]
    ranked = next(line for line in rest if line.startswith("snne[rouge_l]"))
    assert ranked.split()[1] == "black"
    assert ranked.count("(") == 4
    assert any(
        line
        == "not ranked: wsnne[content_f1], wsnne[rouge_l]: token log-probabilities "
        "are missing on 30 of 30 questions"
        for line in rest
    )


def test_every_set_is_told_apart(tmp_path: Path) -> None:
    rows = questions(12)
    for number, fields in enumerate(rows):
        fields["answer_protocol"] = "draw" if number % 2 else "near greedy"
    rows[0]["label"] = None
    path = write(tmp_path / "a.jsonl", *rows)

    result = run(path, "--methods", "snne", "--draws", "5", "--without-answer")

    assert result.exit_code == 0
    assert "a · near greedy, answers: near greedy" in result.stdout
    assert "a · draw, answers: draw" in result.stdout
    assert "left out: no grade: 1" in result.stdout
    assert "samples without the delivered answer" in result.stdout


def test_a_file_without_labels_alone_is_told_of(tmp_path: Path) -> None:
    rows = [{**fields, "label": None} for fields in questions(3)]

    result = run(write(tmp_path / "bare.jsonl", *rows), "--methods", "snne")

    assert result.exit_code == 2
    assert "beware: no question has a grade" in result.stdout


def test_the_figures_are_written(labelled: Path, tmp_path: Path) -> None:
    table, whole = tmp_path / "out.csv", tmp_path / "out.json"

    result = run(
        *(labelled, "--methods", "snne,lex_sim", "--draws", "5"),
        *("--csv", table, "--json", whole),
    )

    assert result.exit_code == 0
    evaluation = json.loads(whole.read_bytes())
    (one,) = evaluation["sets"]
    with table.open(newline="") as lines:
        rows = [*csv.DictReader(lines)]
    assert [row_["name"] for row_ in rows] == [
        method["name"] for method in one["methods"]
    ]
    assert [row_["auroc"] for row_ in rows] == [
        str(method["auroc"]["value"]) for method in one["methods"]
    ]


def test_a_bad_line_is_told_and_is_status_1(labelled: Path) -> None:
    labelled.write_bytes(labelled.read_bytes() + b"{\n")

    result = run(labelled, "--methods", "snne", "--draws", "5")

    assert result.exit_code == 1
    assert f"{labelled}: line 31: expected a JSON object" in result.stderr
    assert "30 of 30 questions" in result.stdout


def test_strict_stops_at_a_bad_line(labelled: Path) -> None:
    labelled.write_bytes(b"{\n" + labelled.read_bytes())

    result = run(labelled, "--strict")

    assert result.exit_code == 1
    assert f"{labelled}: line 1: expected a JSON object" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--methods", "sne"], "'sne'"),
        (["--tau", "0"], "tau"),
        (["--grader", "teacher"], "'teacher'"),
        (["--similarity", "rouge_2"], "'rouge_2'"),
        (["--ablate", "length"], "'length'"),
    ],
)
def test_wrong_usage_is_status_2(
    labelled: Path, arguments: list[str], told: str
) -> None:
    result = run(labelled, *arguments)

    assert result.exit_code == 2
    assert told in result.stderr


def test_a_file_that_is_not_there_is_status_2(tmp_path: Path) -> None:
    result = run(tmp_path / "none.jsonl")

    assert result.exit_code == 2
    assert "No such file" in result.stderr


def test_a_file_without_a_recording_is_told_of(tmp_path: Path, labelled: Path) -> None:
    empty = write(tmp_path / "empty.jsonl")

    result = run(labelled, empty, "--methods", "snne", "--draws", "5")

    assert result.exit_code == 0
    assert result.stderr == f"snne-guard: {empty}: there is no recording in it\n"


def test_nothing_to_rank_is_status_2(tmp_path: Path, labelled: Path) -> None:
    bare = [{**fields, "label": None} for fields in questions(5)]
    unlabelled = write(tmp_path / "bare.jsonl", *bare)
    empty = write(tmp_path / "empty.jsonl")
    options = ("--methods", "snne", "--draws", "5")

    for arguments in ((empty,), (labelled, "--samples", "99"), (unlabelled,)):
        result = run(*arguments, *options)
        assert result.exit_code == 2
        assert "no question of any file could be ranked" in result.stderr
    assert run(unlabelled, labelled, *options).exit_code == 0


def test_the_papers_setting(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *questions(12))
    whole = tmp_path / "out.json"

    run(path, "--paper", "--tau", "1", "--methods", "snne", "--json", whole)

    settings = json.loads(whole.read_bytes())["settings"]
    assert settings["include_answer"] is False
    assert settings["similarity"] == ["rouge_l_paper"]
    assert settings["tau"] == 1.0


def test_answers_are_graded_where_asked(tmp_path: Path) -> None:
    rows = [
        row(f"q{n}", "yes", f"w{n}", label=None, answers=["yes" if n % 2 else "no"])
        for n in range(12)
    ]

    result = run(
        *(write(tmp_path / "a.jsonl", *rows), "--methods", "snne"),
        *("--grader", "squad_f1", "--draws", "5"),
    )

    assert "12 of 12 questions, 50.0% right by squad_f1" in result.stdout


def test_a_figure_without_an_interval(capsys: pytest.CaptureFixture[str]) -> None:
    method = MethodResult(
        name="mine", method="mine", auroc=Metric(value=0.5), prr=Metric(value=None)
    )
    one = EvaluatedSet(name="a", path="a.jsonl", ids=("1",), methods=(method,))

    print_evaluation(Evaluation(sets=(one,)))

    told = capsys.readouterr().out.splitlines()
    assert told[-2].split() == ["mine", "black", ".500", "-", "-", "-", "0.00", "0"]


def test_a_narrow_terminal_gets_fewer_intervals_and_a_bar(labelled: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "snne_guard", "evaluate", str(labelled)]
    with subprocess.Popen(  # noqa: S603 - our own program
        [*command, "--methods", "snne", "--draws", "5"],
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "COLUMNS": "100", "TERM": "xterm"},
    ) as process:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # how the other end says that it is closed
            pass
    os.close(ours)

    assert process.returncode == 0
    table = shown.decode().splitlines()
    ranked = next(line for line in table if line.startswith("snne[rouge_l]"))
    assert ranked.count("(") == 1
    assert len(ranked) <= 101
    assert "30/30" in shown.decode()
