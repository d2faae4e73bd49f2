"""What the commands share: messages and bars for people, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from snne_guard.errors import SnneGuardError

__all__ = ["Bar", "byte_progress", "failure", "note", "reported_errors"]

USAGE = 2
"""Exit status where nothing was done: a wrong option, a file that is not there."""


def note(message: str, *, console: Console | None = None) -> None:
    """Write a line to standard error, above a progress bar if there is one."""
    console = console or Console(stderr=True)
    console.print(
        f"snne-guard: {message}", markup=False, highlight=False, soft_wrap=True
    )


def failure(message: str, *, status: int = USAGE) -> typer.Exit:
    """Write a message and return the exception that ends the program."""
    note(message)
    return typer.Exit(status)


@contextmanager
def reported_errors() -> Generator[None]:
    """Turn errors of this library and of files into a message and status 2."""
    try:
        yield
    except SnneGuardError as error:
        raise failure(str(error)) from error
    except OSError as error:
        name = "" if error.filename is None else f"{error.filename}: "
        told = f"{name}{error.strerror or error}"
        raise failure(told) from error


class Bar:
    """Shows how far something is, as long as it is entered, on a terminal only.

    Args:
        columns: What is shown, from left to right.
        console: Where to show it.
    """

    def __init__(self, *columns: ProgressColumn, console: Console) -> None:
        self._progress = Progress(
            *columns,
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()


def byte_progress() -> Progress:
    """Return a bar that counts bytes; it shows only where someone is looking."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
