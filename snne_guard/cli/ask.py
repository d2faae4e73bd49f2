"""``snne-guard ask``: one guarded question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from snne_guard.cli import options
from snne_guard.cli.console import page
from snne_guard.cli.models import chat_model, messages_before, provider_errors
from snne_guard.cli.render import assessment_page
from snne_guard.decision import Calibration
from snne_guard.types import Assessment

__all__ = ["ask"]

_LONG: dict[str, Any] = {"max_tokens": 160, "stop": ()}
"""The embedded model answers in a word otherwise."""

_HELD_BACK = 3
"""Exit status where the answer was refused."""


def ask(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    *,
    model: options.Model = "embedded",
    base_url: options.BaseUrl = None,
    n: Annotated[
        int | None,
        typer.Option(help="Calls to the model, the answer included; 5 by default."),
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Largest u to accept, in [0, 1].")
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option(help="File that snne-guard calibrate wrote.")
    ] = None,
    on_uncertain: Annotated[
        Literal["flag", "refuse"],
        typer.Option(help="What to do with an answer above the threshold."),
    ] = "flag",
    system: options.System = None,
    similarity: options.SimilarityName = None,
    self_check: options.SelfCheck = False,
    spans: Annotated[
        bool, typer.Option("--spans", help="Show the uncertainty of each sentence.")
    ] = False,
    as_json: options.AsJson = False,
    save_svg: options.Picture = None,
) -> None:
    """Ask a model one question and show how uncertain its answer is.

    Without --model, a small model on this machine answers. API keys come from the
    environment (OPENAI_API_KEY, ...).

    With --calibration, all settings come from its file. An option that contradicts
    the file is an error.

    Exit status: 0 the answer was accepted, flagged or only measured; 1 the model
    failed; 2 wrong usage; 3 the answer was withheld.
    """
    from snne_guard.langchain import SNNEGuard

    stored = None if calibration is None else Calibration.load(calibration)
    bound = {} if stored is None else stored.settings
    bound = bound or (_LONG if spans and model == "embedded" else {})
    chat = chat_model(
        model,
        base_url=base_url,
        stop=bound.get("stop"),
        temperature=bound.get("answer_temperature"),
        top_p=bound.get("top_p"),
        max_tokens=bound.get("max_tokens"),
    )
    given = {
        "n": n,
        "threshold": threshold,
        "similarity": similarity,
        "self_check": self_check or None,
        "spans": spans or None,
    }
    chosen: dict[str, Any] = {} if stored is None else stored.guard_settings()
    chosen |= {name: value for name, value in given.items() if value is not None}
    guard = SNNEGuard(chat, on_uncertain=on_uncertain, **chosen)
    progress = Console(stderr=True)
    with provider_errors(), progress.status(f"asking for {guard.n} replies"):
        if bound is _LONG and system is None:
            system = "Answer in a few short sentences."
        before = messages_before(model=model, system=system)
        assessment = guard.assess([*before, ("human", question)])
    held_back = assessment.decision == "refuse"
    if as_json:
        typer.echo(json.dumps(_record(question, assessment), allow_nan=False))
    else:
        delivered = guard.refusal if held_back else None
        with page(save_svg, title=f'snne-guard ask "{question}"') as console:
            console.print(assessment_page(assessment, delivered=delivered))
    if held_back:
        raise typer.Exit(_HELD_BACK)


def _record(question: str, assessment: Assessment) -> dict[str, Any]:
    """Return what --json prints; the answer is null where it was held back."""
    answer = None if assessment.decision == "refuse" else assessment.answer
    matrix = assessment.matrix
    return {
        "question": question,
        "answer": answer and answer.text,
        "snne_guard": assessment.to_metadata(),
        "samples": [sample.text for sample in assessment.samples],
        "matrix": None if matrix is None else matrix.tolist(),
    }
