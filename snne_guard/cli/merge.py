"""``snne-guard merge``: joins the shards of a recording in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from snne_guard.cli.console import check_outputs, note
from snne_guard.evaluation.merge import merge_recordings
from snne_guard.evaluation.recordings import read_questions

_SHOWN = 10


def merge(
    parts: Annotated[list[Path], Argument(metavar="PART...", help="To join.")],
    *,
    output: Annotated[Path, Option("--output", "-o", help="Recording to write.")],
    questions: Annotated[
        Path | None,
        Option(
            metavar="QUESTIONS.jsonl",
            help="The questions that were asked, to name missing ones.",
        ),
    ] = None,
) -> None:
    """Join the shards of a recording.

    All parts must have been drawn with the same settings, and no question may be in
    two of them; otherwise nothing is written. If something is missing, the rest is
    written and what is missing is named: with --questions each question, otherwise
    those that failed, and a shard that has nothing.

    Exit status: 0 everything is there; 1 something is missing; 2 wrong usage, or parts
    that do not fit together.
    """
    inputs = [*parts, *([] if questions is None else [questions])]
    check_outputs(inputs, output)
    asked = None if questions is None else read_questions(questions)
    n, missing = merge_recordings(parts, output, questions=asked)
    typer.echo(f"{n} questions are in {output}")
    if missing:
        named = map(repr, missing[:_SHOWN])
        more = ", ..." if len(missing) > _SHOWN else ""
        note(f"missing ({len(missing)}): {', '.join(named)}{more}")
        raise typer.Exit(1)
