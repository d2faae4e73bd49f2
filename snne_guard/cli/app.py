"""The command line: its sub-commands, and errors as one line.

Errors of this library and of files end a command with one line and status 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from snne_guard import __version__
from snne_guard.cli.ask import ask
from snne_guard.cli.calibrate import calibrate
from snne_guard.cli.console import note
from snne_guard.cli.demo import demo
from snne_guard.cli.doctor import doctor
from snne_guard.cli.drift import drift
from snne_guard.cli.evaluate import evaluate
from snne_guard.cli.label import label
from snne_guard.cli.merge import merge
from snne_guard.cli.record import record
from snne_guard.cli.score import score
from snne_guard.cli.serve import serve
from snne_guard.errors import SnneGuardError

COMMANDS: tuple[Callable[..., None], ...] = (
    *(ask, calibrate, demo, doctor, drift, evaluate),
    *(label, merge, record, score, serve),
)
"""The sub-commands; the first sentence of each is its help in the list."""


class _Group(TyperGroup):
    """Turns errors that a user can do something about into one line."""

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


app = typer.Typer(
    name="snne-guard",
    help="Know when a language model is making it up.",
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    # Locals hold answers and keys.
    pretty_exceptions_show_locals=False,
    # Rich's help would end its lines where those of the source end.
    rich_markup_mode=None,
)
for command in COMMANDS:
    app.command()(command)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer's signature
    if wanted:
        typer.echo(f"snne-guard {__version__}")
        raise typer.Exit


@app.callback()
def _base(
    *,
    version: Annotated[
        bool,
        Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and exit.",
        ),
    ] = False,
) -> None:
    pass
