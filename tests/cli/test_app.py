from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from snne_guard import __version__
from snne_guard.cli import main
from snne_guard.cli.app import COMMANDS, app
from snne_guard.errors import InputError
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
        assert "Usage:" in run(each.__name__, "--help").stdout
    assert "..." not in found.stdout.partition("Commands:")[2]


def test_it_is_a_module_too() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "snne_guard", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == f"snne-guard {__version__}\n"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (InputError("a.jsonl, line 3: no"), "a.jsonl, line 3: no"),
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
