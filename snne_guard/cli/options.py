"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from snne_guard.types import Prices

Model = Annotated[
    str, typer.Option(help="Model to ask: provider:name, hf:NAME or embedded.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Base URL of your own server.")]
System = Annotated[str | None, typer.Option(help="System prompt.")]

Picture = Annotated[
    Path | None, typer.Option(help="Also save the output as an SVG picture.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]

SimilarityName = Annotated[
    str | None,
    typer.Option(
        help="What compares answers: content_f1, rouge_l, exact, nli:MODEL, ..."
    ),
]
WithoutAnswer = Annotated[
    bool,
    typer.Option(
        "--without-answer", help="Score the samples alone, without the answer."
    ),
]
BareQuestion = Annotated[
    bool,
    typer.Option(
        "--bare-question", help="Give the similarity the question without its context."
    ),
]
SelfCheck = Annotated[
    bool,
    typer.Option("--self-check", help="Ask the model whether its answer is correct."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="K/N", help="Take only part K of N of the questions, split by id."
    ),
]
Ray = Annotated[
    int | None,
    typer.Option(
        "--ray",
        min=1,
        metavar="WORKERS",
        help="Ask with this many Ray workers, here or on the cluster at RAY_ADDRESS.",
    ),
]
Batch = Annotated[
    Literal["openai"] | None,
    typer.Option(help="Ask through the provider's batch API, at half the price."),
]
RecordedModel = Annotated[
    str | None, typer.Option(help="Model that answered, if the recording names none.")
]

TokenPrices = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        "--prices",
        metavar="INPUT OUTPUT CACHED",
        help="Prices per million input, output and cached tokens.",
    ),
]

GraderName = Annotated[
    str,
    typer.Option(
        help="What grades answers that have no label: squad_f1, contains, numeric, "
        "rouge_l, bert_score, judge:MODEL."
    ),
]
JudgeUrl = Annotated[
    str | None, typer.Option(help="Base URL of the server that runs judge:MODEL.")
]


def names_in(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def prices_of(values: tuple[float, float, float] | None) -> Prices | None:
    """Return the prices that ``--prices`` gives."""
    if values is None:
        return None
    prompt, completion, cached = values
    return Prices(prompt=prompt, completion=completion, cached=cached)
