"""``snne-guard demo``: the guard at work on prepared questions, on a real model."""

from __future__ import annotations

from typing import Annotated

from rich.markup import escape
from rich.rule import Rule
from typer import Argument

from snne_guard.cli import options
from snne_guard.cli.console import check_outputs, page
from snne_guard.cli.models import asking, chat_model, messages_before
from snne_guard.cli.render import assessment_page
from snne_guard.text import printable

_SURE_AND_WRONG = "wrong every time, and sure when asked"

_QUESTIONS = (
    ("well known", "What is the capital of France?"),
    ("half known", "What is the capital of Brazil?"),
    ("unknowable: no such novel", "Who wrote the novel The Lighthouse of Varn?"),
    (_SURE_AND_WRONG, "What is the capital of Morocco?"),
)
"""What each shows, and the question."""

_N = 10
_THRESHOLD = 0.5

_BEFORE = (
    f"[bold]snne-guard[/bold] asks a model the same thing {_N} times and measures how "
    "far the replies differ. The model runs on this machine: SmolLM2-135M-Instruct, "
    "one of the smallest there are. [bold]It is often wrong[/bold], which is what a "
    "guard is for; nothing here says how accurate any model is.\n"
    f"The threshold {_THRESHOLD:.2f} is [bold]uncalibrated[/bold]: picked by eye, it "
    "guarantees nothing.\n"
)

_AFTER = (
    "[bold]Agreement is not truth.[/bold] The guard sees how far replies differ, not "
    "whether they are right: it cannot see an error that the model repeats, even where "
    "a small model is asked to check its own answer. A threshold picked by eye "
    "guarantees nothing: calibrate yours on answers that you have checked."
)


def demo(
    question: Annotated[
        str | None, Argument(help="Your own question, in place of the prepared ones.")
    ] = None,
    *,
    save_svg: options.Picture = None,
) -> None:
    """Watch the guard at work on a small model, offline.

    It draws ten replies to each of four questions. The threshold is uncalibrated.
    """
    from snne_guard.langchain import SNNEGuard

    check_outputs([], save_svg)
    chat = chat_model("embedded")
    asked = _QUESTIONS if question is None else (("your question", question),)
    with page(save_svg, title="snne-guard demo") as console:
        console.print(_BEFORE)
        for number, (shows, text) in enumerate(asked, start=1):
            shown = escape(printable(text))
            title = f"[bold]{number}. {shown}[/bold]  [dim]{shows}[/dim]"
            console.print(Rule(title, align="left", style="dim"))
            guard = SNNEGuard(
                chat,
                n=_N,
                threshold=_THRESHOLD,
                on_uncertain="refuse",
                self_check=shows == _SURE_AND_WRONG,
            )
            with asking(f"asking for {_N} replies"):
                before = messages_before("embedded")
                assessment = guard.assess([*before, ("human", text)])
            console.print(assessment_page(assessment, refusal=guard.refusal))
            console.print()
        console.print(_AFTER)
