"""``snne-guard evaluate``: which method finds the wrong answers of recordings."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from snne_guard.cli import options
from snne_guard.cli.console import BadLines, check_outputs, note, progress, safe, source
from snne_guard.cli.models import named_grader
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import (
    Evaluation,
    FeatureCache,
    Interval,
    Recording,
    read_labels,
    read_recordings,
    to_csv,
    to_html,
    with_labels,
)
from snne_guard.evaluation import evaluate as evaluate_recordings
from snne_guard.evaluation.evaluate import with_token_importance
from snne_guard.evaluation.label import labels_paths
from snne_guard.evaluation.report import check_report_packages
from snne_guard.evaluation.results import TITLES
from snne_guard.files import replace_file
from snne_guard.similarity import CrossEncoder
from snne_guard.types import Similarity

__all__ = ["evaluate"]

_WIDE = 130


def evaluate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE.jsonl…", help="Recordings.")
    ],
    *,
    methods: Annotated[
        str,
        typer.Option(
            help="all, or names with commas: dse on all it can run on, dse\\[exact] on "
            "that."
        ),
    ] = "all",
    similarity: Annotated[
        str | None,
        typer.Option(help="What compares answers; several with commas."),
    ] = None,
    without_answer: options.WithoutAnswer = False,
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="As the paper: samples alone, rouge-score's tokens, tau 1."
        ),
    ] = False,
    tau: options.Tau = 1.0,
    samples: Annotated[
        int | None, typer.Option(min=1, help="Samples of each question that count.")
    ] = None,
    nli: Annotated[
        str | None, typer.Option(help="NLI model: a Hugging Face name or a folder.")
    ] = None,
    embedding: Annotated[
        str | None, typer.Option(help="sentence-transformers model: name or folder.")
    ] = None,
    cross_encoder: Annotated[
        str | None,
        typer.Option(help="Cross-encoder for SAR, whose tokens' texts are recorded."),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder to keep how these models compare answers."),
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="A field by which files are split, as dataset.")
    ] = None,
    labels: options.Labels = None,
    grader: options.GraderName = "label",
    base_url: options.JudgeUrl = None,
    regrade: Annotated[
        bool, typer.Option("--regrade", help="Put the grader before the labels.")
    ] = False,
    draws: Annotated[
        int, typer.Option(min=1, help="Bootstrap draws behind the intervals.")
    ] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the draws.")] = 0,
    csv: Annotated[Path | None, typer.Option(help="Write the table to a file.")] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures to a file.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a report to look at in a browser.")
    ] = None,
    strict: options.Strict = False,
) -> None:
    """Rank uncertainty methods by how well they find the wrong answers.

    FILE.jsonl has one JSON object a line: id, question, main_answer, samples, label (1
    right, 0 wrong) or answers to grade by, and where known main_logprobs and
    token_logprobs. Labels of `snne-guard label` are found beside each file and win over
    the field. Each file is ranked apart.

    Bad lines are reported with their number and skipped; the exit status is then 1. It
    is 2 where no set can be ranked.
    """
    if html is not None:
        check_report_packages()
    if paper and similarity is not None:
        msg = "--paper compares by rouge_l_paper; leave --similarity off"
        raise ConfigurationError(msg)
    files = [*dict.fromkeys(files)]
    label_files = labels_paths(files, labels)
    outputs = {"--csv": csv, "--json": json_file, "--html": html}
    check_outputs([*files, *label_files], outputs)
    chosen = "rouge_l_paper" if paper else similarity
    named = {"nli": nli, "embedding": embedding, "cross_encoder": cross_encoder}
    weights = None if cross_encoder is None else CrossEncoder(cross_encoder)
    rank = partial(
        evaluate_recordings,
        methods=methods,
        similarity=None if chosen is None else chosen.split(","),
        models=_models(named, cache=cache),
        include_answer=not (without_answer or paper),
        samples=samples,
        tau=tau,
        grader=named_grader(grader, base_url=base_url),
        labels_first=not regrade,
        draws=draws,
        seed=seed,
        track=partial(progress, what="scoring"),
    )
    bad = BadLines(strict=strict)
    found: list[Evaluation] = []
    for file, label_file in zip(files, label_files, strict=True):
        read = read_recordings(source(file), on_bad=bad.tell)
        rows = with_labels(read, read_labels(label_file))
        if weights is not None:
            rows = with_token_importance(rows, weights)
        for part, recordings in _parts(list(rows), by=by).items():
            try:
                one = rank(recordings, name=f"{file}{part}")
            except InputError as error:
                note(f"{file}{part}: {error}")
                continue
            found.append(one)
            _print(one)
    _write(found, csv=csv, json_file=json_file, html=html)
    if not found:
        note("no question of any file could be ranked")
    if bad.count or not found:
        raise typer.Exit(1 if found else 2)


def _models(
    named: Mapping[str, str | None], *, cache: Path | None
) -> list[str | Similarity]:
    names = [f"{family}:{model}" for family, model in named.items() if model]
    if cache is None:
        return [*names]
    return [FeatureCache(name, folder=cache) for name in names]


def _parts(rows: list[Recording], *, by: str | None) -> dict[str, list[Recording]]:
    """Return recordings by what is shown behind their file's name."""
    if by is None:
        return {"": rows}
    parts: dict[str, list[Recording]] = {}
    for row in rows:
        parts.setdefault(f", {by}: {row.extra.get(by)}", []).append(row)
    return parts


