"""Which model a command asks: the embedded one, or the one that its options name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from rich.console import Console

from snne_guard.cli._asking import embedded_chat
from snne_guard.cli._console import failure
from snne_guard.decision.stop_texts import fewest

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

    from snne_guard.sampling.langchain_models import ChatRunnable

__all__ = ["LOCAL", "chat_model", "with_settings"]

LOCAL = "hf:"
"""What the name of a model of this machine begins with."""


def chat_model(
    name: str | None,
    *,
    base_url: str | None,
    seed: int | None,
    console: Console,
    completion: bool = False,
) -> BaseChatModel:
    """Return the model that a command asks.

    Args:
        name: ``provider:name`` as ``init_chat_model`` takes it, ``hf:`` with the name
            or the folder of a local model, None for the embedded model.
        base_url: Where it is served, None for the provider's own address.
        seed: Fixes what is drawn, where the model can.
        console: Where to say that the embedded model starts.
        completion: Whether a local model goes on with the text of the messages, and
            no chat template is put around it.

    Raises:
        typer.Exit: If it cannot be set up; why is on standard error.
    """
    if completion and not (name or "").startswith(LOCAL):
        told = f"--completion needs a model that runs here, {LOCAL}NAME"
        raise failure(told)
    if name is None:
        if base_url is not None:
            told = "--base-url needs --model, such as openai:NAME"
            raise failure(told)
        return embedded_chat(console=console, seed=seed)
    if name.startswith(LOCAL):
        return _local_model(name, base_url=base_url, seed=seed, completion=completion)
    from langchain.chat_models import init_chat_model

    options: dict[str, Any] = {}
    if seed is not None:
        options["seed"] = seed
    if base_url is not None:
        options["base_url"] = base_url
        if name.startswith("openai:") and not os.environ.get("OPENAI_API_KEY"):
            options["api_key"] = "none-needed"  # as local servers have it
    try:
        return cast("BaseChatModel", init_chat_model(name, **options))
    except Exception as error:
        told = f"the model {name!r} cannot be set up: {error}"
        raise failure(told) from error


def with_settings(
    chat: BaseChatModel,
    *,
    temperature: float | None,
    top_p: float | None = None,
    max_tokens: int | None = None,
    stop: Sequence[str] | None = None,
) -> ChatRunnable:
    """Return a copy of a model, or one bound, that answers under these settings.

    Args:
        chat: The model.
        temperature: Of its answers, None for its own.
        top_p: Of them, likewise.
        max_tokens: Token limit of them, likewise.
        stop: Texts at which they end, likewise; those that the provider takes.
    """
    from snne_guard.sampling.langchain_providers import provider_of

    row = provider_of(chat)
    wanted = {"temperature": temperature, "top_p": top_p, "max_tokens": max_tokens}
    names = {"temperature": (row.temperature,), "max_tokens": row.limits}
    update: dict[str, Any] = {}
    options: dict[str, Any] = {}
    for option, value in wanted.items():
        if value is None:
            continue
        known = [
            name
            for name in names.get(option, (option,))
            if name in type(chat).model_fields
        ]
        # A class without such a field is told with each request.
        update |= dict.fromkeys(known, value)
        options |= {} if known else {option: value}
    if stops := row.stops_of(fewest(stop or ())):
        options["stop"] = stops
    if update:
        chat = chat.model_copy(update=update)
    return chat.bind(**options) if options else chat


def _local_model(
    name: str, *, base_url: str | None, seed: int | None, completion: bool
) -> BaseChatModel:
    from snne_guard.sampling.langchain_transformers import TransformersChatModel

    if base_url is not None:
        told = f"{name!r} runs here; --base-url is for a model that is served"
        raise failure(told)
    try:
        return TransformersChatModel.from_pretrained(
            name.removeprefix(LOCAL),
            seed=seed,
            load={"chat_template": ""} if completion else {},
        )
    except Exception as error:
        told = f"the model {name!r} cannot be set up: {error}"
        raise failure(told) from error
