"""Running a program of ``examples/`` as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_SWITCHED = {"SNNE_GUARD_DISABLED", "LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"}


@cache
def run(name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Return what a program did; each runs once for all tests of a process.

    Args:
        name: Its path in ``examples/``, without the ending.
        arguments: What stands behind it on the command line.
    """
    path = EXAMPLES / f"{name}.py"
    return subprocess.run(  # noqa: S603 - this interpreter, a program of this project
        [sys.executable, "-W", "error::DeprecationWarning:__main__", path, *arguments],
        cwd=path.parent,
        env={k: value for k, value in os.environ.items() if k not in _SWITCHED},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def printed(name: str) -> list[str]:
    """Return the lines that a program printed."""
    return [line.strip() for line in run(name).stdout.splitlines()]
