"""``snne-guard merge``: shards of a recording to one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snne_guard.cli.console import check_outputs, note
from snne_guard.evaluation.merge import merge_recordings
from snne_guard.evaluation.recordings import read_questions

__all__ = ["merge"]

_SHOWN = 10


def merge(
    parts: Annotated[
        list[Path], typer.Argument(metavar="PART...", help="Recordings to join.")
    ],
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Recording to write.")],
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="QUESTIONS.jsonl",
            help="The questions that were asked, to name missing ones.",
        ),
    ] = None,
) -> None:
    """Join the shards of a recording.

    All parts must have been drawn with the same settings, and no question may be in
    two of them; otherwise nothing is written. If something is missing, the rest is
    written and the missing questions are named.

    Exit status: 0 everything is there; 1 something is missing; 2 wrong usage, or parts
    that do not fit together.
    """
    inputs = [*parts, *([] if questions is None else [questions])]
    check_outputs(inputs, output)
    asked = None if questions is None else read_questions(questions)
    merged = merge_recordings(parts, output, questions=asked)
    typer.echo(f"{merged.n} questions from {merged.n_parts} files are in {output}")
    if merged.missing_shards:
        note(f"nothing is recorded of shards {', '.join(merged.missing_shards)}")
    if merged.missing_ids:
        named = map(repr, merged.missing_ids[:_SHOWN])
        more = ", ..." if len(merged.missing_ids) > _SHOWN else ""
        note(
            f"{len(merged.missing_ids)} questions are missing: {', '.join(named)}{more}"
        )
    for path in merged.failures:
        note(f"questions that failed are in {path}")
    if merged.missing_shards or merged.missing_ids or merged.failures:
        raise typer.Exit(1)
