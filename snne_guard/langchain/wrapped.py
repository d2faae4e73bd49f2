"""Calling a method of the model inside of wrappers, and keeping the wrappers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableWithFallbacks
from langchain_core.runnables.base import RunnableBindingBase

__all__ = ["beneath", "each_of", "put_into", "with_tools", "within_wrappers"]

AnyRunnable = Runnable[Any, Any]

_OF_THE_FORM = frozenset(
    {
        "function_call",
        "functions",
        "parallel_tool_calls",
        "response_format",
        "tool_choice",
        "tools",
    }
)
"""Options that say in which form to answer; LangChain drops bound ones of them too."""

Make = Callable[[Any, Mapping[str, Any]], Any]
"""Makes what takes the place of a model, from it and what wrappers bind to it."""


def with_tools(model: Any, tools: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return a model with tools bound to it, in the wrappers that it is in.

    LangChain's own ``bind_tools`` of a wrapper drops what the wrapper brings, or is
    missing.

    Args:
        model: A chat model, or wrappers around one.
        tools: What ``bind_tools`` takes.
        options: Its further options.
    """

    def made(inner: Any, kwargs: Mapping[str, Any]) -> AnyRunnable:
        return beneath(inner.bind_tools(tools, **options), kwargs)

    return within_wrappers(model, made)


def within_wrappers(
    model: Any, make: Make, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """Return wrappers with something else in the place of each model in them.

    Args:
        model: A chat model, or wrappers around one.
        make: Makes what takes its place, with what they bind.
        kwargs: What wrappers further outside bind.
    """
    if isinstance(model, RunnableWithFallbacks):
        return each_of(model, lambda one: within_wrappers(one, make, kwargs))
    if isinstance(model, RunnableBindingBase):
        wrapper = cast("Any", model)
        bound = {**wrapper.kwargs, **(kwargs or {})}
        return put_into(wrapper, within_wrappers(wrapper.bound, make, bound))
    return make(model, kwargs or {})


def each_of(models: Any, change: Callable[[Any], Any]) -> Any:
    """Return ``with_fallbacks`` with each of its models changed."""
    first, *others = (change(one) for one in (models.runnable, *models.fallbacks))
    return models.model_copy(update={"runnable": first, "fallbacks": others})


def put_into(wrapper: Any, inner: AnyRunnable) -> Any:
    """Return a wrapper around something else, which has what it bound already."""
    return wrapper.model_copy(update={"bound": inner, "kwargs": {}})


def beneath(model: AnyRunnable, kwargs: Mapping[str, Any]) -> AnyRunnable:
    """Bind options to a model, whose own options stand above them.

    Those that say in which form to answer are left out: the model has its own.

    Args:
        model: The model, in the form that was asked for last.
        kwargs: What wrappers bind to it.
    """
    kept = {name: each for name, each in kwargs.items() if name not in _OF_THE_FORM}
    if not kept:
        return model
    own: Mapping[str, Any] = getattr(model, "kwargs", {})
    return model.bind(**{**kept, **own})
