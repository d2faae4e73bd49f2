"""What the commands share: messages, progress bars, checks of the files they write."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.recordings import Question, Recording, shard_of
from snne_guard.text import printable

__all__ = [
    "check_outputs",
    "in_shard",
    "note",
    "page_console",
    "progress",
    "save_picture",
    "source",
]

_PICTURE_WIDTH = 86

T = TypeVar("T")
Row = TypeVar("Row", Question, Recording)


def note(message: str) -> None:
    """Write one message to standard error."""
    typer.echo(f"snne-guard: {printable(message, lines=True)}", err=True)


def page_console(picture: Path | None) -> Console:
    """Return a console for a page, which keeps it where a picture is wanted."""
    if picture is None:
        return Console(highlight=False)
    return Console(highlight=False, record=True, width=_PICTURE_WIDTH)


def save_picture(console: Console, path: Path | None, *, title: str) -> None:
    """Write what a console has kept as an SVG, if a picture is wanted."""
    if path is None:
        return
    page = console.export_svg(title=printable(title))
    # Without the fonts that the picture would load from elsewhere.
    page = re.sub(r"@font-face \{[^}]*\}\s*", "", page)
    path.write_text(page, encoding="utf-8")


def source(name: str) -> str | BinaryIO:
    """Return what to read: the file, or standard input for ``-``."""
    return sys.stdin.buffer if name == "-" else name


def check_outputs(
    inputs: Sequence[str | Path], outputs: Mapping[str, Path | None]
) -> None:
    """Check that outputs can be written and overwrite neither an input nor another.

    Args:
        inputs: Files that are read.
        outputs: Files to be written, by the options that name them.

    Raises:
        ConfigurationError: One cannot be written, or is another file as well.
    """
    taken = [Path(name).resolve() for name in inputs]
    for option, path in outputs.items():
        if path is None:
            continue
        target = path.resolve()
        if target in taken:
            msg = f"{option} {path} is used for another file; give it another name"
            raise ConfigurationError(msg)
        if (target.exists() and not target.is_file()) or not target.parent.is_dir():
            msg = f"expected {option} to be a file in a folder that exists, got {path}"
            raise ConfigurationError(msg)
        taken.append(target)


def in_shard(rows: Iterable[Row], shard: str | None) -> Iterator[Row]:
    """Yield the rows of a part of all, as ``"3/16"``; None stands for all.

    Raises:
        ConfigurationError: There is no such part.
    """
    part, _, parts = ("1/1" if shard is None else shard).partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        msg = f"expected --shard K/N with K from 1 to N, got {shard!r}"
        raise ConfigurationError(msg)
    return (row for row in rows if shard_of(row.id, int(parts)) == int(part))


def progress(items: Iterable[T], *, what: str) -> Iterator[T]:
    """Yield items below a bar on standard error, where somebody is looking."""
    console = Console(stderr=True)
    with Progress(
        console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        yield from bar.track(items, description=printable(what))
