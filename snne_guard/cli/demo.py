"""``snne-guard demo``: the guard at work on prepared questions, on a real model."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.rule import Rule

from snne_guard.cli._asking import (
    Arrivals,
    embedded_chat,
    provider_errors,
    short_answers,
)
from snne_guard.cli._console import reported_errors
from snne_guard.cli.render import AssessmentView
from snne_guard.types import Assessment

__all__ = ["QUESTIONS", "demo"]

QUESTIONS = (
    ("well known", "What is the capital of France?"),
    ("half known", "What is the capital of Brazil?"),
    (
        "unknowable: no such novel",
        "Who wrote the novel The Lighthouse of Varn?",
    ),
    ("a mistake that it makes every time", "What is the capital of Morocco?"),
)
"""What each question is there to show, and the question."""

_N = 10
_SEED = 7
_THRESHOLD = 0.5
_WIDTH = 86  # of the recorded picture

_BEFORE = (
    f"[bold]snne-guard[/bold] asks a model the same thing {_N} times and measures how "
    "far the replies spread. The model runs on this machine: SmolLM2-135M-Instruct, "
    "one of the smallest there are. [bold]It is often wrong[/bold], which is what a "
    "guard is for; nothing here says how accurate any model is.\n"
    f"The threshold {_THRESHOLD:.2f} is [bold]uncalibrated[/bold]: picked by eye, it "
    "promises nothing.\n"
)

_AFTER = (
    "[bold]Agreement is not truth.[/bold] The guard sees how far replies differ, not "
    "whether they are right: a mistake that the model makes every time passes it. A "
    "threshold picked by eye promises nothing: pick yours on answers that you checked."
)


def demo(
    question: Annotated[
        str | None, typer.Argument(help="A question of your own, in place of ours.")
    ] = None,
    *,
    save_svg: Annotated[
        Path | None, typer.Option(help="Also save what is shown as a picture.")
    ] = None,
) -> None:
    """Show the guard at work on a small real model: it needs no key.

    Ten replies to each question, with fixed seeds; the threshold is uncalibrated.
    """
    recording = save_svg is not None
    console = Console(
        highlight=False, record=recording, width=_WIDTH if recording else None
    )
    asked = QUESTIONS if question is None else (("your question", question),)
    console.print(_BEFORE)
    with reported_errors():
        for number, (what, text) in enumerate(asked, start=1):
            title = f"[bold]{number}. {escape(text)}[/bold]  [dim]{what}[/dim]"
            console.print(Rule(title, align="left", style="dim"))
            assessment, refusal = _guarded(text)
            held_back = assessment.decision == "refuse"
            console.print(
                AssessmentView(
                    assessment=assessment, delivered=refusal if held_back else None
                )
            )
            console.print()
    console.print(_AFTER)
    if save_svg is not None:
        page = console.export_svg(title="snne-guard demo")
        save_svg.write_text(_without_fonts(page), encoding="utf-8")


def _without_fonts(svg: str) -> str:
    """Return the picture without the fonts that it would load from elsewhere."""
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def _guarded(question: str) -> tuple[Assessment, str]:
    """Return the assessment, and what stands in for a withheld answer."""
    from snne_guard.langchain.guard import SNNEGuard

    progress = Console(stderr=True)
    model = embedded_chat(console=progress, seed=_SEED)
    arrivals = Arrivals(_N, console=progress)
    guard = SNNEGuard(
        model,
        n=_N,
        threshold=_THRESHOLD,
        on_uncertain="refuse",
        # One request after the other: side by side they would disturb each other's
        # rounding, and with it what a seed draws.
        schedule="answer_first",
        observers=(arrivals,),
    )
    with provider_errors(), arrivals:
        return guard.assess(short_answers(question)), guard.refusal
