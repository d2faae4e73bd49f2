"""Requests that no callback handler is told of, wherever handlers come from.

Handlers may see a reply only after the decision, so a request runs in a context that
none leaks into: not from a configuration, a context variable or the environment.
"""

from __future__ import annotations

import contextvars
from contextvars import Context, ContextVar
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackHandler, CallbackManager
from langchain_core.callbacks.base import BaseCallbackManager
from langchain_core.globals import get_debug
from langchain_core.runnables import RunnableConfig
from langchain_core.tracers.stdout import ConsoleCallbackHandler
from langsmith.run_helpers import (
    tracing_context,  # pyright: ignore[reportUnknownVariableType] - a bare Mapping
)

__all__ = ["quiet_config", "quiet_context", "silent"]


def quiet_context() -> Context:
    """Return a copy of the current context in which no callback handler is set.

    Handlers also come from context variables, past every configuration: those of the
    run that we are in, usage counters and tracers that were opened with ``with``. What
    else is in the context stays: the current span of OpenTelemetry, for example.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.tracers.context import collect_runs
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> with collect_runs() as told:
        ...     seen = model.invoke("The capital of France?")
        ...     unseen = quiet_context().run(model.invoke, "The capital of France?")
        >>> len(told.traced_runs)
        1
    """
    # LangSmith's own tracing is off in there too, past every variable.
    with tracing_context(enabled=False, parent=False):
        context = contextvars.copy_context()
    for variable, value in list(context.items()):
        if isinstance(value, BaseCallbackHandler | BaseCallbackManager):
            context.run(variable.set, None)
        elif isinstance(value, dict) and "callbacks" in value:
            # The configuration of the run that we are in, which calls in it inherit.
            context.run(variable.set, quiet_config(cast("RunnableConfig", value)))
    for variable, by_environment in _hooked():
        if by_environment or context.get(variable) is not None:
            context.run(variable.set, _Inert() if by_environment else None)
    return context


def silent() -> list[BaseCallbackHandler]:
    """Return the handlers that a quiet call needs so that none else is added."""
    # Instrumentations put theirs into every manager that is made without one.
    added = CallbackManager(handlers=[]).handlers
    console = [_mute(ConsoleCallbackHandler)] if get_debug() else []
    return [*console, *(_mute(type(handler)) for handler in added)]


_MUTE: dict[type[BaseCallbackHandler], BaseCallbackHandler] = {}


def _mute(kind: type[BaseCallbackHandler]) -> BaseCallbackHandler:
    """Return what passes for a handler of a class, and is never told anything."""
    if kind not in _MUTE:
        deaf = {name: True for name in dir(kind) if name.startswith("ignore_")}
        mute: type[BaseCallbackHandler] = type(f"Mute{kind.__name__}", (kind,), deaf)
        mute.run_inline = True  # else each event takes a thread
        _MUTE[kind] = mute.__new__(mute)  # nothing that it is told needs a state
    return _MUTE[kind]


class _Inert(BaseCallbackHandler):
    """Stands where a tracer that an environment variable asks for would be made."""

    run_inline = True  # else each event takes a thread

    @property
    def ignore_chat_model(self) -> bool:
        """Always: it only holds a place."""
        return True

    @property
    def ignore_llm(self) -> bool:
        """Always."""
        return True


def _hooked() -> list[tuple[ContextVar[Any], bool]]:
    """Return the variables of tracers, and whether one is made where it is unset."""
    try:
        from langchain_core.tracers.context import (
            _configure_hooks as hooks,  # pyright: ignore[reportPrivateUsage] - no other way
        )
    except ImportError:  # pragma: no cover - a private name, gone in some version
        return []
    return [(hook[0], hook[3] is not None) for hook in hooks]


def quiet_config(config: RunnableConfig) -> RunnableConfig:
    """Return the configuration of a call without handlers and without a run of it."""
    kept = {
        key: value
        for key, value in config.items()
        if key not in {"callbacks", "run_id", "run_name"}
    }
    return cast("RunnableConfig", {**kept, "callbacks": silent()})
