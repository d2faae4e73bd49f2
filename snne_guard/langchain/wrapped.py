"""Calling a method of the model inside of wrappers, and keeping the wrappers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_models import check_model, has_choices, pin, resolve
from snne_guard.sampling.reading import as_mapping

__all__ = [
    "beneath",
    "each_of",
    "is_model",
    "put_into",
    "tools_instead",
    "with_tools",
    "within_wrappers",
]

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

_NAMED = frozenset({"function", "name", "title"})
"""What says in a mapping which tool it is, in the forms that every class takes."""

Make = Callable[[Any, Mapping[str, Any]], Any]
"""Makes what takes the place of a model, from it and what wrappers bind to it."""


def is_model(runnable: object) -> bool:
    """Return whether a runnable is a chat model, or wrappers around nothing else."""
    try:
        check_model(runnable)
    except ConfigurationError:
        return False
    return True


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


def tools_instead(
    fallback: Any, model: Any, tools: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Return a fallback with the tools of a guarded model, if it can have any.

    A model of another class gets what every class takes: tools of the user's own, and
    which of them is to be called where that is a word. Where it takes none of them it
    stays as it is.

    Args:
        fallback: Who answers instead, None if nobody does.
        model: The guarded model.
        tools: What ``bind_tools`` takes.
        options: Its further options.
    """
    if has_choices(fallback) and is_model(fallback):

        def late(_value: Any, config: RunnableConfig) -> Any:
            return tools_instead(pin(fallback, config), model, tools, options)

        return RunnableLambda(late, name="fallback")
    kinds = [] if has_choices(model) else [type(one.model) for one in resolve(model)]

    def made(inner: Any, kwargs: Mapping[str, Any]) -> Any:
        bind = getattr(inner, "bind_tools", None)
        given, said = _for_class(tools, options, same=type(inner) in kinds)
        if callable(bind) and given:
            with suppress(Exception):  # each provider has its own word for "cannot"
                return beneath(cast("AnyRunnable", bind(given, **said)), kwargs)
        return inner.bind(**kwargs) if kwargs else inner

    return within_wrappers(fallback, made)


def _for_class(
    tools: Sequence[Any], options: Mapping[str, Any], *, same: bool
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return what ``bind_tools`` is given, of the same class or of another one."""
    if same:
        return tools, options
    choice = options.get("tool_choice")
    said = {"tool_choice": choice} if isinstance(choice, str) else {}
    return [tool for tool in tools if _is_known_to_all(tool)], said


def _is_known_to_all(tool: object) -> bool:
    """Return whether a tool is in no form of one provider's own."""
    given = as_mapping(tool)
    kind = given.get("type", "function")
    return not given or (kind == "function" and not _NAMED.isdisjoint(given))


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
