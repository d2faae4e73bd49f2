"""``snne-guard evaluate --mean``: one table over all sets."""

import io
from pathlib import Path

from rich.console import Console
from typer.testing import CliRunner

from snne_guard.cli import build_app
from snne_guard.cli._evaluation_table import print_means
from snne_guard.evaluation.results import (
    EvaluatedSet,
    Evaluation,
    MethodResult,
    Metric,
)
from tests.cli.lines import write
from tests.support.evaluating import questions


def test_means_over_runs(tmp_path: Path) -> None:
    paths = []
    for run in range(3):
        rows = questions(12)
        for number, fields in enumerate(rows):
            fields["label"] = int((number + run) % 3 == 0)
        paths.append(str(write(tmp_path / f"run{run}.jsonl", *rows)))

    arguments = [*paths, "--methods", "snne,answer_length", "--draws", "2", "--mean"]
    result = CliRunner().invoke(build_app(), ["evaluate", *arguments])

    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    start = lines.index("mean of 3 sets ± standard deviation between them")
    assert lines[start + 1].split()[:4] == ["method", "box", "sets", "AUROC"]
    names = {line.split()[0]: line for line in lines[start + 2 :] if line}
    assert set(names) == {"snne[content_f1]", "snne[rouge_l]", "answer_length"}
    assert names["snne[rouge_l]"].split()[1:3] == ["black", "3"]
    assert names["snne[rouge_l]"].count("±") == 4


def test_figures_that_are_missing_or_stand_alone() -> None:
    row = MethodResult(
        name="ne",
        method="ne",
        white_box=True,
        auroc=Metric(value=0.5),
        auarc=Metric(value=0.25),
    )
    one = EvaluatedSet(name="a", path="a.jsonl", methods=(row,), accuracy=0.5)
    shown = io.StringIO()

    print_means(Evaluation(sets=(one,)), Console(file=shown))

    last = shown.getvalue().splitlines()[-1]
    assert last.split() == ["ne", "white", "1", ".500", ".250", "-", "-"]


def test_a_terminal_keeps_its_width() -> None:
    shown = io.StringIO()
    print_means(Evaluation(sets=()), Console(file=shown, force_terminal=True, width=90))
    assert "mean of 0 sets" in shown.getvalue()


def test_a_grader_may_go_before_the_labels(tmp_path: Path) -> None:
    rows = questions(9)
    for fields in rows:
        fields["answers"] = [fields["main_answer"]]
    path = str(write(tmp_path / "a.jsonl", *rows))
    options = [path, "--methods", "snne", "--draws", "2"]

    def facts(*more: str) -> str:
        result = CliRunner().invoke(build_app(), ["evaluate", *options, *more])
        assert result.exit_code == 0, result.output
        return result.stdout.splitlines()[1]

    assert "33.3% right by label;" in facts("--grader", "squad_f1")
    assert "100.0% right by squad_f1;" in facts("--grader", "squad_f1", "--regrade")


def test_to_regrade_a_grader_must_be_named(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.jsonl", *questions(3)))

    result = CliRunner().invoke(build_app(), ["evaluate", path, "--regrade"])

    assert result.exit_code == 2
    assert "name one with --grader" in result.stderr


def test_protocols_are_averaged_apart(tmp_path: Path) -> None:
    rows = questions(12)
    for number, fields in enumerate(rows):
        fields["answer_protocol"] = "draw" if number % 2 else "greedy"
    path = str(write(tmp_path / "a.jsonl", *rows))

    arguments = [path, "--methods", "snne", "--draws", "2", "--mean"]
    result = CliRunner().invoke(build_app(), ["evaluate", *arguments])

    assert result.exit_code == 0
    title = "mean of 1 sets ± standard deviation between them, answers: "
    assert f"{title}draw, right by label" in result.stdout
    assert f"{title}greedy, right by label" in result.stdout


def test_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    names = ["one/a.jsonl", "two/a.jsonl", "two/a.json", "b.jsonl"]
    paths = [tmp_path / name for name in names]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        write(path, *questions(3))

    arguments = [*map(str, paths), "--methods", "snne", "--draws", "2"]
    result = CliRunner().invoke(build_app(), ["evaluate", *arguments])

    lines = result.stdout.splitlines()
    assert {"one/a", str(paths[1]), str(paths[2]), "b"} <= {*lines}


def test_graded_answers_are_told_and_averaged_by_prr(tmp_path: Path) -> None:
    paths = []
    for run in range(2):
        rows = questions(12, seed=run)
        for number, fields in enumerate(rows):
            del fields["label"]
            fields["answers"] = [fields["main_answer"] + " so" * (number % 4)]
        paths.append(str(write(tmp_path / f"run{run}.jsonl", *rows)))
    labelled = str(write(tmp_path / "right.jsonl", *questions(12)))

    options = ["--methods", "snne", "--draws", "2", "--mean", "--grader", "rouge_l"]
    result = CliRunner().invoke(build_app(), ["evaluate", *paths, labelled, *options])

    assert result.exit_code == 0, result.output
    told = "not which are right: there is no AUROC, and PRR is the figure to look at"
    assert result.stdout.count(told) == 2
    lines = result.stdout.splitlines()
    title = "mean of 2 sets ± standard deviation between them, graded by "
    start = next(at for at, line in enumerate(lines) if line.startswith(title))
    cells = lines[start + 2].split()
    assert cells[:4] == ["snne[content_f1]", "black", "2", "-"]
    assert cells.count("±") == 3
    title = "mean of 1 sets ± standard deviation between them, right by "
    assert any(line.startswith(title) for line in lines)


def test_means_of_graded_answers_alone_say_by_whom(tmp_path: Path) -> None:
    rows = questions(12)
    for number, fields in enumerate(rows):
        del fields["label"]
        fields["answers"] = [fields["main_answer"] + " so" * (number % 4)]
    path = str(write(tmp_path / "a.jsonl", *rows))

    options = ["--methods", "snne", "--draws", "2", "--mean", "--grader", "rouge_l"]
    result = CliRunner().invoke(build_app(), ["evaluate", path, *options])

    assert (
        "mean of 1 sets ± standard deviation between them, graded by" in result.stdout
    )
