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

from snne_guard.cli import options
from snne_guard.cli.console import BadLines, check_outputs, note, safe
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import (
    Label,
    LabelFile,
    Recording,
    read_recordings,
    with_labels,
    write_recordings,
)
from snne_guard.evaluation.label import (
    answer_digest,
    label_of,
    labels_path,
    random_order,
)

__all__ = ["label"]

_VERDICTS = {"r": 1, "w": 0, "s": None}
_WORDS = {1: "right", 0: "wrong", None: "skipped"}
_CONTEXT_SHOWN = 1200
_INTERRUPTED = 130


def label(
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING.jsonl", help="Whose answers to grade.")
    ],
    *,
    labels: options.Labels = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the random order.")] = 0,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Ask again for those that were skipped.")
    ] = False,
    regrade: Annotated[
        bool,
        typer.Option("--regrade", help="Ask too where the recording has a label."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the recording with the labels in it."
        ),
    ] = None,
) -> None:
    """Grade the answers of a recording by hand: one key each, and Enter.

    Answers come in a random order, so that those graded when you stop are a random
    sample, from which `snne-guard calibrate` can promise something. The same command
    goes on where it ended: each label is on the disk before the next answer is shown,
    in a file beside the recording, which itself never changes. Neither uncertainty nor
    samples are shown, since who sees them grades by them.

    Exit status: 0 ended or quit; 1 some lines of the file are no recordings; 2 wrong
    usage; 130 interrupted.
    """
    kept = labels or labels_path(recording)
    if kept.resolve() == recording.resolve():
        msg = f"--labels {kept} is the recording itself; give it another name"
        raise ConfigurationError(msg)
    check_outputs([recording, kept], {"--output": output})
    bad = BadLines()
    every = list(read_recordings(recording, on_bad=bad.tell))
    rows = [row for row in every if regrade or row.label is None]
    if len(rows) < len(every):
        note(f"{len(every) - len(rows)} answers have a label already; see --regrade")
    status = 1 if bad.count else 0
    with LabelFile(kept) as file:
        asked = _order(file, rows, seed=seed, skipped=skipped)
        try:
            _ask(Console(), file, asked, rows)
        except KeyboardInterrupt:
            status = _INTERRUPTED
        if output is not None:
            write_recordings(output, with_labels(every, file.labels))
        counts = file.counts(rows)
    for word, count in counts.items():
        typer.echo(f"{word:<12} {count}")
    typer.echo(f"labels       {kept}")
    raise typer.Exit(status)


def _order(
    file: LabelFile, rows: Sequence[Recording], *, seed: int, skipped: bool
) -> list[Recording]:
    """Return what is to be asked, in random order."""
    said = {row.id: label_of(row, file.labels) for row in rows}
    other = sum(row.id in file.labels and said[row.id] is None for row in rows)
    if other:
        note(f"{other} labels are of other answers to the same questions: asked again")
    left = (
        row
        for row in rows
        if (found := said[row.id]) is None or (skipped and found.label is None)
    )
    return random_order(left, seed=seed)


def _ask(
    console: Console, file: LabelFile, asked: Sequence[Recording], rows: list[Recording]
) -> None:
    """Show answer after answer and write what is said of each, until ``q``."""
    at = 0
    shown: Recording | None = None
    while at < len(asked):
        current = asked[at]
        if current is not shown:
            counts = file.counts(rows)
            title = ", ".join(f"{n} {word}" for word, n in counts.items())
            console.print(Rule(Text(title), align="left", style="dim"))
            _show(console, current, label_of(current, file.labels))
            shown = current
        key = _key(console)
        if key == "q":
            return
        if key == "b":
            at = max(0, at - 1)
        elif key == "c":
            console.print(Text(_lines(current.context or "(no context)")))
        else:
            verdict, digest = _VERDICTS[key], answer_digest(current)
            file.add(Label(id=current.id, label=verdict, answer=digest))
            console.print(Text(_WORDS[verdict], style="bold"))
            at += 1


def _key(console: Console) -> str:
    try:
        return Prompt.ask(
            "[dim]r right, w wrong, s skip, b back, c whole context, q quit[/]",
            choices=["r", "w", "s", "b", "c", "q"],
            show_choices=False,
            case_sensitive=False,
            console=console,
        )
    except EOFError:
        return "q"


def _show(console: Console, row: Recording, said: Label | None) -> None:
    parts = {
        "Context": _clipped(row.context) if row.context else None,
        "Question": _lines(row.question or "(there was none)"),
        "Reference": _references(row),
        "Answer": _lines(row.main_answer) or "(empty)",
        "So far": None if said is None else _WORDS[said.label],
    }
    for name, text in parts.items():
        if text is not None:
            style = "bold" if name == "Answer" else ""
            console.print(Text.assemble((f"{name:<11}", "dim"), (text, style)))


def _references(row: Recording) -> str | None:
    if row.answers is None:
        return None
    return "\n".join(map(_lines, row.answers)) or "(it has no answer)"


def _clipped(text: str) -> str:
    shown = _lines(text)
    if len(shown) <= _CONTEXT_SHOWN:
        return shown
    return f"{shown[:_CONTEXT_SHOWN]}… (c shows all of it)"


def _lines(text: str) -> str:
    return safe(text.expandtabs(4).strip(), lines=True)
