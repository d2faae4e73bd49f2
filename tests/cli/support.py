"""Running commands, in this process or in one of their own."""

from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner, Result

from snne_guard.cli.app import app


def run(*arguments: object, keys: str | None = None) -> Result:
    """Run ``snne-guard`` with arguments and what is typed at it."""
    return CliRunner().invoke(app, [str(one) for one in arguments], input=keys)


def apart(
    *arguments: str, program: str = "from snne_guard.cli import main; main()"
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own: asynchronous clients outlive no loop."""
    return subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
