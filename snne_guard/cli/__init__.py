"""The ``snne-guard`` command: its base; each command has a file of its own.

A command's module defines a function of the same name, imports LangChain and models
inside of it only, and gets a line in ``COMMANDS``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING

from snne_guard.errors import MissingExtraError

if TYPE_CHECKING:
    import typer

    app: typer.Typer

__all__ = ["COMMANDS", "app", "build_app", "main"]

COMMANDS = (
    "ask",
    "audit",
    "calibrate",
    "demo",
    "doctor",
    "evaluate",
    "label",
    "record",
    "score",
)
"""The commands, in the order of the help."""


def build_app() -> typer.Typer:
    """Return the program with all its commands.

    Raises:
        MissingExtraError: The packages of the extra ``cli`` are not installed.
    """
    try:
        import typer
    except ModuleNotFoundError as error:
        package = error.name or "typer"
        raise MissingExtraError(package, extra="cli") from error
    program = typer.Typer(
        name="snne-guard",
        help="Know when a language model is making it up.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_show_locals=False,
    )
    program.callback()(_base)
    for name in COMMANDS:
        module = import_module(f"{__name__}.{name}")
        program.command(name)(getattr(module, name))
    return program


def _base() -> None:
    # With a callback a program of one command still asks for the command's name.
    pass


def main() -> None:
    """Run the program; a missing extra ends it with a message and status 2."""
    try:
        program = build_app()
    except MissingExtraError as error:
        sys.stderr.write(f"snne-guard: {error}\n")
        sys.exit(2)
    # What a stream cannot encode must not end the program: replies are in any script,
    # and a pipe of Windows knows 256 letters.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    program()


def __getattr__(name: str) -> typer.Typer:
    if name == "app":
        return build_app()
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
