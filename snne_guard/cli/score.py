"""``snne-guard score``: uncertainty of recorded answers, as a stream of lines."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from snne_guard._version import __version__
from snne_guard.cli import _options
from snne_guard.cli._console import byte_progress, note, reported_errors
from snne_guard.cli._files import (
    LineSource,
    atomic_output,
    open_input,
    refuse_same_file,
)
from snne_guard.cli._summary import Summary
from snne_guard.decision import Policy, accept_threshold
from snne_guard.errors import InputError
from snne_guard.evaluation import BadLine, Recording, parse_recordings
from snne_guard.scorers import METHODS, READINGS, resolve_method
from snne_guard.scorers import score as score_answers
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.needs import check_relation
from snne_guard.scorers.registry import default_similarity
from snne_guard.scorers.relation import Relation
from snne_guard.similarity import SIMILARITIES
from snne_guard.similarity.registry import FAMILIES
from snne_guard.types import Decision, Score

__all__ = ["score"]

_WITH_MODEL = [f"{family}:MODEL" for family in FAMILIES]


def score(
    file: Annotated[
        str, typer.Argument(metavar="FILE.jsonl", help="Recordings; - is stdin.")
    ],
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write each line with its u added."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help=f"auto, {', '.join(METHODS)}; other readings: {', '.join(READINGS)}."
        ),
    ] = "auto",
    similarity: Annotated[
        str | None, typer.Option(help=f"{', '.join((*SIMILARITIES, *_WITH_MODEL))}.")
    ] = None,
    tau: Annotated[
        float | None, typer.Option(help="Temperature of the similarity, above 0.")
    ] = None,
    without_answer: Annotated[
        bool, typer.Option("--without-answer", help="Score the samples alone.")
    ] = False,
    strict: _options.Strict = False,
    threshold: _options.Threshold = None,
) -> None:
    """Score recorded answers: how far do they differ?

    FILE.jsonl has one JSON object a line: id, question, main_answer, samples,
    and where known main_logprobs and token_logprobs.

    Bad lines are reported with their number and skipped; the exit status is
    then 1. It is 2 at wrong usage.
    """
    with reported_errors():
        options = Options.checked(
            method=method,
            similarity=similarity,
            tau=tau,
            include_answer=not without_answer,
            threshold=threshold,
        )
        summary = _run(file, output=output, options=options, strict=strict)
    for line in summary.lines():
        typer.echo(line)
    if len(summary.methods) > 1:
        note(f"u of {' and '.join(summary.methods)} is not comparable; use --method")
    if summary.skipped:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How each recording is scored and decided on."""

    method: str
    similarity: str | None
    tau: float | None
    include_answer: bool
    policy: Policy

    @classmethod
    def checked(
        cls,
        *,
        method: str,
        similarity: str | None,
        tau: float | None,
        include_answer: bool,
        threshold: float | None,
    ) -> Options:
        """Return the options, or raise ConfigurationError before a line is read."""
        chosen = resolve_method(method, logprobs=True)
        relation = Relation.of(similarity, default=default_similarity(chosen))
        check_relation(chosen, relation)
        if tau is not None:
            check_tau(tau)
        return cls(
            method=method,
            similarity=similarity,
            tau=tau,
            include_answer=include_answer,
            policy=Policy(threshold=accept_threshold(threshold)[0]),
        )

    def score(self, recording: Recording) -> Score:
        """Score one recording."""
        answers = recording.samples
        logprobs = recording.token_logprobs or (None,) * len(answers)
        if self.include_answer:
            answers = (recording.main_answer, *answers)
            logprobs = (recording.main_logprobs, *logprobs)
        return score_answers(
            answers,
            token_logprobs=logprobs,
            question=recording.question,
            include_answer=self.include_answer,
            method=self.method,
            similarity=self.similarity,
            tau=self.tau,
        )

    def decide(self, score: Score) -> Decision | None:
        """Return what follows from the threshold, None without one."""
        if score.uncertainty is None:
            return self.policy.unscored().decision
        return self.policy.scored(score.uncertainty, method=score.method).decision


def _run(file: str, *, output: Path | None, options: Options, strict: bool) -> Summary:
    summary = Summary()
    with open_input(file) as (stream, size):
        if output is not None:
            refuse_same_file(stream, output)
        with byte_progress() as progress, atomic_output(output) as write:
            task = progress.add_task(file, total=size)
            source = LineSource(stream, partial(progress.advance, task))
            for number, row in parse_recordings(source):
                summary.rows += 1
                try:
                    write(_scored_line(source.raw, row, options, summary))
                except InputError as error:
                    note(f"line {number}: {error}", console=progress.console)
                    summary.skipped += 1
                    if strict:
                        raise typer.Exit(1) from error
    return summary


def _scored_line(
    raw: bytes, row: Recording | BadLine, options: Options, summary: Summary
) -> bytes:
    if isinstance(row, BadLine):
        raise InputError(row.message)
    score = options.score(row)
    decision = options.decide(score)
    summary.add(score, decision=decision)
    added = json.dumps(_added(score, decision, options), allow_nan=False)
    if "snne_guard" in row.extra:
        # Scored before: the new numbers take the old ones' place.
        fields = json.loads(raw.decode("utf-8-sig"))
        fields["snne_guard"] = json.loads(added)
        return json.dumps(fields).encode() + b"\n"
    # Spliced in, so that every other byte of the line stays as it was.
    head = raw.removeprefix(b"\xef\xbb\xbf").rstrip().removesuffix(b"}").rstrip()
    return head + b', "snne_guard": ' + added.encode() + b"}\n"


def _added(score: Score, decision: Decision | None, options: Options) -> dict[str, Any]:
    threshold = options.policy.threshold
    return {
        "method": score.method,
        "similarity": score.similarity,
        "tau": score.tau,
        # JSON has no word for infinity.
        "score": score.value if math.isfinite(score.value) else None,
        "uncertainty": score.uncertainty,
        "n": score.n,
        "threshold": None if threshold is None else threshold.value,
        "decision": decision,
        "reasons": list(score.reasons),
        "version": __version__,
    }
