"""``snne-guard calibrate``: graded recordings to a file that a guard starts from."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from snne_guard.cli import _options
from snne_guard.cli._calibration_view import CalibrationView
from snne_guard.cli._console import count_progress, note, reported_errors
from snne_guard.cli._evaluation_options import (
    check_outputs,
    each_once,
    labels_read,
)
from snne_guard.cli._files import atomic_output
from snne_guard.cli._graders import named_grader, tell_judges
from snne_guard.decision import Calibration
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.calibrating import told
from snne_guard.evaluation.calibrating.calibrate import counted, run_calibration
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.calibrating.results import CalibrationRun
from snne_guard.evaluation.reporting.calibration import calibration_html
from snne_guard.evaluation.reporting.report import check_report_extra

__all__ = ["calibrate"]

_NO_PROMISE = 3
"""Exit status where the file was written, and accepts nothing."""

_WIDE = 100


def calibrate(
    recordings: Annotated[
        list[str], typer.Argument(metavar="RECORDING.jsonl…", help="Graded answers.")
    ],
    *,
    error_rate: Annotated[
        float | None,
        typer.Option(help="Largest share of wrong answers among the accepted ones."),
    ] = None,
    joint_error: Annotated[
        float | None,
        typer.Option(help="Largest share of all answers that is accepted and wrong."),
    ] = None,
    false_refusal: Annotated[
        float | None,
        typer.Option(
            help="Largest share of right answers that is not accepted; with "
            "--error-rate a second threshold, above which is refused."
        ),
    ] = None,
    coverage: Annotated[
        float | None,
        typer.Option(help="Share of all answers to accept; no labels are needed."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="Probability that the error rate is higher after all.")
    ] = 0.1,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the calibration is written.")
    ],
    labels: _options.Labels = None,
    grader: Annotated[
        str,
        typer.Option(
            help="What grades answers without a label: squad_f1, squad_em, contains, "
            "numeric, judge:MODEL, module:function."
        ),
    ] = "label",
    base_url: Annotated[
        str | None, typer.Option(help="Where a judge that grades is served.")
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(help="Recordings of other questions: where the tests start."),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            help="As the guard will have it; calibrated: several, learnt from half "
            "of the labels."
        ),
    ] = "snne",
    similarity: Annotated[
        str | None, typer.Option(help="What compares the answers.")
    ] = None,
    tau: Annotated[
        float | None, typer.Option(help="Temperature of the similarity, above 0.")
    ] = None,
    n: Annotated[
        int | None,
        typer.Option(min=2, help="Members of the set; else all that were recorded."),
    ] = None,
    rounds: Annotated[
        str | None,
        typer.Option(
            help="Members after each round, as 3,5,10: the whole plan is certified."
        ),
    ] = None,
    without_answer: Annotated[
        bool, typer.Option("--without-answer", help="Score the samples alone.")
    ] = False,
    bare_question: Annotated[
        bool,
        typer.Option(
            "--bare-question",
            help="The guard is told the question without its context.",
        ),
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="The model, where the recording names none.")
    ] = None,
    prompt_version: Annotated[
        str | None, typer.Option(help="Your name for the prompt, likewise.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write a page to look at in a browser.")
    ] = None,
) -> None:
    """Make a threshold with a promise of graded recordings, and a file to start from.

    Declare what you ask for before you look at the labels: one of --error-rate,
    --joint-error, --false-refusal and --coverage. Labels of `snne-guard label` are
    found beside each recording and win over the field label and over --grader.

    Exit status: 0 the promise holds; 3 these labels do not allow it: the file is
    written all the same, and a guard with it accepts nothing; 2 wrong usage or
    recordings that can promise nothing: no file was written.
    """
    with reported_errors():
        if report is not None:
            check_report_extra()
        promise = Promise(
            error_rate=error_rate,
            joint_error=joint_error,
            false_refusal=false_refusal,
            coverage=coverage,
            delta=delta,
        )
        read = [*recordings, *([pilot] if pilot else [])]
        read += labels_read(read, labels)
        check_outputs(read, {"--out": out, "--report": report})
        previous = _previous(out)
        chosen = named_grader(grader, base_url=base_url)
        files = each_once(recordings)
        with count_progress() as on_progress:
            run = run_calibration(
                files,
                promise,
                pilot=pilot,
                labels=labels,
                grader=chosen,
                method=method,
                similarity=similarity,
                tau=tau,
                n=n,
                rounds=_options.read_rounds(rounds),
                include_answer=not without_answer,
                bare_question=bare_question,
                model=model,
                prompt_version=prompt_version,
                on_progress=partial(on_progress, files[0]),
            )
        run = replace(run, calibration=counted(run.calibration, previous))
        said = told.tried(run, previous=previous)
        run.calibration.save(out)
        if report is not None:
            with atomic_output(report) as write:
                write(calibration_html(run, note=said).encode("utf-8"))
    _show(run, out)
    tell_judges([chosen])
    for warning in run.warnings:
        note(f"beware: {warning}")
    if said is not None:
        note(said)
    if not run.calibration.threshold.certified:
        raise typer.Exit(_NO_PROMISE)


def _previous(out: Path) -> Calibration | None:
    """Return the calibration in whose place a new one comes.

    Raises:
        ConfigurationError: There is something else.
    """
    if not out.exists():
        return None
    try:
        return Calibration.load(out)
    except InputError as error:
        msg = (
            f"--out {out} is there and holds no calibration that could be replaced "
            f"({error}); name another file"
        )
        raise ConfigurationError(msg) from error


def _show(run: CalibrationRun, out: Path) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _WIDE)
    console.print(CalibrationView(run=run))
    made = run.calibration
    if not made.threshold.certified:
        typer.echo(f"\nwritten to {out}; a guard with it accepts nothing")
        return
    typer.echo(f"\nwritten to {out}; two lines of Python use it:\n")
    typer.echo("    from snne_guard import SNNEGuard")
    version = made.settings.get("prompt_version")
    more = "" if version is None else f", prompt_version={version!r}"
    typer.echo(f"    guard = SNNEGuard.from_calibration(model, {str(out)!r}{more})")
