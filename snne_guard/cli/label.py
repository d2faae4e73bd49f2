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
from snne_guard.evaluation.label import (
    Label,
    LabelFile,
    answer_digest,
    label_of,
    labels_path,
    random_order,
    with_labels,
)
from snne_guard.evaluation.recordings import (
    Recording,
    read_recordings,
    write_recordings,
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
        sitting = _Sitting(file, _order(file, rows, seed=seed, skipped=skipped))
        try:
            sitting.run(rows)
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
    return random_order(
        (
            row
            for row in rows
            if (found := said[row.id]) is None or (skipped and found.label is None)
        ),
        seed=seed,
    )


class _Sitting:
    """Shows answer after answer and writes what is said of each."""

    def __init__(self, file: LabelFile, asked: Sequence[Recording]) -> None:
        self._file = file
        self._asked = asked
        self._console = Console()

    def run(self, rows: Sequence[Recording]) -> None:
        """Ask until nothing is left, or somebody quits."""
        at = 0
        shown: Recording | None = None
        while at < len(self._asked):
            current = self._asked[at]
            if current is not shown:
                counts = self._file.counts(rows)
                title = ", ".join(f"{n} {word}" for word, n in counts.items())
                self._show(current, title=title)
                shown = current
            key = self._key()
            if key == "q":
                return
            if key == "b":
                at = max(0, at - 1)
            elif key == "c":
                self._console.print(Text(_lines(current.context or "(no context)")))
            else:
                self._add(current, _VERDICTS[key])
                at += 1

    def _key(self) -> str:
        try:
            return Prompt.ask(
                "[dim]r right, w wrong, s skip, b back, c whole context, q quit[/]",
                choices=["r", "w", "s", "b", "c", "q"],
                show_choices=False,
                case_sensitive=False,
                console=self._console,
            )
        except EOFError:
            return "q"

    def _add(self, row: Recording, verdict: int | None) -> None:
        self._file.add(Label(id=row.id, label=verdict, answer=answer_digest(row)))
        self._console.print(Text(_WORDS[verdict], style="bold"))

    def _show(self, row: Recording, *, title: str) -> None:
        self._console.print(Rule(Text(title), align="left", style="dim"))
        said = label_of(row, self._file.labels)
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
                line = Text.assemble((f"{name:<11}", "dim"), (text, style))
                self._console.print(line)


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
