"""``snne-guard calibrate``: from graded recordings to a file that a guard loads."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, in_shard, note, progress, write
from snne_guard.cli.models import named_grader
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Recording, read_labelled
from snne_guard.evaluation.accepting import in_words
from snne_guard.evaluation.calibrating import CalibrationResult
from snne_guard.evaluation.calibrating import calibrate as make_calibration
from snne_guard.evaluation.jsonl import beside
from snne_guard.fields import calibrate_fields
from snne_guard.self_check import SelfCheck
from snne_guard.text import printable
from snne_guard.types import ContextFrom

_NO_GUARANTEE = 3
"""Exit status if the file was written, but a guard with it accepts nothing."""


def calibrate(
    recordings: options.Recordings,
    *,
    out: Annotated[Path, Option("--out", "-o", help="Calibration to write.")],
    error_rate: Annotated[
        float | None,
        Option(min=0, max=1, help="Largest share wrong among the accepted."),
    ] = None,
    coverage: Annotated[
        float | None, Option(min=0, max=1, help="Accept this share; no guarantee.")
    ] = None,
    delta: Annotated[
        float, Option(min=0, max=1, help="Probability that the guarantee fails.")
    ] = 0.1,
    refuse_above: Annotated[
        float | None, Option(min=0, max=1, help="Always refuse answers above this u.")
    ] = None,
    grader: options.GraderName = "label",
    base_url: options.JudgeUrl = None,
    method: Annotated[str, Option(help="Scoring method of the guard.")] = "snne",
    similarity: options.SimilarityName = None,
    n: Annotated[int | None, Option(help="Calls of the guard, if fewer.")] = None,
    without_answer: options.WithoutAnswer = False,
    self_check: Annotated[
        bool, Option("--self-check", help="Use the recorded self-checks.")
    ] = False,
    self_check_form: options.SelfCheckForm = "yes_no",
    views: Annotated[
        str | None, Option(help="Only these views, separated by commas.")
    ] = None,
    other_models: Annotated[
        str | None, Option(help='Only these, separated by commas; "" for none.')
    ] = None,
    min_grounded: Annotated[
        float | None,
        Option(min=0, max=1, help="Accept only answers that their context supports."),
    ] = None,
    grounding: Annotated[str, Option(help="What measures the support.")] = "words",
    context_from: Annotated[
        ContextFrom, Option(help="Where the guard's documents will come from.")
    ] = "function",
    shard: options.Shard = None,
    fields: Annotated[
        bool, Option("--fields", help="Choose a threshold for fields instead.")
    ] = False,
    model: Annotated[
        str | None, Option(help="Model that answered, if the recording names none.")
    ] = None,
    column: options.ColumnNames = None,
) -> None:
    """Choose a threshold from graded answers.

    With --error-rate, the threshold limits the share of wrong answers among the
    accepted. Choose the rate, and --min-grounded, before you look at the labels.
    --coverage needs no grades. Labels that `snne-guard
    label` wrote beside a recording take precedence over --grader. --shard 3/3 takes
    the third of the questions that `snne-guard evaluate` leaves for the threshold.
    With --fields, one random field of each object counts, chosen by its id, and of the
    other options only --error-rate, --delta, --shard, --column and --out have an
    effect.

    Exit status: 0 the calibration was written; 2 wrong usage, nothing was written; 3
    the calibration was written, but these labels do not allow the error rate, so a
    guard with it accepts nothing.
    """
    if (error_rate is None) == (coverage is None):
        msg = "expected either --error-rate or --coverage"
        raise ConfigurationError(msg)
    check_outputs([*recordings, *(beside(path, "labels") for path in recordings)], out)
    rows = read_labelled(*recordings, columns=options.columns_of(column))
    if fields:
        _calibrate_fields(
            in_shard(rows, shard), out, error_rate=error_rate, delta=delta
        )
        return
    result = make_calibration(
        progress(in_shard(rows, shard), what="scoring"),
        error_rate=error_rate,
        coverage=coverage,
        delta=delta,
        refuse=refuse_above,
        grader=named_grader(grader, base_url=base_url),
        method=method,
        similarity=similarity,
        n=n,
        include_answer=not without_answer,
        self_check=SelfCheck(form=self_check_form) if self_check else None,
        views=None if views is None else options.names_in(views),
        other_models=None if other_models is None else options.names_in(other_models),
        model=model,
        min_grounded=min_grounded,
        grounding=grounding,
        context_from=context_from,
    )
    result.calibration.save(out)
    for line in _lines(result):
        typer.echo(printable(line))
    for warning in result.warnings:
        note(f"warning: {warning}")
    if result.calibration.threshold.value < 0:
        typer.echo(f"\nWritten to {out}; a guard with it accepts nothing.")
        raise typer.Exit(_NO_GUARANTEE)
    use = f"SNNEGuard(model, calibration={str(out)!r})"
    typer.echo(f"\nWritten to {out}. To use it: guard = {use}")


def _calibrate_fields(
    rows: Iterable[Recording], out: Path, *, error_rate: float | None, delta: float
) -> None:
    """Write a threshold for fields, and say what it guarantees."""
    if error_rate is None:
        msg = "--fields needs --error-rate: a coverage of fields guarantees nothing"
        raise ConfigurationError(msg)
    labelled = (row.to_dict() for row in progress(rows, what="scoring"))
    threshold = calibrate_fields(labelled, alpha=error_rate, delta=delta)
    write(out, json.dumps(asdict(threshold), indent=2))
    typer.echo(threshold.status.replace("_", " ").upper())
    about = threshold.statement.replace("Answers", "Fields")
    typer.echo(about.replace("answers", "fields"))
    typer.echo(f"\nWritten to {out}. To use it: field_threshold={threshold.value!r}")
    if threshold.value < 0:
        raise typer.Exit(_NO_GUARANTEE)


def _lines(result: CalibrationResult) -> Iterator[str]:
    calibration = result.calibration
    yield calibration.threshold.status.replace("_", " ").upper()
    yield calibration.threshold.statement
    n, wrong = len(result.uncertainty), int((result.correct == 0).sum())
    for code, count in result.unscored.most_common():
        yield f"{count} of {n} answers can never be accepted: {in_words(code)}."
    yield ""
    calls = calibration.settings["n"]
    yield f"guard           n={calls}: {calls} calls for each answer"
    counts = Counter(calibration.graders).most_common()
    graders = ", ".join(f"{name} {count}" for name, count in counts)
    how = f", {wrong} of them wrong ({graders})" if len(result.correct) else ""
    yield f"scored          {n} answers{how}"
    if result.n_ungraded:
        yield f"left out        {result.n_ungraded} without a grade"
