"""What the commands share: messages, progress bars, checks of the files they write."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.recordings import Question, Recording, shard_of
from snne_guard.files import replace_file
from snne_guard.text import printable

_PICTURE_WIDTH = 86

T = TypeVar("T")
Row = TypeVar("Row", Question, Recording)


def note(message: str) -> None:
    """Write one message to standard error."""
    typer.echo(f"snne-guard: {printable(message, lines=True)}", err=True)


@contextmanager
def page(picture: Path | None, *, title: str) -> Iterator[Console]:
    """Yield a console for a page; at the end it is saved where a picture is wanted."""
    if picture is None:
        yield Console(highlight=False)
        return
    console = Console(highlight=False, record=True, width=_PICTURE_WIDTH)
    yield console
    svg = console.export_svg(title=printable(title))
    # Without the fonts that the picture would load from elsewhere.
    svg = re.sub(r"@font-face \{[^}]*\}\s*", "", svg)
    picture.write_text(svg, encoding="utf-8")


def source(name: str) -> str | BinaryIO:
    """Return the file to read, standard input for ``-``."""
    return sys.stdin.buffer if name == "-" else name


def check_outputs(inputs: Sequence[str | Path], *outputs: Path | None) -> None:
    """Check that outputs can be written and overwrite neither an input nor another."""
    taken = {Path(name).resolve() for name in inputs}
    for path in filter(None, outputs):
        target = path.resolve()
        if target in taken:
            msg = f"cannot write {path}: the command uses this file for something else"
            raise ConfigurationError(msg)
        if not target.parent.is_dir() or (target.exists() and not target.is_file()):
            msg = f"cannot write {path}: expected a file in a folder that exists"
            raise ConfigurationError(msg)
        taken.add(target)


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all."""
    with replace_file(path) as stream:
        stream.write(text.encode())


def tell_left_out(counts: Mapping[str, int]) -> None:
    """Print how many of each kind were left out."""
    for what, count in counts.items():
        if count:
            typer.echo(f"{count} {what} were left out.")


def in_shard(rows: Iterable[Row], shard: str | None) -> Iterator[Row]:
    """Yield the rows of a part of all, as ``"3/16"``; None stands for all."""
    part, _, parts = ("1/1" if shard is None else shard).partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        msg = f"expected --shard K/N with K from 1 to N, got {shard!r}"
        raise ConfigurationError(msg)
    return (row for row in rows if shard_of(row.id, int(parts)) == int(part))


def lines_in(path: str | Path) -> int | None:
    """Return the number of lines of a file, None for standard input."""
    if path == "-":
        return None
    with Path(path).open("rb") as lines:
        return sum(1 for _ in lines)


def progress(items: Iterable[T], *, what: str, total: int | None = None) -> Iterator[T]:
    """Yield items below a bar on standard error, where somebody is looking."""
    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]} a second,"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("left"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task(printable(what), total=total, rate="?")
        for done, item in enumerate(items, start=1):
            yield item
            rate = done / max(bar.tasks[0].elapsed or 0, 1e-9)
            bar.update(task, advance=1, rate=f"{rate:.3g}")
