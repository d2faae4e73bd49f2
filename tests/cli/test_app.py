from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from snne_guard import __version__
from snne_guard.cli import main
from snne_guard.cli.app import COMMANDS
from tests.cli.support import run


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
    ("content", "told"),
    [
        (None, ": No such file or directory\n"),
        ("nonsense", ", line 1: expected a JSON object"),
    ],
)
def test_errors_end_a_command_with_one_line(
    tmp_path: Path, content: str | None, told: str
) -> None:
    path = tmp_path / "red \x1b[31m and \u202e turned"
    if content is not None:
        path.write_text(content)
    found = run("score", path)
    assert found.exit_code == 2
    shown = f"snne-guard: {tmp_path}/red \u241b[31m and \ufffd turned"
    assert found.stderr.startswith(f"{shown}{told}")
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
