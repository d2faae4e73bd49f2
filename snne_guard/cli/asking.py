"""What the commands that ask a model have in common."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from snne_guard.cli.console import note
from snne_guard.cli.models import chat_model
from snne_guard.errors import ConfigurationError, SnneGuardError
from snne_guard.types import Prices

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

__all__ = ["asked_model", "messages_for", "parse_prices", "provider_errors"]

_EMBEDDED = {"temperature": 0.0, "max_tokens": 32}
_SHORT = (
    ("system", "Answer with one word or a name."),
    ("human", "What is the color of the sky?"),
    ("ai", "Blue"),
    ("human", "What is the capital of Spain?"),
    ("ai", "Madrid"),
    ("human", "Who wrote Romeo and Juliet?"),
    ("ai", "William Shakespeare"),
)
"""Shows the embedded model, which is too small to be told, to answer in short."""


def asked_model(
    name: str,
    *,
    base_url: str | None = None,
    stop: Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Runnable[Any, Any]:
    """Return the model that a command asks; the embedded one gives one line.

    Args:
        name: As for ``chat_model``.
        base_url: Likewise.
        stop: Texts at which a reply ends.
        settings: Likewise; None in it leaves a setting to the model.
    """
    given = {k: v for k, v in (settings or {}).items() if v is not None}
    if name == "embedded":
        given, stop = {**_EMBEDDED, **given}, ["\n"] if stop is None else stop
        with Console(stderr=True).status("starting the embedded model"):
            model = chat_model(name, base_url=base_url, **given)
    else:
        model = chat_model(name, base_url=base_url, **given)
    return model.bind(stop=list(stop)) if stop else model


def messages_for(
    prompt: str, *, model: str, system: str | None = None
) -> list[tuple[str, str]]:
    """Return what the model is sent; the embedded one sees three short answers."""
    if system is not None:
        return [("system", system), ("human", prompt)]
    return [*(_SHORT if model == "embedded" else ()), ("human", prompt)]


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


@contextmanager
def provider_errors() -> Generator[None]:
    """Turn what a provider raises into one line and exit status 1."""
    try:
        yield
    except (SnneGuardError, typer.Exit):
        raise
    except Exception as error:  # noqa: BLE001 - providers raise whatever they like
        note(f"the model failed: {type(error).__name__}: {error}")
        raise typer.Exit(1) from None
