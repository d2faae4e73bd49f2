"""``snne-guard label``: answers of a recording, graded by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.prompt import Prompt
from rich.rule import Rule
from rich.text import Text

from snne_guard.cli.console import note
from snne_guard.evaluation import Label, LabelFile, Recording, read_recordings
from snne_guard.evaluation.label import (
    answer_digest,
    is_labelled,
    labels_path,
    random_order,
)
from snne_guard.text import printable

__all__ = ["label"]

_VERDICTS = {"r": 1, "w": 0}
_WORDS = {1: "right", 0: "wrong"}
_INTERRUPTED = 130


def label(
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING.jsonl", help="Whose answers to grade.")
    ],
) -> None:
    """Grade the answers of a recording by hand.

    Each takes one key and Enter. Answers come in a random order, so that those graded
    when you stop are a random sample, from which `snne-guard calibrate` can promise
    something. The same command goes on where it ended: each label is on the disk before
    the next answer is shown, in RECORDING.labels.jsonl; the recording itself never
    changes. Answers that you skip come again the next time. Neither uncertainty nor
    samples are shown, since who sees them grades by them.

    Exit status: 0 ended or quit; 2 wrong usage; 130 interrupted.
    """
    recorded = list(read_recordings(recording))
    rows = [row for row in recorded if row.label is None]
    if len(rows) < len(recorded):
        note(f"{len(recorded) - len(rows)} answers have a label in the recording")
    path, status = labels_path(recording), 0
    with LabelFile(path) as file:
        left = [row for row in rows if not is_labelled(row, file.labels)]
        try:
            _ask(Console(), file, random_order(left), rows)
        except KeyboardInterrupt:
            status = _INTERRUPTED
        counts = file.counts(rows)
    for word, count in counts.items():
        typer.echo(f"{word:<12} {count}")
    typer.echo(f"labels       {path}")
    raise typer.Exit(status)


def _ask(
    console: Console, file: LabelFile, asked: Sequence[Recording], rows: list[Recording]
) -> None:
    """Show answer after answer and write the label of each, until ``q``."""
    at = 0
    shown: Recording | None = None
    while at < len(asked):
        current = asked[at]
        if current is not shown:
            counts = file.counts(rows)
            title = ", ".join(f"{n} {word}" for word, n in counts.items())
            console.print(Rule(Text(title), align="left", style="dim"))
            labelled = is_labelled(current, file.labels)
            _show(console, current, file.labels[current.id] if labelled else None)
            shown = current
        key = _key(console)
        if key == "q":
            return
        if key == "s":
            at += 1
        elif key == "b":
            at = max(0, at - 1)
        else:
            verdict, digest = _VERDICTS[key], answer_digest(current)
            file.add(Label(id=current.id, label=verdict, answer=digest))
            console.print(Text(_WORDS[verdict], style="bold"))
            at += 1


def _key(console: Console) -> str:
    try:
        return Prompt.ask(
            "[dim]r right, w wrong, s skip, b back, q quit[/]",
            choices=["r", "w", "s", "b", "q"],
            show_choices=False,
            case_sensitive=False,
            console=console,
        )
    except EOFError:
        return "q"


def _show(console: Console, row: Recording, label: Label | None) -> None:
    parts = {
        "Context": _lines(row.context) if row.context else None,
        "Question": _lines(row.question or "(there was none)"),
        "Reference": _references(row),
        "Answer": _lines(row.main_answer) or "(empty)",
        "Label": None if label is None else _WORDS[label.label],
    }
    for name, text in parts.items():
        if text is not None:
            style = "bold" if name == "Answer" else ""
            console.print(Text.assemble((f"{name:<11}", "dim"), (text, style)))


def _references(row: Recording) -> str | None:
    if row.answers is None:
        return None
    return "\n".join(map(_lines, row.answers)) or "(it has no answer)"


def _lines(text: str) -> str:
    return printable(text.expandtabs(4).strip(), lines=True)
