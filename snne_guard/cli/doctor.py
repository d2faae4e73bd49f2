"""``snne-guard doctor``: whether a model's samples can be trusted, by asking it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from snne_guard.cli import _options
from snne_guard.cli._console import failure, reported_errors
from snne_guard.cli._models import LOCAL, chat_model
from snne_guard.cli._words import cost_in_words
from snne_guard.cli.render import plain

if TYPE_CHECKING:
    from snne_guard.assess.preflight import Preflight
    from snne_guard.errors import SnneGuardError
    from snne_guard.langchain.guard import SNNEGuard

__all__ = ["UNTRUSTED", "doctor"]

UNTRUSTED = 1
"""Exit status where samples of this model cannot be trusted."""

_COLOURS = {
    "works": "green",
    "ignored": "yellow",
    "rejected": "yellow",
    "missing": "yellow",
    "broken": "yellow",
    "unknown": "dim",
}


def doctor(
    *,
    model: _options.Model = None,
    base_url: _options.BaseUrl = None,
    temperature: _options.SampleTemperature = 1.0,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which it reports on what has come.")
    ] = 36.0,
    as_json: _options.AsJson = False,
) -> None:
    """Ask a model for what must vary, and say whether its samples can be trusted.

    About nine short requests show whether temperature, n, log-probabilities, seeds and
    caches behave. Without --model the small embedded model is examined. Keys are read
    from the environment (OPENAI_API_KEY, ...), never from the command line.

    Exit status: 0 samples can be trusted; 1 they cannot; 2 wrong usage, or the model
    does not answer.
    """
    from snne_guard.langchain.guard import SNNEGuard

    if timeout <= 0:
        told = f"--timeout is seconds above 0; got {timeout:g}"
        raise failure(told)
    console = Console(stderr=True)
    with reported_errors():
        chat = chat_model(model, base_url=base_url, seed=None, console=console)
        guard = SNNEGuard(chat, temperature=temperature)
        with console.status("asking the model"):
            report = _examined(guard, timeout=timeout)
    if as_json:
        typer.echo(json.dumps(report.to_dict(), allow_nan=False))
    else:
        page = Console(highlight=False)
        for part in _page(report, model=model, base_url=base_url):
            page.print(part, soft_wrap=isinstance(part, str), markup=False)
    if not report.ok:
        raise typer.Exit(UNTRUSTED)


def _examined(guard: SNNEGuard, *, timeout: float) -> Preflight:
    from snne_guard.errors import SnneGuardError

    try:
        return guard.preflight(timeout=timeout)
    except SnneGuardError as error:
        raise failure(_unanswered(error)) from error
    except Exception as error:
        told = f"the model does not answer: {type(error).__name__}: {error}"
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        if str(root) not in told:
            told += f" ({root})"
        raise failure(told) from error


def _unanswered(error: SnneGuardError) -> str:
    if isinstance(error, TimeoutError):
        return f"the model does not answer: {error}; --timeout gives it longer"
    return str(error)


def _page(
    report: Preflight, *, model: str | None, base_url: str | None
) -> Iterator[RenderableType]:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_row("model", "", Text(plain(report.model or "without a name")))
    for found in report.findings:
        colour = _COLOURS[found.status] if found.trusted else "bold red"
        status = Text(found.status, style=colour)
        table.add_row(found.check, status, Text(plain(found.message)))
    yield table
    yield ""
    if report.ok:
        yield Text("Samples of this model can be trusted.", style="bold green")
    else:
        yield Text("Samples of this model cannot be trusted.", style="bold red")
    for fix in dict.fromkeys(found.fix for found in report.findings if found.fix):
        yield f"To do: {fix}."
    seeded = bool(report.finding("seed").fix)
    if report.ok or seeded:
        yield "\nSettings that suit it:\n"
        yield _snippet(report, model=model, base_url=base_url, seeded=seeded)
    yield f"\nCost of this: {cost_in_words(report.cost)}"


def _snippet(
    report: Preflight, *, model: str | None, base_url: str | None, seeded: bool
) -> str:
    """Return Python code that makes a guard for this model."""
    options: dict[str, object] = {} if base_url is None else {"base_url": base_url}
    if seeded:
        options["seed"] = 1
    if model is None:
        home, maker = "snne_guard.langchain.embedded", "embedded_model"
    elif model.startswith(LOCAL):
        home, maker = "snne_guard.langchain", "TransformersChatModel"
    else:
        home, maker = "langchain.chat_models", "init_chat_model"
    name = "" if model is None else f"{model.removeprefix(LOCAL)!r}, "
    arguments = f"{name}{_arguments(options)}".removesuffix(", ")
    call = f"{maker}.from_pretrained" if maker == "TransformersChatModel" else maker
    settings = _arguments(report.settings)
    lines = [
        f"from {home} import {maker}",
        "from snne_guard import SNNEGuard",
        "",
        f"model = {call}({arguments})",
        f"guard = SNNEGuard({f'model, {settings}'.removesuffix(', ')})",
    ]
    return "\n".join(f"    {line}".rstrip() for line in lines)


def _arguments(options: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in options.items())
