"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snne_guard.types import Prices

Model = Annotated[
    str, typer.Option(help="provider:name, hf:NAME, or the embedded model.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Address of a server of your own.")]
System = Annotated[str | None, typer.Option(help="System prompt.")]

Picture = Annotated[
    Path | None, typer.Option(help="Also save what is shown as a picture.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one object.")]

SimilarityName = Annotated[
    str | None, typer.Option(help="Such as content_f1, rouge_l, exact, nli:MODEL.")
]
WithoutAnswer = Annotated[
    bool, typer.Option("--without-answer", help="Score the samples alone.")
]
BareQuestion = Annotated[
    bool,
    typer.Option(
        "--bare-question", help="The guard is told the question without context."
    ),
]
SelfCheck = Annotated[
    bool,
    typer.Option("--self-check", help="One call asks if the answer is correct."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="K/N", help="Take part K of N of the questions, by their ids."
    ),
]
Ray = Annotated[
    int | None,
    typer.Option(
        "--ray",
        min=1,
        metavar="WORKERS",
        help="Ask by workers on Ray, here or on the cluster at RAY_ADDRESS.",
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(metavar="openai", help="Ask through batches, at half the price."),
]
RecordedModel = Annotated[
    str | None, typer.Option(help="The model, where the recording names none.")
]

TokenPrices = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        "--prices", metavar="READ WRITTEN CACHED", help="Of a million tokens."
    ),
]

GraderName = Annotated[
    str,
    typer.Option(
        help="Grades answers without a label: squad_f1, contains, numeric, rouge_l, "
        "bert_score, judge:MODEL."
    ),
]
JudgeUrl = Annotated[
    str | None, typer.Option(help="Address of the server of judge:MODEL.")
]


def prices_of(values: tuple[float, float, float] | None) -> Prices | None:
    """Return the prices that ``--prices`` gives."""
    if values is None:
        return None
    read, written, cached = values
    return Prices(prompt=read, completion=written, cached=cached)
