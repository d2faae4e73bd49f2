"""The chat models inside LangChain's wrappers.

``bind``, ``bind_tools``, ``with_config``, ``with_retry`` and ``with_fallbacks`` each
put a runnable around a model. ``rebuild`` changes the model and keeps the wrappers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableWithFallbacks,
)
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.errors import ConfigurationError

__all__ = [
    "ChatRunnable",
    "all_options",
    "bound_models",
    "fields_of",
    "models_in",
    "rebuild",
    "retries_itself",
]

ChatRunnable = Runnable[Any, Any]
"""A ``BaseChatModel``, or one inside the wrappers named above."""


def rebuild(
    wrapper: ChatRunnable, change: Callable[[BaseChatModel], ChatRunnable]
) -> ChatRunnable:
    """Return the same wrappers around changed chat models.

    Args:
        wrapper: A chat model, or wrappers around one or several.
        change: Called with each chat model; returns what takes its place.

    Returns:
        New wrappers with the same options; ``wrapper`` itself is left as it is.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"]).bind(stop=["."])
        >>> uncached = rebuild(model, lambda m: m.model_copy(update={"cache": False}))
        >>> uncached.bound.cache, uncached.kwargs
        (False, {'stop': ['.']})
    """
    if isinstance(wrapper, BaseChatModel):
        return change(wrapper)
    if isinstance(wrapper, RunnableWithFallbacks):
        first, *others = (rebuild(each, change) for each in wrapper.runnables)
        return wrapper.model_copy(update={"runnable": first, "fallbacks": others})
    if isinstance(wrapper, RunnableBinding | RunnableRetry):
        bound = rebuild(wrapper.bound, change)
        return wrapper.model_copy(update={"bound": bound})
    raise ConfigurationError(_refusal(wrapper))


def models_in(runnable: ChatRunnable) -> list[BaseChatModel]:
    """Return the chat models inside wrappers, in the order in which they are tried."""
    return [model for model, _ in bound_models(runnable)]


def bound_models(
    runnable: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> list[tuple[BaseChatModel, dict[str, Any]]]:
    """Return the chat models inside wrappers, each with its options.

    Args:
        runnable: A chat model, or wrappers around one or several.
        kwargs: Options of the call, which override bound ones.

    Raises:
        ConfigurationError: If there is anything else than a chat model inside.
    """
    if isinstance(runnable, BaseChatModel):
        return [(runnable, dict(kwargs or {}))]
    if isinstance(runnable, RunnableWithFallbacks):
        inner = (bound_models(each, kwargs) for each in runnable.runnables)
        return [pair for pairs in inner for pair in pairs]
    if isinstance(runnable, RunnableBinding | RunnableRetry):
        return bound_models(runnable.bound, {**runnable.kwargs, **(kwargs or {})})
    raise ConfigurationError(_refusal(runnable))


def all_options(
    runnable: ChatRunnable, kwargs: Mapping[str, Any] | None = None
) -> list[Mapping[str, Any]]:
    """Return the fields and the options of each chat model inside wrappers."""
    bound = bound_models(runnable, kwargs)
    return [level for model, options in bound for level in (fields_of(model), options)]


def fields_of(model: BaseChatModel) -> dict[str, Any]:
    """Return the fields of a model; ``dict(model)`` takes six times as long."""
    return {**vars(model), **(model.model_extra or {})}


def retries_itself(model: ChatRunnable) -> bool:
    """Return whether failed requests are sent again without the guard.

    True where every model inside is in ``with_retry`` or has ``max_retries`` above 0; a
    client's own default (``max_retries=None``) counts as above 0.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> retries_itself(model), retries_itself(model.with_retry())
        (False, True)
    """
    if isinstance(model, RunnableRetry):
        return True
    if isinstance(model, RunnableWithFallbacks):
        return all(retries_itself(each) for each in model.runnables)
    if isinstance(model, RunnableBinding):
        return retries_itself(model.bound)
    return getattr(model, "max_retries", 0) != 0


def _refusal(given: object) -> str:
    if isinstance(given, DynamicRunnable) or callable(getattr(given, "_model", None)):
        return (
            f"a guard cannot stand around a configurable model ({type(given).__name__})"
            ": guard the model first, then call configurable_fields or "
            "configurable_alternatives on the guard, or give init_chat_model a model"
        )
    return (
        "a guard needs a chat model: a BaseChatModel, or one inside bind, bind_tools, "
        f"with_config, with_retry or with_fallbacks; got {type(given).__name__}. To "
        "guard a chain, put the guard in the model's place: prompt | guard | parser"
    )
