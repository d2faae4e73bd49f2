"""``snne-guard doctor``: whether a model's samples can be trusted, by asking it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text
from typer import Option

from snne_guard.cli import options
from snne_guard.cli.models import asking, chat_model
from snne_guard.cli.render import cost_in_words
from snne_guard.doctor import Report, compare_words, examine
from snne_guard.text import printable

_UNTRUSTED = 1
"""Exit status where samples of this model cannot be trusted."""


def doctor(
    *,
    model: options.Model = "embedded",
    base_url: options.BaseUrl = None,
    other_model: options.OtherModels = None,
    other_base_url: options.OtherUrl = None,
    max_tokens: Annotated[int, Option(min=8, help="Limit of each reply.")] = 200,
) -> None:
    """Check whether a model's samples can be trusted.

    Up to seven short requests show whether temperature, n, log-probabilities and the
    self-check work, and whether a cache or a fixed seed answers in the model's place.
    With --other-model, five easy questions to both show whether their words compare.
    API keys come from the environment (OPENAI_API_KEY, ...).

    Exit status: 0 the samples can be trusted; 1 they cannot, or the model does not
    answer; 2 wrong usage.
    """
    from langchain_core.messages import HumanMessage

    from snne_guard.langchain.sender import LangChainSender
    from snne_guard.langchain.wrappers import ModelTree

    def senders(name: str, url: str | None) -> tuple[ModelTree, Any]:
        asked = ModelTree(chat_model(name, base_url=url, max_tokens=max_tokens))
        return asked, lambda prompt: LangChainSender(asked, [HumanMessage(prompt)])

    tree, sender = senders(model, base_url)
    others = [(name, senders(name, other_base_url)[1]) for name in other_model or ()]
    with asking("asking the model"):
        report = examine(sender, parameters=tree.parameters)
        for name, other in others:
            finding, cost = compare_words(sender, other, name=name)
            findings = (*report.findings, finding)
            report = replace(report, findings=findings, cost=report.cost + cost)
    _print(report)
    if not report.ok:
        raise typer.Exit(_UNTRUSTED)


def _print(report: Report) -> None:
    console = Console(highlight=False)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("model", "", Text(printable(report.model or "without a name")))
    for finding in report.findings:
        fine = "green" if finding.status == "works" else "yellow"
        status = Text(finding.status, style="bold red" if finding.fix else fine)
        table.add_row(finding.aspect, status, Text(printable(finding.message)))
    console.print(table)
    console.print()
    verdict = "can be trusted" if report.ok else "cannot be trusted"
    style = "bold green" if report.ok else "bold red"
    console.print(Text(f"Samples of this model {verdict}.", style=style))
    if report.fix:
        console.print(f"To do: {report.fix}.", markup=False, soft_wrap=True)
    console.print(f"\nCost: {cost_in_words(report.cost)}", markup=False)
