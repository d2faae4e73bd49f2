"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from snne_guard.cost import Prices
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.grade import GRADERS
from snne_guard.self_check import Form

Recordings = Annotated[
    list[Path],
    Argument(metavar="RECORDING...", help="Recordings with graded answers."),
]

Model = Annotated[str, Option(help="Model to ask: provider:name, hf:NAME or embedded.")]
BaseUrl = Annotated[str | None, Option(help="Base URL of your own server.")]
System = Annotated[str | None, Option(help="System prompt.")]

Picture = Annotated[Path | None, Option(help="Also save the output as an SVG picture.")]

SimilarityName = Annotated[
    str | None,
    Option(help="What compares answers: content_f1, rouge_l, exact, nli:MODEL, ..."),
]
WithoutAnswer = Annotated[
    bool, Option("--without-answer", help="Score the samples alone.")
]
SelfCheck = Annotated[
    bool, Option("--self-check", help="Ask the model whether its answer is correct.")
]
SelfCheckForm = Annotated[
    Form, Option(help="What a self-check asks for: Yes or No, or a number to 100.")
]
OtherModels = Annotated[
    list[str] | None,
    Option(metavar="NAME", help="Another model, named as for --model. Repeatable."),
]
OtherUrl = Annotated[str | None, Option(help="Base URL of the other models.")]
Shard = Annotated[
    str | None, Option(metavar="K/N", help="Take only part K of N of the questions.")
]

ColumnNames = Annotated[
    list[str] | None,
    Option(metavar="FIELD=COLUMN", help="Column with a field, in CSV. Repeatable."),
]

TokenPrices = Annotated[
    tuple[float, float, float] | None,
    Option(metavar="INPUT OUTPUT CACHED", help="Prices per million tokens."),
]
OtherPrices = Annotated[
    list[str] | None,
    Option(metavar="NAME=INPUT,OUTPUT[,CACHED]", help="Another model's. Repeatable."),
]

GraderName = Annotated[
    str,
    Option(
        help=f"What grades answers without a label: {', '.join(GRADERS)} or "
        "judge:MODEL; label: nothing does."
    ),
]
JudgeUrl = Annotated[str | None, Option(help="Base URL of the judge's server.")]


_KINDS = ("prompt", "completion", "cached")


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
        found[name] = Prices(**dict(zip(_KINDS, prices, strict=False)))
    return found


def names_in(text: str) -> list[str]:
    """Return the names in a list that is separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def prices_of(values: tuple[float, float, float] | None) -> Prices | None:
    """Return the prices that ``--prices`` gives."""
    return values and Prices(**dict(zip(_KINDS, values, strict=True)))


def columns_of(given: Sequence[str] | None) -> dict[str, list[str]]:
    """Return the columns that ``--column`` gives, by field."""
    columns: dict[str, list[str]] = {}
    for text in given or ():
        field, equals, name = text.partition("=")
        if not (field and equals and name):
            msg = f"expected --column FIELD=COLUMN, got {text!r}"
            raise ConfigurationError(msg)
        columns.setdefault(field, []).append(name)
    return columns
