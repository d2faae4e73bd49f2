"""Chat models by name, as the options of the commands name them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.types import Generate

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

__all__ = ["chat_model", "generate_with"]


def chat_model(
    name: str,
    *,
    base_url: str | None = None,
    **settings: Any,  # noqa: ANN401 - passed on
) -> BaseChatModel:
    """Return the chat model that an option names.

    Args:
        name: ``"embedded"``, ``"hf:NAME"`` for a Hugging Face model or folder that runs
            here, or ``"provider:name"`` as ``init_chat_model`` takes it.
        base_url: Where the model is served; None: the provider's own address.
        **settings: Such as ``temperature``, ``max_tokens`` and ``seed``; None leaves
            one to the model.

    Raises:
        ConfigurationError: The model cannot be set up.
        MissingExtraError: A package that it needs is not installed.
    """
    local = name == "embedded" or name.startswith("hf:")
    if local and base_url is not None:
        msg = f"model {name!r} runs here; a base URL is for a model that is served"
        raise ConfigurationError(msg)
    options = {key: value for key, value in settings.items() if value is not None}
    if name == "embedded":
        from snne_guard.langchain import embedded_model

        return embedded_model(**options)
    if name.startswith("hf:"):
        from snne_guard.langchain import TransformersChatModel

        return TransformersChatModel.from_pretrained(name[3:], **options)
    return _served(name, base_url=base_url, options=options)


def generate_with(name: str, *, base_url: str | None = None) -> Generate:
    """Return a function from a prompt to a model's reply, for an LLM as judge.

    The model replies at temperature 0. The arguments and errors are those of
    ``chat_model``.
    """
    model = chat_model(name, base_url=base_url).bind(temperature=0)

    def generate(prompt: str, /) -> str:
        return str(model.invoke(prompt).text)

    return generate


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
        # Providers raise whatever they like; a missing package is one of them.
        msg = f"the model {name!r} cannot be set up: {error}"
        raise ConfigurationError(msg) from error
    return model
