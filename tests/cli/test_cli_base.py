"""The base of the command: help, the missing extra, ``python -m``."""

import io
import json
import re
import runpy
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import snne_guard.cli
from snne_guard.cli import COMMANDS, build_app, main
from snne_guard.errors import MissingExtraError

MAIN = str(Path(snne_guard.cli.__file__).parents[1] / "__main__.py")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_its_help(command: str) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(build_app(), [command, "--help"])

    assert result.exit_code == 0
    assert "Usage" in result.stdout
    shown = re.sub(r"[\s│]", "", result.stdout)
    program = typer.main.get_command(build_app())
    assert isinstance(program, typer.core.TyperGroup)
    for option in program.commands[command].params:
        said = getattr(option, "help", None) or ""
        assert re.sub(r"\s", "", said).replace("\\[", "[") in shown


def test_the_help_names_every_command() -> None:
    result = CliRunner().invoke(build_app(), ["--help"])

    assert result.exit_code == 0
    assert all(command in result.stdout for command in COMMANDS)


def test_the_app_is_built_when_asked_for() -> None:
    assert CliRunner().invoke(snne_guard.cli.app, ["--help"]).exit_code == 0
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = snne_guard.cli.nothing


def test_a_stream_of_few_letters_takes_texts_in_any_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "r.jsonl"
    fields = {"id": "1", "question": "Où?", "main_answer": "東京", "samples": ["x"]}
    source.write_text(json.dumps(fields), "utf-8")
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO("q"))
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="cp1252"))
    monkeypatch.setattr(sys, "stderr", io.StringIO())  # takes any letter
    monkeypatch.setattr(sys, "argv", ["snne-guard", "label", str(source)])

    with pytest.raises(SystemExit) as ended:
        main()

    sys.stdout.flush()
    assert ended.value.code == 0
    shown = raw.getvalue().decode("cp1252")
    assert "Où?" in shown
    assert r"\u6771\u4eac" in shown


@pytest.fixture
def no_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python is told that a module cannot be imported.
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.setattr(sys, "argv", ["snne-guard", "score", "--help"])


@pytest.mark.usefixtures("no_typer")
def test_without_its_extra_the_command_says_how_to_get_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main()

    assert exit_.value.code == 2
    told = capsys.readouterr()
    assert told.err == (
        "snne-guard: typer is not installed. "
        'Install it with: pip install "snne-guard[cli]"\n'
    )
    assert told.out == ""


@pytest.mark.usefixtures("no_typer")
def test_the_error_is_one_of_ours() -> None:
    with pytest.raises(MissingExtraError) as error:
        build_app()

    assert error.value.extra == "cli"


def test_python_m_runs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["snne-guard", "--help"])

    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(MAIN, run_name="__main__")

    assert exit_.value.code == 0
    assert "Usage" in capsys.readouterr().out


def test_importing_it_runs_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(MAIN, run_name="snne_guard.__main__")

    assert capsys.readouterr().out == ""
