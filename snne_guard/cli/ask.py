"""``snne-guard ask``: one guarded question, from the command line."""

from __future__ import annotations

import json
import math
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from snne_guard.cli import _options
from snne_guard.cli._asking import (
    Arrivals,
    provider_errors,
    short_answers,
)
from snne_guard.cli._console import failure, reported_errors
from snne_guard.cli._models import chat_model, with_settings
from snne_guard.decision import Calibration
from snne_guard.decision.bound_settings import ANSWER_SETTINGS
from snne_guard.sampling.prices import Prices
from snne_guard.types import Assessment, Sample

__all__ = ["HELD_BACK", "ask"]

HELD_BACK = 3
"""Exit status where the answer was refused."""


class Uncertain(StrEnum):
    """What is done with an answer that is not accepted."""

    flag = "flag"
    refuse = "refuse"


def ask(
    context: typer.Context,
    question: Annotated[str, typer.Argument(help="What to ask.")],
    *,
    model: _options.Model = None,
    base_url: _options.BaseUrl = None,
    n: Annotated[int, typer.Option(help="Replies compared, the answer included.")] = 5,
    rounds: Annotated[
        str | None,
        typer.Option(
            help="Replies after each round, as 5,8,10 with --n 10 and --threshold: "
            "stops where no further one can change the decision."
        ),
    ] = None,
    threshold: _options.Threshold = None,
    calibration: _options.Calibration = None,
    prompt_version: _options.PromptVersion = None,
    allow_mismatch: Annotated[
        bool,
        typer.Option(
            "--allow-mismatch",
            help="Take a calibration that was made for something else: certifies "
            "nothing.",
        ),
    ] = False,
    on_uncertain: Annotated[
        Uncertain, typer.Option(help="What is done above the threshold.")
    ] = Uncertain.flag,
    temperature: _options.SampleTemperature = 1.0,
    system: _options.System = None,
    seed: _options.Seed = None,
    method: Annotated[str, typer.Option(help="auto, snne, wsnne, ...")] = "auto",
    similarity: Annotated[
        str | None, typer.Option(help="content_f1, rouge_l, ...; else the method's.")
    ] = None,
    prices: _options.Prices = None,
    as_json: _options.AsJson = False,
) -> None:
    """Ask a model several times and see how far its answers spread.

    Without --model the small embedded model answers, on this machine; unless
    --system is given it is shown that answers are to be short. Keys are read from
    the environment (OPENAI_API_KEY, ...), never from the command line.

    With --calibration all that it was made for is taken from its file, and the answer
    comes with a probability of being wrong; other options must be the same, unless
    --allow-mismatch says that nothing need be certified.

    Exit status: 0 accepted, flagged or only measured; 1 the model failed; 2 wrong
    usage; 3 the answer was held back.
    """
    from snne_guard.langchain.guard import SNNEGuard

    if not question.strip():
        told = "the question is empty"
        raise failure(told)
    console = Console(stderr=True)
    with reported_errors():
        priced = None if prices is None else Prices.parse(prices)
        chat = chat_model(model, base_url=base_url, seed=seed, console=console)
        made = None if calibration is None else Calibration.load(calibration)
        members = n if made is None else made.settings.get("n") or n
        arrivals = Arrivals(members, console=console)
        settings: dict[str, Any] = {
            "n": n,
            "rounds": _options.read_rounds(rounds),
            "threshold": threshold,
            "temperature": temperature,
            "method": method,
            "similarity": similarity,
        }
        of_answer: dict[str, Any] = dict.fromkeys(ANSWER_SETTINGS)
        if made is not None:
            given = {name: settings[name] for name in settings if _said(context, name)}
            settings = {**made.guard_settings(), **given}
            of_answer = {name: made.settings.get(name) for name in of_answer}
        guard = SNNEGuard(
            with_settings(
                chat,
                temperature=of_answer["answer_temperature"],
                top_p=of_answer["top_p"],
                max_tokens=of_answer["max_tokens"],
                stop=of_answer["stop"],
            ),
            **settings,
            prompt_version=prompt_version,
            allow_mismatch=allow_mismatch,
            on_uncertain=on_uncertain.value,
            prices=priced,
            observers=(arrivals,),
        )
        messages = _messages(question, system=system, embedded=model is None)
        with provider_errors(), arrivals:
            assessment = guard.assess(messages)
    held_back = assessment.decision == "refuse"
    if as_json:
        typer.echo(json.dumps(_record(question, assessment), allow_nan=False))
    else:
        from snne_guard.cli.render import AssessmentView

        delivered = guard.refusal if held_back else None
        page = AssessmentView(assessment=assessment, delivered=delivered)
        Console(highlight=False).print(page)
    if held_back:
        raise typer.Exit(HELD_BACK)


def _said(context: typer.Context, name: str) -> bool:
    """Return whether the user has given an option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name != "DEFAULT"


def _messages(
    question: str, *, system: str | None, embedded: bool
) -> list[tuple[str, str]]:
    if system is not None:
        return [("system", system), ("human", question)]
    return short_answers(question) if embedded else [("human", question)]


def _record(question: str, assessment: Assessment) -> dict[str, Any]:
    """Return what --json prints; ``answer`` is null where it was held back."""
    metadata = assessment.to_metadata()
    score, answer, matrix = assessment.score, assessment.answer, assessment.matrix
    if score is not None and not math.isfinite(score):
        metadata["score"] = None  # JSON has no word for infinity
    withheld, scored = assessment.decision == "refuse", list(assessment.scored)
    return {
        "question": question,
        "answer": None if answer is None or withheld else _says(answer),
        "snne_guard": metadata,
        "samples": [_says(sample) for sample in assessment.samples],
        "scored": [None, *scored[1:]] if withheld and scored else scored,
        "matrix": None if matrix is None else matrix.tolist(),
    }


def _says(sample: Sample) -> str:
    return sample.text if sample.tool_calls is None else sample.tool_calls
