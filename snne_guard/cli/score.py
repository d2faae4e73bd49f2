"""``snne-guard score``: the uncertainty of recorded answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from snne_guard.cli.console import BadLines, check_outputs, note, progress, source
from snne_guard.cli.options import SimilarityName, Strict, WithoutAnswer
from snne_guard.decision.policy import Policy
from snne_guard.errors import InputError
from snne_guard.evaluation.recordings import (
    Recording,
    read_recordings,
    write_recordings,
)
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
    similarity: SimilarityName = None,
    tau: Annotated[
        float | None, typer.Option(help="Temperature of the similarity, above 0.")
    ] = None,
    without_answer: WithoutAnswer = False,
    strict: Strict = False,
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
    options = _Options(
        method=method,
        similarity=similarity,
        tau=tau,
        include_answer=not without_answer,
        policy=Policy(threshold=threshold),
    )
    bad, summary = BadLines(strict=strict), _Summary()
    recordings = read_recordings(source(file), on_bad=bad.tell)
    rows = progress(recordings, what=file)
    scored = _scored(rows, options, summary, bad)
    if output is None:
        for _ in scored:
            pass
    else:
        write_recordings(output, scored)
    for line in summary.lines():
        typer.echo(line)
    if len(summary.methods) > 1:
        note(f"u of {' and '.join(summary.methods)} is not comparable; use --method")
    if bad.count:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    method: str
    similarity: str | None
    tau: float | None
    include_answer: bool
    policy: Policy


@dataclass(slots=True, kw_only=True)
class _Summary:
    read: int = 0
    uncertainties: list[float] = field(default_factory=list[float])
    methods: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    decisions: Counter[str] = field(default_factory=Counter[str])

    def add(self, found: Score, decision: str | None) -> None:
        self.read += 1
        self.reasons.update(found.reasons)
        if decision is not None:
            self.decisions[decision] += 1
        if found.uncertainty is not None:
            self.methods[found.method] += 1
            self.uncertainties.append(found.uncertainty)

    def lines(self) -> Iterator[str]:
        u = np.array(self.uncertainties)
        yield f"recordings   {self.read}"
        yield f"scored       {len(u)}"
        if len(u):
            shown = zip(_QUANTILES, np.quantile(u, _QUANTILES), strict=True)
            yield f"mean u       {u.mean():.4f}"
            yield "quantiles    " + "  ".join(
                f"{q:.0%} {value:.4f}" for q, value in shown
            )
            yield f"u = 0        {(u == 0).mean():.1%}"
        for title, counts in (
            ("methods", self.methods),
            ("reasons", self.reasons),
            ("decisions", self.decisions),
        ):
            if counts:
                listed = (f"{name} {count}" for name, count in counts.most_common())
                yield f"{title:<12} {', '.join(listed)}"


def _scored(
    rows: Iterable[Recording], options: _Options, summary: _Summary, bad: BadLines
) -> Iterator[Recording]:
    for recording in rows:
        try:
            found = _score(recording, options)
        except InputError as error:
            bad.tell(InputError(f"recording {recording.id!r}: {error}"))
            continue
        unscored = options.policy.unscored()
        verdict = (
            unscored
            if found.uncertainty is None
            else options.policy.scored(found.uncertainty)
        )
        summary.add(found, verdict.decision)
        added = _added(found, verdict.decision, options)
        yield replace(recording, extra={**recording.extra, "snne_guard": added})


def _score(recording: Recording, options: _Options) -> Score:
    from snne_guard.scorers import score as score_answers

    answers = recording.samples
    logprobs = recording.token_logprobs or (None,) * len(answers)
    if options.include_answer:
        answers = (recording.main_answer, *answers)
        logprobs = (recording.main_logprobs, *logprobs)
    return score_answers(
        answers,
        token_logprobs=logprobs,
        question=recording.question,
        include_answer=options.include_answer,
        method=options.method,
        similarity=options.similarity,
        tau=options.tau,
    )


def _added(found: Score, decision: str | None, options: _Options) -> dict[str, Any]:
    from snne_guard import __version__

    return {
        "method": found.method,
        "similarity": found.similarity,
        "tau": found.tau,
        # JSON has no word for infinity.
        "score": found.value if math.isfinite(found.value) else None,
        "uncertainty": found.uncertainty,
        "n": found.n,
        "threshold": options.policy.threshold,
        "decision": decision,
        "reasons": list(found.reasons),
        "version": __version__,
    }
