"""What the commands share: messages and bars for people, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from snne_guard.errors import SnneGuardError

__all__ = [
    "BY_SIGNAL",
    "Bar",
    "byte_progress",
    "count_progress",
    "failure",
    "note",
    "one_line",
    "reported_errors",
    "system_error",
]

BY_SIGNAL = 128
"""What is added to the number of the signal that ended a program: its exit status."""

USAGE = 2
"""Exit status where nothing was done: a wrong option, a file that is not there."""


# Control characters, those of 8 bits too, and what turns the direction of writing.
_VISIBLE = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), 0xFFFD),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}


def one_line(text: str) -> str:
    r"""Return a text of anyone's that does nothing to a terminal but stand there.

    Control characters become the pictures that Unicode has of them, and what cannot
    be encoded a question mark.

    Example:
        >>> one_line("a\x1b[2J")
        'a␛[2J'
    """
    return text.encode("utf-8", "replace").decode("utf-8").translate(_VISIBLE)


def note(message: str, *, console: Console | None = None) -> None:
    """Write a line to standard error, above a progress bar if there is one."""
    console = console or Console(stderr=True)
    told = "\n".join(map(one_line, message.split("\n")))
    console.print(f"snne-guard: {told}", markup=False, highlight=False, soft_wrap=True)


def failure(message: str, *, status: int = USAGE) -> typer.Exit:
    """Write a message and return the exception that ends the program."""
    note(message)
    return typer.Exit(status)


def system_error(error: OSError) -> str:
    """Return what the system says is wrong, and with which file if it is one."""
    name = "" if error.filename is None else f"{error.filename}: "
    return f"{name}{error.strerror or error}"


@contextmanager
def reported_errors() -> Generator[None]:
    """Turn errors of this library and of files into a message and status 2."""
    try:
        yield
    except SnneGuardError as error:
        raise failure(str(error)) from error
    except OSError as error:
        raise failure(system_error(error)) from error


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


@contextmanager
def count_progress() -> Generator[Callable[[str, int, int], None]]:
    """Show how far each of several things is, where someone is looking.

    What is yielded takes its name, how much of it is done, and how much there is.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as shown:
        tasks: dict[str, TaskID] = {}

        def update(what: str, done: int, total: int) -> None:
            if what not in tasks:
                # The file's name alone, so that the bar beside it has room.
                tasks[what] = shown.add_task(one_line(Path(what).name), total=total)
            shown.update(tasks[what], completed=done)

        yield update
