"""The frame of the command: its sub-commands, loaded when they are called for.

A sub-command is a function of the same name in a module of the same name, with a line
in ``COMMANDS``. Errors of this library and of files end it with one line and status 2.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from snne_guard.cli.console import note
from snne_guard.errors import SnneGuardError

__all__ = ["COMMANDS", "app"]

COMMANDS = {
    "ask": "Ask a model and see how uncertain its answer is.",
    "calibrate": "Choose a threshold from graded answers.",
    "demo": "Watch the guard work, offline, with a small model.",
    "doctor": "Check whether a model can be guarded.",
    "drift": "Say whether uncertainties have moved since the calibration.",
    "evaluate": "Compare uncertainty methods on recordings.",
    "label": "Grade recorded answers by hand.",
    "record": "Ask a model a file of questions and keep what it says.",
    "score": "Score recorded answers.",
}
"""The sub-commands and what the help says of each."""


class _LazyGroup(TyperGroup):
    """Lists commands without importing them, and imports the one that is run."""

    def __init__(self, **attributes: Any) -> None:  # noqa: ANN401 - typer's own
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=text) for name, text in COMMANDS.items()
        }

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - typer vendors click's types
        name, _, rest = super().resolve_command(ctx, args)
        return name, _load(str(name)), rest

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - typer vendors click's types
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except SnneGuardError as error:
            note(str(error))
        except OSError as error:
            name = "" if error.filename is None else f"{error.filename}: "
            note(f"{name}{error.strerror or error}")
        raise typer.Exit(2)


def _load(name: str) -> Any:  # noqa: ANN401 - typer vendors click's types
    """Import a sub-command and make typer's command of it."""
    module = import_module(f"snne_guard.cli.{name}")
    function = getattr(module, name)
    single = typer.Typer(add_completion=False, pretty_exceptions_show_locals=False)
    single.command(name, help=_unwrapped(function.__doc__ or ""))(function)
    return typer.main.get_command(single)


def _unwrapped(text: str) -> str:
    # The terminal wraps lines; those of the source would end in the middle of it.
    return re.sub(r"(?<=\S)\n[ ]*(?=\S)", " ", text)


app = typer.Typer(
    name="snne-guard",
    help="Know when a language model is making it up.",
    cls=_LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    # Locals hold answers and keys.
    pretty_exceptions_show_locals=False,
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature
    if wanted:
        from snne_guard import __version__

        typer.echo(f"snne-guard {__version__}")
        raise typer.Exit


@app.callback()
def _base(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print it."
        ),
    ] = False,
) -> None:
    pass
