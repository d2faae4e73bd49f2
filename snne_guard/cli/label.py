"""``snne-guard label``: answers of a recording, graded by hand."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.prompt import Prompt
from rich.rule import Rule
from rich.text import Text
from typer import Argument

from snne_guard.cli import options
from snne_guard.cli.console import tell_left_out
from snne_guard.evaluation import Recording, read_recordings
from snne_guard.evaluation.decision_log import is_log, logged_recordings
from snne_guard.evaluation.jsonl import AppendFile, beside, digest
from snne_guard.evaluation.recordings import answer_digest, read_labels
from snne_guard.text import printable

_VERDICTS = {"r": 1, "w": 0}
_CHOICES = [*"rwsbq"]
_KEYS = "r right, w wrong, s skip, b back, q quit"
_WORDS = {1: "right", 0: "wrong"}


def label(
    recording: Annotated[Path, Argument(help="Recording or decision log to grade.")],
    *,
    column: options.ColumnNames = None,
) -> None:
    """Grade the answers of a recording by hand.

    Each answer takes one key; where standard input is no terminal, one line. Answers
    come in a random order: stop whenever you like, and those you graded are a random
    sample, as `snne-guard calibrate` needs. The uncertainty and the samples stay
    hidden, so that you do not grade by them.

    Each label is saved in RECORDING.labels.jsonl before the next answer is shown; the
    recording never changes. Run the same command again to continue; skipped answers are
    shown again. Answers that have a label in the recording are left out.

    Exit status: 0 finished or quit, by Ctrl-C too; 2 wrong usage.
    """
    left_out = Counter[str]()
    if is_log(recording):
        read = logged_recordings(recording, left_out=left_out)
    else:
        read = read_recordings(recording, columns=options.columns_of(column))
    rows = [row for row in read if row.label is None]
    path = beside(recording, "labels")
    with AppendFile(path) as file:
        labels = read_labels(path)
        left = [row for row in rows if answer_digest(row) not in labels]
        # By a hash of the id: those labelled so far are a random sample, the next day
        # brings the same order, and what was added since falls in anywhere.
        left.sort(key=lambda row: digest(row.id))
        _ask(Console(), file, labels, left)
    given = [labels[each] for each in map(answer_digest, rows) if each in labels]
    typer.echo(f"right        {sum(given)}")
    typer.echo(f"wrong        {len(given) - sum(given)}")
    typer.echo(f"left         {len(rows) - len(given)}")
    typer.echo(f"labels       {path}")
    tell_left_out(left_out)


def _ask(
    console: Console,
    file: AppendFile,
    labels: dict[str, int],
    asked: Sequence[Recording],
) -> None:
    """Show answer after answer and write the label of each, until ``q``."""
    at = 0
    while at < len(asked):
        row, answer = asked[at], answer_digest(asked[at])
        title = Text(f"{at + 1} of {len(asked)}")
        console.print(Rule(title, align="left", style="dim"))
        _show(console, row, labels.get(answer))
        key = _key(console)
        if key == "q":
            return
        if key in _VERDICTS:
            verdict = labels[answer] = _VERDICTS[key]
            file.append({"id": row.id, "label": verdict, "answer": answer})
            console.print(Text(_WORDS[verdict], style="bold"))
        at = max(0, at - 1) if key == "b" else at + 1


def _key(console: Console) -> str:
    try:
        if sys.stdin.isatty():
            console.print(f"[dim]{_KEYS}[/]: ", end="")
            while (key := typer.getchar().lower()) not in _CHOICES:
                pass
            console.print(key)
            return key
        options: dict[str, Any] = {"show_choices": False, "case_sensitive": False}
        question = f"[dim]{_KEYS}[/]"
        return Prompt.ask(question, choices=_CHOICES, console=console, **options)
    except (EOFError, KeyboardInterrupt):
        console.print()
        return "q"


def _show(console: Console, row: Recording, label: int | None) -> None:
    references = "\n".join(map(_lines, row.answers or ())) or "(it has no answer)"
    parts = {
        "Context": _lines(row.context) if row.context else None,
        "Question": _lines(row.question or "(there was none)"),
        "Reference": None if row.answers is None else references,
        "Answer": _lines(row.main_answer) or "(empty)",
        "Label": None if label is None else _WORDS[label],
    }
    for name, text in parts.items():
        if text is not None:
            style = "bold" if name == "Answer" else ""
            console.print(Text.assemble((f"{name:<11}", "dim"), (text, style)))


def _lines(text: str) -> str:
    return printable(text.expandtabs(4).strip(), lines=True)