def _write(
    found: Sequence[Evaluation],
    *,
    csv: Path | None,
    json_file: Path | None,
    html: Path | None,
) -> None:
    def to_json(evaluations: Sequence[Evaluation]) -> str:
        return json.dumps([one.to_dict() for one in evaluations], allow_nan=False)

    for path, write in ((csv, to_csv), (json_file, to_json), (html, to_html)):
        if path is not None:
            with replace_file(path) as stream:
                stream.write(write(found).encode("utf-8", "replace"))


def _print(found: Evaluation) -> None:
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is cut off there.
        console.width = max(console.width, _WIDE)
    right = "" if found.accuracy is None else f", {found.accuracy:.1%} right"
    answer = "with" if found.include_answer else "without"
    _say(console, found.name, style="bold")
    _say(
        console,
        f"{len(found.ids)} of {found.n_read} questions{right} by {found.grader}; "
        f"{found.n_samples} samples {answer} the delivered answer",
    )
    for why, count in found.left_out.items():
        _say(console, f"left out, {why}: {count}")
    for warning in found.warnings:
        _say(console, f"beware: {warning}")
    console.print(_table(found))
    for why, names in found.skipped.items():
        _say(console, f"not ranked: {', '.join(names)}: {why}")
    console.print()


def _say(console: Console, text: str, *, style: str | None = None) -> None:
    shown = safe(text)
    console.print(shown, style=style, markup=False, highlight=False, soft_wrap=True)


def _table(found: Evaluation) -> Table:
    """Return the figures; only the first has its interval, all are in the files."""
    metrics = found.metrics
    table = Table(box=None, pad_edge=False)
    for title in ("method", "box"):
        table.add_column(title, no_wrap=True)
    for title in (*(TITLES[metric] for metric in metrics), "difference"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.ranked:
        difference = row.differences.get(metrics[0])
        table.add_row(
            escape(safe(row.name)),
            "white" if row.white_box else "black",
            _with_interval(row.metrics[metrics[0]]),
            *(_number(row.metrics[metric].value) for metric in metrics[1:]),
            "" if difference is None else _with_interval(difference, sign="+"),
        )
    return table


def _with_interval(interval: Interval, *, sign: str = "") -> str:
    value = _number(interval.value, sign=sign)
    if not math.isfinite(interval.low):
        return value
    low, high = _number(interval.low, sign=sign), _number(interval.high, sign=sign)
    return f"{value} ({low} to {high})"


def _number(value: float, *, sign: str = "") -> str:
    return f"{value:{sign}.3f}" if math.isfinite(value) else "-"
