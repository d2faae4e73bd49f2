"""``snne-guard score``: the uncertainty of recorded answers."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from typer import Argument, Option

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, lines_in, note, progress, source
from snne_guard.evaluation import Recording, read_recordings, write_recordings
from snne_guard.evaluation.accepting import in_words, why_never_accepted
from snne_guard.evaluation.replaying import RecordedCall
from snne_guard.evaluation.scoring import score_record, score_recording
from snne_guard.types import Score

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def score(
    file: Annotated[
        str, Argument(metavar="FILE.jsonl", help="Recording to score; - reads stdin.")
    ],
    *,
    output: Annotated[
        Path | None,
        Option("--output", "-o", help="Also write the recording with u in each line."),
    ] = None,
    method: Annotated[str, Option(help="auto, snne, wsnne, dse, ...")] = "auto",
    similarity: options.SimilarityName = None,
    without_answer: options.WithoutAnswer = False,
    column: options.ColumnNames = None,
) -> None:
    """Score how far recorded answers differ; no grades are needed.

    FILE.jsonl has one JSON object per line: id, question, main_answer, samples, and
    main_logprobs and token_logprobs if you have them. FILE.csv has these columns;
    --column names others.

    Exit status: 0 the file was scored; 2 wrong usage, or a line that cannot be scored.
    """
    check_outputs([file], output)
    scores: list[Score] = []
    never: Counter[str] = Counter()
    columns = options.columns_of(column)
    total = lines_in(file)

    def scored() -> Iterator[Recording]:
        rows = read_recordings(source(file), columns=columns)
        for row in progress(rows, what=file, total=total):
            result = score_recording(
                row,
                method=method,
                similarity=similarity,
                include_answer=not without_answer,
            )
            scores.append(replace(result, matrix=None))
            call = RecordedCall(row)
            why = why_never_accepted(call.answer, call.own)
            never.update([] if why is None else [why])
            yield replace(row, extra={**row.extra, "snne_guard": score_record(result)})

    if output is None:
        deque(scored(), maxlen=0)
    else:
        write_recordings(output, scored())
    for line in _summary(scores):
        typer.echo(line)
    for code, count in never.items():
        told = f"a calibrated guard never accepts {count} of {len(scores)} answers"
        typer.echo(f"{told}: {in_words(code)}")
    methods = {score.method for score in scores if score.uncertainty is not None}
    if len(methods) > 1:
        note(f"u of {' and '.join(sorted(methods))} is not comparable; use --method")


def _summary(scores: Sequence[Score]) -> Iterator[str]:
    known = [score for score in scores if score.uncertainty is not None]
    u = np.array([score.uncertainty for score in known])
    yield f"recordings   {len(scores)}"
    yield f"scored       {len(u)}"
    if len(u):
        quantiles = zip(_QUANTILES, np.quantile(u, _QUANTILES), strict=True)
        yield f"mean u       {u.mean():.4f}"
        yield "quantiles    " + "  ".join(f"{q:.0%} {x:.4f}" for q, x in quantiles)
    methods = Counter(score.method for score in known)
    reasons = Counter(reason for score in scores for reason in score.reasons)
    for title, counts in (("methods", methods), ("reasons", reasons)):
        if counts:
            yield f"{title:<12} {', '.join(f'{k} {v}' for k, v in counts.items())}"
