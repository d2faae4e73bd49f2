"""``snne-guard ask``: one guarded question."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument, Option

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, note, page
from snne_guard.cli.models import asking, chat_model, messages_before, model_in_words
from snne_guard.cli.render import assessment_page
from snne_guard.types import Assessment

_WITHHELD = 3
"""Exit status where the answer was refused."""


def ask(
    question: Annotated[str, Argument(help="What to ask.")],
    *,
    model: options.Model = "embedded",
    base_url: options.BaseUrl = None,
    n: Annotated[int, Option(help="Calls to the model, the answer included.")] = 5,
    threshold: Annotated[float | None, Option(help="Largest u to accept.")] = None,
    on_uncertain: Annotated[
        Literal["flag", "refuse"],
        Option(help="What to do with an answer above the threshold."),
    ] = "flag",
    system: options.System = None,
    similarity: options.SimilarityName = None,
    self_check: options.SelfCheck = False,
    spans: Annotated[bool, Option("--spans", help="Show u of each sentence.")] = False,
    context: Annotated[
        Path | None, Option(exists=True, dir_okay=False, help="Text to answer from.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
    save_svg: options.Picture = None,
) -> None:
    """Ask a model one question and show how uncertain its answer is.

    Without --model, a small model on this machine answers. API keys come from the
    environment (OPENAI_API_KEY, ...).

    Exit status: 0 the answer was accepted, flagged or only measured; 1 the model
    failed; 2 wrong usage; 3 the answer was withheld.
    """
    from snne_guard.langchain import SNNEGuard

    check_outputs([], save_svg)
    given = None if context is None else context.read_text("utf-8", "replace")
    if given is not None:
        spans, before = True, f"Answer from this text alone:\n{given}"
        system = f"{system}\n\n{before}" if system else before
    length: dict[str, Any] = {}
    if spans and model == "embedded":  # which answers in a word otherwise
        length = {"max_tokens": 160, "stop": ()}
        system = system or "Answer in a few short sentences."
    guard = SNNEGuard(
        chat_model(model, base_url=base_url, **length),
        n=n,
        threshold=threshold,
        on_uncertain=on_uncertain,
        similarity=similarity,
        self_check=self_check,
        spans=spans,
        context=given,
    )
    note(f"asking {model_in_words(model)}")
    with asking(f"asking for {n} replies"):
        asked = [*messages_before(model, system), ("human", question)]
        assessment = guard.assess(asked)
    if as_json:
        typer.echo(json.dumps(_record(question, assessment), allow_nan=False))
    else:
        with page(save_svg, title=f'snne-guard ask "{question}"') as console:
            console.print(assessment_page(assessment, refusal=guard.refusal))
    if assessment.decision == "refuse":
        raise typer.Exit(_WITHHELD)


def _record(question: str, assessment: Assessment) -> dict[str, Any]:
    """Return the object that --json prints; a withheld answer is null."""
    answer = None if assessment.decision == "refuse" else assessment.answer
    matrix = assessment.matrix
    return {
        "question": question,
        "answer": answer and answer.text,
        "snne_guard": assessment.to_metadata(),
        "samples": [sample.text for sample in assessment.samples],
        "matrix": None if matrix is None else matrix.tolist(),
    }
