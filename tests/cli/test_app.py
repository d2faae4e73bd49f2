from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from rich.text import Text

from snne_guard import __version__
from snne_guard.cli import app as frame
from snne_guard.cli import main
from snne_guard.cli.app import COMMANDS
from snne_guard.cli.console import BadLines, check_outputs, note, progress, safe
from snne_guard.errors import ConfigurationError, InputError, SamplingError
from tests.cli.support import run


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Add a command that is called ``try``."""

    def add(function: Callable[[], None]) -> None:
        module = ModuleType("snne_guard.cli.try")
        vars(module)["try"] = function
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setitem(frame.COMMANDS, "try", "Try it.")

    return add


def test_the_help_lists_every_command() -> None:
    found = run("--help")
    assert found.exit_code == 0
    for name, text in COMMANDS.items():
        assert f" {name} " in found.stdout
        assert text in found.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_of_its_own(name: str) -> None:
    found = run(name, "--help")
    assert found.exit_code == 0, found.output
    assert "Usage:" in found.stdout


def test_the_help_loads_no_package_of_a_command() -> None:
    program = (
        "import sys\n"
        "from snne_guard.cli.app import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'pydantic', 'langchain_core', 'torch', 'openai'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)"
    )
    found = subprocess.run(  # noqa: S603 - this very interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


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


def test_text_of_anybodys_stands_still_on_a_terminal() -> None:
    hostile = "a\x1b]0;title\x07\x9b2J\r\u202eb\x7f\ud800\u2066"
    shown = safe(hostile)
    assert shown == "a\u241b]0;title\u2407\ufffd2J\u240d\ufffdb\u2421?\ufffd"
    assert safe("a\nb") == "a\u240ab"
    assert safe("a\nb\r", lines=True) == "a\nb\u240d"
    Console(file=sys.stderr).print(Text(shown))


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


def test_bad_lines_are_counted_or_raised(capsys: pytest.CaptureFixture[str]) -> None:
    error = InputError("line 2: no")
    bad = BadLines()
    bad.tell(error)
    assert bad.count == 1
    assert "line 2: no" in capsys.readouterr().err
    with pytest.raises(InputError, match="line 2"):
        BadLines(strict=True).tell(error)


def test_progress_yields_everything_and_is_silent_in_a_pipe(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(progress([1, 2, 3], what="[red]x")) == [1, 2, 3]
    assert capsys.readouterr().err == ""
