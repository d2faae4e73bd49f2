"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from snne_guard.cost import Prices
from snne_guard.errors import ConfigurationError
from snne_guard.self_check import Form

Model = Annotated[
    str, typer.Option(help="Model to ask: provider:name, hf:NAME or embedded.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Base URL of your own server.")]
System = Annotated[str | None, typer.Option(help="System prompt.")]

Picture = Annotated[
    Path | None, typer.Option(help="Also save the output as an SVG picture.")
]

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
SelfCheck = Annotated[
    bool,
    typer.Option("--self-check", help="Ask the model whether its answer is correct."),
]
SelfCheckForm = Annotated[
    Form,
    typer.Option(help="What a self-check asks for: Yes or No, or a number to 100."),
]
OtherModels = Annotated[
    list[str] | None,
    typer.Option(
        "--other-model",
        metavar="NAME",
        help="Another model beside it, named as for --model. Repeatable.",
    ),
]
OtherUrl = Annotated[
    str | None,
    typer.Option(
        "--other-base-url", help="Base URL of the other models; by default their own."
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        metavar="K/N", help="Take only part K of N of the questions, split by id."
    ),
]

ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=COLUMN",
        help="Column of a CSV file that holds a field; again for a list in several. "
        "Repeatable.",
    ),
]

TokenPrices = Annotated[
    tuple[float, float, float] | None,
    typer.Option(
        "--prices",
        metavar="INPUT OUTPUT CACHED",
        help="Prices per million input, output and cached tokens.",
    ),
]
OtherPrices = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=INPUT,OUTPUT[,CACHED]",
        help="The same for another model. Repeatable.",
    ),
]

GraderName = Annotated[
    str,
    typer.Option(
        help="What grades answers that have no label: contains, word_f1, squad_f1, "
        "numeric, math_verify, rouge_l, bert_score or judge:MODEL; with label, "
        "nothing does."
    ),
]
JudgeUrl = Annotated[
    str | None, typer.Option(help="Base URL of the server that runs judge:MODEL.")
]


def other_prices_of(values: list[str] | None) -> dict[str, Prices]:
    """Return the prices that ``--other-prices`` gives, by model."""
    found: dict[str, Prices] = {}
    for value in values or ():
        name, _, given = value.rpartition("=")
        try:
            prices = [*map(float, given.split(","))]
        except ValueError:
            prices = []
        if not name or len(prices) not in {2, 3}:
            what = "NAME=INPUT,OUTPUT or NAME=INPUT,OUTPUT,CACHED"
            msg = f"expected --other-prices as {what}, got {value!r}"
            raise ConfigurationError(msg)
        kinds = ("prompt", "completion", "cached")
        found[name] = Prices(**dict(zip(kinds, prices, strict=False)))
    return found


def names_in(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def prices_of(values: tuple[float, float, float] | None) -> Prices | None:
    """Return the prices that ``--prices`` gives."""
    if values is None:
        return None
    prompt, completion, cached = values
    return Prices(prompt=prompt, completion=completion, cached=cached)


def columns_of(given: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the columns that ``--column`` gives, by field.

    Raises:
        ConfigurationError: One is not FIELD=COLUMN.
    """
    columns: dict[str, list[str]] = {}
    for text in given or ():
        field, equals, name = text.partition("=")
        if not (field and equals and name):
            msg = f"expected --column FIELD=COLUMN, got {text!r}"
            raise ConfigurationError(msg)
        columns.setdefault(field, []).append(name)
    return columns
