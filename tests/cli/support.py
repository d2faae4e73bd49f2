"""Running commands, in this process or in one of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner, Result

from snne_guard.cli.app import app
from tests.evaluation.support import write_jsonl


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


def record_command(folder: Path, url: str, *more: object, n: int = 4) -> list[str]:
    """Return a command that records ``0?``, ``1?``, ... in a folder, from a server."""
    folder.mkdir(exist_ok=True)
    rows = [{"id": str(i), "question": f"{i}?", "answers": ["Paris"]} for i in range(n)]
    asked = write_jsonl(folder / "q.jsonl", rows)
    at = ("--model", "openai:test-model", "--base-url", url)
    output = ("--output", folder / "r.jsonl", "--samples", 4)
    return [str(each) for each in ("record", asked, *at, *output, *more)]
