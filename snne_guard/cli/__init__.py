"""The ``snne-guard`` command."""

from __future__ import annotations

import sys
from io import TextIOWrapper

__all__ = ["main"]


def main() -> None:
    """Run the command; a missing extra ends it with one line and status 2."""
    try:
        from snne_guard.cli.app import app
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("snne_guard"):
            raise
        sys.stderr.write(
            f"snne-guard: {error.name} is not installed. "
            'Install it with: pip install "snne-guard[cli]"\n'
        )
        sys.exit(2)
    # What a stream cannot encode must not end the program: answers are in any script,
    # and a pipe may know 256 letters only.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()
