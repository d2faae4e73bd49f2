"""Models and graders by name, as the options of the commands name them."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from snne_guard.cli.console import note
from snne_guard.errors import ConfigurationError, MissingExtraError, SnneGuardError
from snne_guard.evaluation import Grader, JudgeGrader, resolve_grader
from snne_guard.redaction import without_secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from snne_guard.langchain.wrappers import ChatRunnable

Messages = tuple[tuple[str, str], ...]

_EMBEDDED = {"temperature": 0.0, "max_tokens": 32}
_SHORT: Messages = (
    ("system", "Answer with one word or a name."),
    ("human", "What is the color of the sky?"),
    ("ai", "Blue"),
    ("human", "What is the capital of Spain?"),
    ("ai", "Madrid"),
    ("human", "Who wrote Romeo and Juliet?"),
    ("ai", "William Shakespeare"),
)
"""Examples of short answers: the embedded model is too small for an instruction."""


def chat_model(
    name: str,
    *,
    base_url: str | None = None,
    stop: Sequence[str] | None = None,
    **settings: Any,  # noqa: ANN401 - passed on
) -> ChatRunnable:
    """Return the chat model that an option names; None leaves a setting to it.

    The name is ``"embedded"``, ``"hf:NAME"`` for a Hugging Face model or folder that
    runs here, or ``"provider:name"`` as ``init_chat_model`` takes it.
    """
    if not name:
        msg = "expected a model as provider:name, hf:NAME or embedded, got ''"
        raise ConfigurationError(msg)
    options = {key: value for key, value in settings.items() if value is not None}
    local = name == "embedded" or name.startswith("hf:")
    if local and base_url is not None:
        msg = f"model {name!r} runs on this machine; --base-url is for a server"
        raise ConfigurationError(msg)
    model: BaseChatModel
    if name == "embedded":
        from snne_guard.langchain import embedded_model

        with Console(stderr=True).status("starting the embedded model"):
            model = embedded_model(**_EMBEDDED | options)
        stop = ["\n"] if stop is None else stop
    elif local:
        from snne_guard.huggingface import TransformersChatModel

        model = TransformersChatModel.from_pretrained(name[3:], **options)
    else:
        model = _served(name, base_url=base_url, options=options)
    return model.bind(stop=stop) if stop else model


def _served(
    name: str, *, base_url: str | None, options: dict[str, Any]
) -> BaseChatModel:
    try:
        from langchain.chat_models import init_chat_model
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "langchain", extra="cli") from error
    if base_url is not None:
        options["base_url"] = base_url
        if name.startswith("openai:") and not os.environ.get("OPENAI_API_KEY"):
            options["api_key"] = "none-needed"  # as local servers have it
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except Exception as error:
        # Providers raise whatever they like. LangChain lists all of them below its
        # first line.
        why, *_ = without_secrets(str(error)).splitlines() or [type(error).__name__]
        msg = f"the model {name!r} cannot be set up: {why}"
        raise ConfigurationError(msg) from error
    return model


def model_in_words(name: str) -> str:
    """Return the name of a model for a message to the user."""
    toy = "the embedded SmolLM2-135M, a toy to try things with; --model names another"
    return toy if name == "embedded" else name


def messages_before(model: str, system: str | None = None) -> Messages:
    """Return the messages before a question; the embedded model gets examples."""
    if system is not None:
        return (("system", system),)
    return _SHORT if model == "embedded" else ()


@contextmanager
def asking(what: str) -> Generator[None]:
    """Show what is asked; what the model raises becomes one line and exit status 1."""
    try:
        with Console(stderr=True).status(what):
            yield
    except SnneGuardError:
        raise
    except Exception as error:  # noqa: BLE001 - providers raise whatever they like
        kind, why = type(error).__name__, without_secrets(str(error))
        note(f"the model failed: {kind}: {why}")
        raise typer.Exit(1) from None


def named_grader(name: str, /, *, base_url: str | None = None) -> Grader | None:
    """Return the grader that an option names, None for labels alone."""
    if name == "label":
        return None
    if not name.startswith("judge:"):
        return resolve_grader(name)
    model = chat_model(name.removeprefix("judge:"), base_url=base_url)
    judge = model.bind(temperature=0)
    return JudgeGrader(lambda prompt: str(judge.invoke(prompt).text), name=name)
