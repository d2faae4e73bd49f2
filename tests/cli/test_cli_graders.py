"""Graders as ``snne-guard evaluate`` names them: a judge, a function, a wrong name."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from snne_guard.cli import build_app
from tests.cli.lines import write
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.evaluating import row


def run(*arguments: str | Path) -> Result:
    fixed = ["--methods", "snne", "--draws", "5"]
    return CliRunner().invoke(build_app(), ["evaluate", *map(str, arguments), *fixed])


@pytest.fixture
def unlabelled(tmp_path: Path) -> Path:
    """Return a file of twenty recordings with references."""
    rows = [
        row(f"q{n}", "a", answers=["yes", "b"], label=None) | {"main_answer": f"x{n}"}
        for n in range(20)
    ]
    return write(tmp_path / "unlabelled.jsonl", *rows)


def script(request: Request) -> Reply:
    if "x7\n" in request.prompt:
        return Reply(texts=("Who knows",))
    return Reply(texts=("yes" if "1\n</proposed>" in request.prompt else "No.",))


def test_a_judge_grades_and_is_counted(
    unlabelled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")
    with ChatServer(script) as server:
        monkeypatch.setenv("OPENAI_API_BASE", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = run(
            unlabelled, "--grader", "squad_em", "--second-grader", "judge:openai:m"
        )
        asked = list(server.requests)

    assert result.exit_code == 0
    assert "squad_em and judge:openai:m agree on" in result.stdout
    assert "judge:openai:m was asked 20 times; 1 verdicts were" in result.stderr
    assert {request.body["temperature"] for request in asked} == {0}


def test_a_judge_without_a_model(unlabelled: Path) -> None:
    result = run(unlabelled, "--grader", "judge")

    assert result.exit_code == 2
    assert "a model behind the grader 'judge', as judge:openai:NAME" in result.stderr


def test_a_function_of_the_current_folder(
    unlabelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cli_grading_rules.py").write_text(
        "def even(recording):\n    return int(recording.main_answer[1:]) % 2 == 0\n"
    )
    result = run(unlabelled, "--grader", "cli_grading_rules:even")

    assert result.exit_code == 0
    assert "50.0% right by cli_grading_rules:even" in result.stdout


@pytest.mark.parametrize("name", ["squad", "no_such_module_here:f"])
def test_a_name_that_is_none(unlabelled: Path, name: str) -> None:
    result = run(unlabelled, "--grader", name)

    assert result.exit_code == 2
    assert "expected a " in result.stderr
