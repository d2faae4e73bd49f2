"""Options that several commands have, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snne_guard.cli._console import failure

__all__ = [
    "AsJson",
    "BaseUrl",
    "Calibration",
    "Labels",
    "Model",
    "Prices",
    "PromptVersion",
    "SampleTemperature",
    "Seed",
    "Strict",
    "System",
    "Threshold",
    "read_rounds",
]

Model = Annotated[
    str | None,
    typer.Option(
        help="provider:name, or hf:NAME for one that runs here; else embedded."
    ),
]
BaseUrl = Annotated[
    str | None, typer.Option(help="Where the model is served, with --model.")
]
SampleTemperature = Annotated[
    float, typer.Option(help="Temperature of the samples, not of the answer.")
]
System = Annotated[str | None, typer.Option(help="System prompt.")]
Seed = Annotated[
    int | None, typer.Option(help="Fixes what is drawn, where the model can.")
]
Threshold = Annotated[
    float | None, typer.Option(help="Largest u that is accepted, in [0, 1].")
]
Calibration = Annotated[
    Path | None,
    typer.Option(help="File of a calibration, in place of --threshold and settings."),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        help="Labels of the one recording; else RECORDING.labels.jsonl beside it.",
        show_default=False,
    ),
]
PromptVersion = Annotated[
    str | None, typer.Option(help="Your name for the prompt, for --calibration.")
]
Prices = Annotated[
    str | None,
    typer.Option(help="PROMPT,COMPLETION[,CACHED] per million tokens, as 2,8,0.5."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")]
AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object and nothing else.")
]


def read_rounds(given: str | None) -> tuple[int, ...] | None:
    """Read what --rounds says."""
    if given is None:
        return None
    try:
        return tuple(int(members) for members in given.split(","))
    except ValueError:
        told = f"--rounds must be whole numbers such as 5,8,10; got {given!r}"
        raise failure(told) from None
