"""``snne-guard score``: the uncertainty of recorded answers."""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from snne_guard import __version__
from snne_guard.cli import options
from snne_guard.cli.console import BadLines, check_outputs, note, progress, source
from snne_guard.decision import Policy
from snne_guard.errors import InputError
from snne_guard.evaluation import Recording, read_recordings, write_recordings
from snne_guard.scorers import score as score_answers
from snne_guard.types import Score

__all__ = ["score"]

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def score(
    file: Annotated[
        str, typer.Argument(metavar="FILE.jsonl", help="Recordings; - is stdin.")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the recordings with their u."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="auto, or a method such as snne, wsnne or dse.")
    ] = "auto",
    similarity: options.SimilarityName = None,
    tau: Annotated[
        float | None, typer.Option(help="Temperature of the similarity, above 0.")
    ] = None,
    without_answer: options.WithoutAnswer = False,
    strict: options.Strict = False,
    threshold: Annotated[
        float | None, typer.Option(help="Largest u that is accepted, in [0, 1].")
    ] = None,
) -> None:
    """Score recorded answers: how far do they differ?

    FILE.jsonl has one JSON object a line: id, question, main_answer, samples, and
    where known main_logprobs and token_logprobs.

    Bad lines are reported with their number and skipped; the exit status is then 1. It
    is 2 where nothing could be done.
    """
    check_outputs([file], {"--output": output})
    policy = Policy(threshold=threshold)
    bad = BadLines(strict=strict)
    found: list[tuple[Score, str | None]] = []

    def scored() -> Iterator[Recording]:
        recordings = read_recordings(source(file), on_bad=bad.tell)
        for row in progress(recordings, what=file):
            try:
                one = _score(
                    row,
                    method=method,
                    similarity=similarity,
                    tau=tau,
                    include_answer=not without_answer,
                )
            except InputError as error:
                bad.tell(InputError(f"recording {row.id!r}: {error}"))
                continue
            known = one.uncertainty is not None
            verdict = policy.scored(one.uncertainty) if known else policy.unscored()
            found.append((replace(one, matrix=None), verdict.decision))
            added = _added(one, verdict.decision, threshold=threshold)
            yield replace(row, extra={**row.extra, "snne_guard": added})

    if output is None:
        deque(scored(), maxlen=0)
    else:
        write_recordings(output, scored())
    for line in _summary(found):
        typer.echo(line)
    methods = {one.method for one, _ in found if one.uncertainty is not None}
    if len(methods) > 1:
        note(f"u of {' and '.join(sorted(methods))} is not comparable; use --method")
    if bad.count:
        raise typer.Exit(1)


def _score(
    recording: Recording,
    *,
    include_answer: bool,
    **options: Any,  # noqa: ANN401 - of score
) -> Score:
    answers = recording.samples
    logprobs = recording.token_logprobs or (None,) * len(answers)
    if include_answer:
        answers = (recording.main_answer, *answers)
        logprobs = (recording.main_logprobs, *logprobs)
    return score_answers(
        answers,
        token_logprobs=logprobs,
        question=recording.question,
        include_answer=include_answer,
        **options,
    )


def _added(
    found: Score, decision: str | None, *, threshold: float | None
) -> dict[str, Any]:
    return {
        "method": found.method,
        "similarity": found.similarity,
        "tau": found.tau,
        # JSON has no word for infinity.
        "score": found.value if math.isfinite(found.value) else None,
        "uncertainty": found.uncertainty,
        "n": found.n,
        "threshold": threshold,
        "decision": decision,
        "reasons": list(found.reasons),
        "version": __version__,
    }


def _summary(found: Sequence[tuple[Score, str | None]]) -> Iterator[str]:
    scores = [one for one, _ in found if one.uncertainty is not None]
    u = np.array([one.uncertainty for one in scores])
    yield f"recordings   {len(found)}"
    yield f"scored       {len(u)}"
    if len(u):
        quantiles = zip(_QUANTILES, np.quantile(u, _QUANTILES), strict=True)
        yield f"mean u       {u.mean():.4f}"
        yield "quantiles    " + "  ".join(f"{q:.0%} {x:.4f}" for q, x in quantiles)
        yield f"u = 0        {(u == 0).mean():.1%}"
    for title, names in (
        ("methods", (one.method for one in scores)),
        ("reasons", (reason for one, _ in found for reason in one.reasons)),
        ("decisions", (decision for _, decision in found if decision is not None)),
    ):
        if counts := Counter(names).most_common():
            listed = ", ".join(f"{name} {count}" for name, count in counts)
            yield f"{title:<12} {listed}"
