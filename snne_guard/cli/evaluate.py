"""``snne-guard evaluate``: which method finds the wrong answers of recordings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, note, progress
from snne_guard.cli.models import named_grader
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Evaluation, read_labelled, to_csv, to_html
from snne_guard.evaluation import evaluate as evaluate_recordings
from snne_guard.evaluation.evaluate import with_token_importance
from snne_guard.evaluation.label import labels_path
from snne_guard.evaluation.report import check_report_packages
from snne_guard.evaluation.results import TITLES
from snne_guard.evaluation.self_check import CheckedCalls, compare_self_check
from snne_guard.files import replace_file
from snne_guard.similarity import CrossEncoder
from snne_guard.text import printable

__all__ = ["evaluate"]

_WIDE = 130


def evaluate(
    files: Annotated[
        list[Path], typer.Argument(metavar="RECORDING...", help="Graded answers.")
    ],
    *,
    methods: Annotated[
        str,
        typer.Option(
            help="all, or names with commas: dse on all it can run on, dse[exact] on "
            "that."
        ),
    ] = "all",
    similarity: Annotated[
        str | None,
        typer.Option(
            help="What compares answers, several with commas: content_f1, rouge_l, "
            "exact, nli:MODEL, embedding:MODEL, ..."
        ),
    ] = None,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="As the paper: samples alone, rouge-score's tokens."
        ),
    ] = False,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples of each question that count.")
    ] = None,
    cross_encoder: Annotated[
        str | None,
        typer.Option(
            help="Model that weighs the recorded tokens for TokenSAR and SAR."
        ),
    ] = None,
    grader: options.GraderName = "label",
    base_url: options.JudgeUrl = None,
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap draws behind the intervals.")
    ] = 1000,
    csv: Annotated[Path | None, typer.Option(help="Write the table to a file.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to a file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report to look at in a browser.")
    ] = None,
) -> None:
    """Rank uncertainty methods by how well they find wrong answers.

    A recording has one JSON object a line: id, question, main_answer, samples, label (1
    right, 0 wrong) or answers to grade by, and where known main_logprobs and
    token_logprobs. Labels of `snne-guard label` are found beside each file and win over
    the field. Each file is ranked apart. Where it has self-checks, a second table
    compares each with one sample more.

    Exit status: 0 a file was ranked; 2 wrong usage, or no file can be ranked.
    """
    if html is not None:
        check_report_packages()
    if paper and similarity is not None:
        msg = "--paper compares by rouge_l_paper; leave --similarity off"
        raise ConfigurationError(msg)
    files = [*dict.fromkeys(files)]
    outputs = {"--csv": csv, "--json": json_file, "--html": html}
    check_outputs([*files, *map(labels_path, files)], outputs)
    chosen = "rouge_l_paper" if paper else similarity
    rank = partial(
        evaluate_recordings,
        methods=methods,
        similarity=None if chosen is None else chosen.split(","),
        include_answer=not paper,
        samples=samples,
        grader=named_grader(grader, base_url=base_url),
        draws=draws,
        track=partial(progress, what="scoring"),
    )
    weights = None if cross_encoder is None else CrossEncoder(cross_encoder)
    evaluations: list[Evaluation] = []
    for file in files:
        rows = list(read_labelled(file))
        if weights is not None:
            rows = list(with_token_importance(rows, weights))
        try:
            evaluation = rank(rows, name=str(file))
        except InputError as error:
            note(f"{file}: {error}")
            continue
        evaluations.append(evaluation)
        _print(evaluation)
        _print_self_check(
            compare_self_check(
                rows, grader=named_grader(grader, base_url=base_url), draws=draws
            )
        )
    if not evaluations:
        raise typer.Exit(2)
    _write(evaluations, csv=csv, json_file=json_file, html=html)


def _write(
    evaluations: Sequence[Evaluation],
    *,
    csv: Path | None,
    json_file: Path | None,
    html: Path | None,
) -> None:
    def to_json(rows: Sequence[Evaluation]) -> str:
        return json.dumps([row.to_dict() for row in rows], allow_nan=False)

    for path, write in ((csv, to_csv), (json_file, to_json), (html, to_html)):
        if path is not None:
            with replace_file(path) as stream:
                stream.write(write(evaluations).encode("utf-8", "replace"))


def _print(evaluation: Evaluation) -> None:
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off there.
        console.width = max(console.width, _WIDE)
    right = "" if evaluation.accuracy is None else f", {evaluation.accuracy:.1%} right"
    answer = "with" if evaluation.include_answer else "without"
    _print_line(console, evaluation.name, style="bold")
    _print_line(
        console,
        f"{len(evaluation.ids)} of {evaluation.n_read} questions{right} by "
        f"{evaluation.grader}; {evaluation.n_samples} samples {answer} the delivered "
        "answer",
    )
    for why, count in evaluation.left_out.items():
        _print_line(console, f"left out, {why}: {count}")
    for warning in evaluation.warnings:
        _print_line(console, f"beware: {warning}")
    console.print(_table(evaluation))
    for why, names in evaluation.skipped.items():
        _print_line(console, f"not ranked: {', '.join(names)}: {why}")
    console.print()


def _print_self_check(found: Sequence[CheckedCalls]) -> None:
    """Print what the recorded self-checks are worth; nothing where there are none."""
    if not found:
        return
    table = Table(box=None, pad_edge=False)
    for title in ("calls", "AUROC", "with a self-check", "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found:
        cells = (f"{row.without:.3f}", f"{row.with_check:.3f}", f"{row.gain:+.3f}")
        table.add_row(str(row.calls), *cells)
    console = Console()
    console.print(table)
    console.print()


def _print_line(console: Console, text: str, *, style: str | None = None) -> None:
    shown = printable(text)
    console.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def _table(evaluation: Evaluation) -> Table:
    """Return the figures; only the first has its interval, all are in the files."""
    metrics = evaluation.metrics
    table = Table(box=None, pad_edge=False)
    for title in ("method", "box"):
        table.add_column(title, no_wrap=True)
    for title in (*(TITLES[metric] for metric in metrics), "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in evaluation.ranked:
        difference = row.differences.get(metrics[0])
        table.add_row(
            escape(printable(row.name)),
            "white" if row.white_box else "black",
            f"{row.metrics[metrics[0]]:.3f}",
            *(f"{row.metrics[metric].value:.3f}" for metric in metrics[1:]),
            "" if difference is None else f"{difference:+.3f}",
        )
    return table
