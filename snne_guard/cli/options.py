"""Options that several commands have."""

from __future__ import annotations

from typing import Annotated

import typer

from snne_guard.errors import ConfigurationError
from snne_guard.types import Prices

Model = Annotated[
    str, typer.Option(help="provider:name, hf:NAME, or the embedded model.")
]
BaseUrl = Annotated[str | None, typer.Option(help="Where it is served.")]
System = Annotated[str | None, typer.Option(help="System prompt.")]
Seed = Annotated[
    int | None, typer.Option(help="Seed of the answer; samples have none.")
]
PriceList = Annotated[
    str | None, typer.Option(help="PROMPT,COMPLETION[,CACHED] per million tokens.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one object.")]

SimilarityName = Annotated[
    str | None, typer.Option(help="Such as content_f1, rouge_l, exact, nli:MODEL.")
]
Tau = Annotated[
    float, typer.Option(help="Temperature of the similarity's softmax, above 0.")
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
RecordedModel = Annotated[
    str | None, typer.Option(help="The model, where the recording names none.")
]

GraderName = Annotated[
    str,
    typer.Option(
        help="Grades answers without a label: squad_f1, squad_em, contains, numeric, "
        "rouge_l, bert_score, judge:MODEL, module:function."
    ),
]
JudgeUrl = Annotated[
    str | None, typer.Option(help="Where the model of judge:MODEL is served.")
]


def parse_prices(text: str | None) -> Prices | None:
    """Return what ``PROMPT,COMPLETION[,CACHED]`` means, per million tokens.

    Raises:
        ConfigurationError: It is something else.
    """
    if text is None:
        return None
    try:
        prompt, completion, *rest = (float(part) for part in text.split(","))
        cached = None
        if rest:
            [cached] = rest
    except ValueError:
        msg = f"--prices must be PROMPT,COMPLETION[,CACHED]; got {text!r}"
        raise ConfigurationError(msg) from None
    return Prices(prompt=prompt, completion=completion, cached=cached)
