"""``snne-guard label``: answers of a recording, graded by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated

import typer
from rich.console import Console

from snne_guard.cli._console import note, reported_errors
from snne_guard.cli._files import LineSource, atomic_output, refuse_same_file
from snne_guard.cli._keys import opened_keys
from snne_guard.cli._labelling import Labelling, count_labels
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import BadLine, Recording, parse_recordings, read_recordings
from snne_guard.evaluation.comparison.files import same_file
from snne_guard.evaluation.labelling.labels import (
    LABEL_ORDER,
    Labels,
    Order,
    labels_path,
)
from snne_guard.evaluation.labelling.order import hardest_first, random_order
from snne_guard.evaluation.labelling.store import LabelStore
from snne_guard.evaluation.recording.lines import decode

__all__ = ["label"]

_BY_INTERRUPT = 130

_MIXED = {
    "random": "picked hardest first, and labels for a promise are picked at random",
    "hardest_first": "picked at random, as a promise needs them, and not hardest first",
}


def label(
    recording: Annotated[
        Path, typer.Argument(metavar="RECORDING.jsonl", help="Whose answers to grade.")
    ],
    *,
    labels: Annotated[
        Path | None,
        typer.Option(
            help="Where labels are kept; else RECORDING.labels.jsonl beside it.",
            show_default=False,
        ),
    ] = None,
    hardest: Annotated[
        bool,
        typer.Option(
            "--hardest-first",
            help="The most uncertain first: to learn from, never for a promise.",
        ),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the random order.")] = 0,
    skipped: Annotated[
        bool, typer.Option("--skipped", help="Ask again for those that were skipped.")
    ] = False,
    regrade: Annotated[
        bool,
        typer.Option("--regrade", help="Ask too where the recording has a label."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write the recording with the labels in it."
        ),
    ] = None,
) -> None:
    """Grade the answers of a recording by hand: one key each.

    Answers come in a random order, so that those that are graded when you stop are a
    random sample, which `snne-guard calibrate` can promise something by. The same
    command goes on where it ended, in whatever way: each label is written at once, to
    a file beside the recording, which itself is never changed.

    Keys: r right, w wrong, s skip, b back, c all of the context, ? help, q quit. Where
    standard input is no terminal each line is a key.

    Exit status: 0 ended, or quit; 1 some lines of the file are no recordings; 2 wrong
    usage; 130 interrupted; 143 ended by SIGTERM.
    """
    order: Order = "hardest_first" if hardest else "random"
    kept = labels or labels_path(recording)
    status = 0
    with reported_errors():
        _check_files(recording, kept, output)
        rows, bad = _read(recording)
        with LabelStore(kept) as store:
            if store.torn:
                note(f"{store.torn} bytes of a torn line are now in {kept}.torn")
            open_ = [row for row in rows if regrade or row.label is None]
            if len(open_) < len(rows):
                told = f"{len(rows) - len(open_)} of {len(rows)} answers have a label"
                note(f"{told} in the recording; --regrade asks for them too")
            rows = open_
            _check_order(store.labels, rows, order, kept)
            _tell_others(store.labels, rows)
            asked = _asked(store.labels, rows, skipped=skipped)
            sort = hardest_first if hardest else random_order
            try:
                with opened_keys() as keys:
                    Labelling(
                        store=store,
                        before=_before(store.labels, rows, asked),
                        asked=sort(asked, seed=seed),
                        order=order,
                        seed=seed,
                        keys=keys,
                        console=Console(),
                    ).run()
            except KeyboardInterrupt:
                status = _BY_INTERRUPT
            counts = count_labels(store.labels, rows)
            if output is not None:
                _write(recording, output, store.labels)
    for word, count in counts.items():
        typer.echo(f"{word:<12} {count}")
    typer.echo(f"labels       {kept}")
    if not hardest and counts["right"] + counts["wrong"]:
        note(_next(recording, labels))
    if hardest:
        note("labels that were picked hardest first are to learn from: no promise")
    raise typer.Exit(status or int(bad))


def _next(recording: Path, labels: Path | None) -> str:
    named = "" if labels is None else f" --labels {quote(str(labels))}"
    command = f"snne-guard calibrate {quote(str(recording))}{named}"
    return f"a threshold of these labels: {command} --error-rate 0.1 --out guard.json"


def _check_files(recording: Path, kept: Path, output: Path | None) -> None:
    named = [(kept, "the recording itself", recording)]
    if output is not None:
        named.append((output, "the recording itself", recording))
        named.append((output, "where the labels are kept", kept))
    for path, what, other in named:
        if same_file(path, other):
            msg = f"{path} is {what}; name another file"
            raise ConfigurationError(msg)


def _read(path: Path) -> tuple[list[Recording], bool]:
    rows: list[Recording] = []
    bad = False
    for number, row in read_recordings(path):
        if isinstance(row, BadLine):
            note(f"line {number}: {row.message}")
            bad = True
        else:
            rows.append(row)
    return rows, bad


def _check_order(
    labels: Labels, rows: Sequence[Recording], order: Order, path: Path
) -> None:
    """Refuse to pick in one way where there are labels that were picked in another."""
    orders = {said.order for row in rows if (said := labels.of(row)) is not None}
    if orders - {order}:
        msg = (
            f"the labels in {path} were {_MIXED[order]}; keep the others apart: name "
            "another file with --labels"
        )
        raise ConfigurationError(msg)


def _tell_others(labels: Labels, rows: Sequence[Recording]) -> None:
    other = sum(row.id in labels.by_id and labels.of(row) is None for row in rows)
    if other:
        many = f"{other} labels are of other answers to the same questions"
        one = "1 label is of another answer to the same question"
        note(f"{one if other == 1 else many}: asked again")


def _before(
    labels: Labels, rows: Sequence[Recording], asked: Sequence[Recording]
) -> list[Recording]:
    """Return the answers that need no label, in the order in which they got one."""
    open_ = {row.id for row in asked}
    known = {row.id: row for row in rows if row.id not in open_}
    return [known[name] for name in labels.by_id if name in known]


def _asked(
    labels: Labels, rows: Sequence[Recording], *, skipped: bool
) -> list[Recording]:
    return [
        row
        for row in rows
        if (said := labels.of(row)) is None or (skipped and said.label is None)
    ]


def _write(source: Path, output: Path, labels: Labels) -> None:
    """Write the recording with what was said of its answers; all else stays."""
    with source.open("rb") as stream:
        refuse_same_file(stream, output)
        lines = LineSource(stream, on_bytes=int)
        with atomic_output(output) as write:
            for _, row in parse_recordings(lines):
                write(_with_label(lines.raw, row, labels))


def _with_label(line: bytes, row: Recording | BadLine, labels: Labels) -> bytes:
    said = None if isinstance(row, BadLine) else labels.of(row)
    if said is None or said.label is None:
        return line
    fields = decode(line.removeprefix(b"\xef\xbb\xbf"))
    added = {"label": said.label, LABEL_ORDER: said.order}
    return json.dumps({**fields, **added}).encode() + b"\n"
