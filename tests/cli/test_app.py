from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snne_guard import __version__
from snne_guard.cli import main
from snne_guard.cli.app import COMMANDS, app
from snne_guard.cli.console import check_outputs, note, progress
from snne_guard.errors import ConfigurationError, InputError, SamplingError
from tests.cli.support import run


@pytest.fixture
def command() -> Iterator[Callable[[Callable[[], None]], None]]:
    """Add a command that is called ``try``."""
    before = list(app.registered_commands)

    def add(function: Callable[[], None]) -> None:
        app.command("try")(function)

    yield add
    app.registered_commands[:] = before


def test_the_help_lists_every_command_with_a_whole_sentence() -> None:
    found = run("--help")
    assert found.exit_code == 0
    for each in COMMANDS:
        assert f"  {each.__name__} " in found.stdout
    assert "..." not in found.stdout.partition("Commands:")[2]


@pytest.mark.parametrize("name", [each.__name__ for each in COMMANDS])
def test_every_command_has_a_help_of_its_own(name: str) -> None:
    found = run(name, "--help")
    assert found.exit_code == 0, found.output
    assert "Usage:" in found.stdout


def test_the_version_is_printed() -> None:
    assert run("--version").stdout == f"snne-guard {__version__}\n"


def test_it_is_a_module_too() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "snne_guard", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"snne-guard {__version__}\n"


def test_an_unknown_command_is_refused_with_a_suggestion() -> None:
    found = run("evaluat")
    assert found.exit_code == 2
    assert "'evaluate'" in found.stderr


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ConfigurationError("expected this, got that"), "expected this, got that"),
        (InputError("a.jsonl, line 3: no"), "a.jsonl, line 3: no"),
        (SamplingError("nothing came"), "nothing came"),
        (FileNotFoundError(2, "No such file or directory", "x"), "x: No such file"),
        (
            InputError("red \x1b[31m and \u202e turned"),
            "red \u241b[31m and \ufffd turned",
        ),
    ],
)
def test_errors_end_a_command_with_one_line(
    command: Callable[..., None], error: Exception, told: str
) -> None:
    def fail() -> None:
        raise error

    command(fail)
    found = run("try")
    assert found.exit_code == 2
    assert found.stderr.startswith(f"snne-guard: {told}")
    assert len(found.stderr.splitlines()) == 1
    assert found.stdout == ""


def test_a_fault_of_the_program_is_not_hidden(command: Callable[..., None]) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    command(fail)
    assert isinstance(run("try").exception, ZeroDivisionError)


def test_a_missing_extra_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "snne_guard.cli.app")
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err == (
        "snne-guard: typer is not installed. "
        'Install it with: pip install "snne-guard[cli]"\n'
    )


def test_a_note_has_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    note("[bold]a[/bold] :smile: " + "x" * 200)
    assert capsys.readouterr().err == (
        "snne-guard: [bold]a[/bold] :smile: " + "x" * 200 + "\n"
    )


def test_outputs_overwrite_nothing(tmp_path: Path) -> None:
    source, new = tmp_path / "a", tmp_path / "b"
    source.touch()
    check_outputs([source], {"--csv": new, "--json": None})
    for outputs in (
        {"--csv": source},
        {"--csv": tmp_path / "." / "a"},
        {"--csv": new, "--json": new},
        {"--csv": tmp_path},
        {"--csv": tmp_path / "none" / "b"},
    ):
        with pytest.raises(ConfigurationError, match="--"):
            check_outputs([source], outputs)


def test_progress_yields_everything_and_is_silent_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(progress([1, 2, 3], what="[red]x")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
