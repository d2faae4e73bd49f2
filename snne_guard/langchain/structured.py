"""The model's own chain for structured output, guarded before anything is parsed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
)

from snne_guard.errors import ConfigurationError
from snne_guard.langchain.wrappers import ChatRunnable, rebuild

AnyRunnable: TypeAlias = Runnable[Any, Any]


def guarded_chain(
    model: ChatRunnable, bind: Callable[..., AnyRunnable], schema: Any, **options: Any
) -> AnyRunnable | None:
    """Return a model's chain for structured output, its first step guarded.

    ``bind`` returns the guard with bound options. None where the chain cannot be taken
    apart, or where several models are asked in different ways.
    """
    chains: list[tuple[BaseChatModel, AnyRunnable]] = []

    def asked(inside: BaseChatModel) -> BaseChatModel:
        chains.append((inside, inside.with_structured_output(schema, **options)))
        return inside

    rebuild(model, asked)
    steps = [_step(chain, inside) for inside, chain in chains]
    first, chain = steps[0], chains[0][1]
    if first is None or not isinstance(chain, RunnableSequence):
        return None
    if any(step is None or step.kwargs != first.kwargs for step in steps):
        return None
    guarded = bind(**first.kwargs)
    if isinstance(chain.first, RunnableParallel):  # include_raw
        guarded = RunnableParallel({**chain.first.steps__, "raw": guarded})
    return chain.model_copy(update={"first": guarded})


def asking_step(chain: AnyRunnable) -> tuple[Any, Mapping[str, Any]]:
    """Return the guard that a chain for structured output asks, and its options."""
    first: Any = getattr(chain, "runnable", chain)  # inside of its fallback
    first = first.first
    if isinstance(first, RunnableBinding):
        return first.bound, first.kwargs
    return first, {}


def structured_step(model: BaseChatModel, schema: Any) -> AnyRunnable:
    """Return a model bound to a schema as its own ``with_structured_output`` binds it.

    Raises:
        ConfigurationError: Its chain cannot be taken apart.
    """
    step = _step(model.with_structured_output(schema), model)
    if step is None:
        msg = f"the chain of {type(model).__name__} does not begin with the model"
        raise ConfigurationError(msg)
    return step


def _step(chain: AnyRunnable, model: BaseChatModel) -> RunnableBinding[Any, Any] | None:
    """Return the step of a chain that asks the model, None where there is none."""
    first: Any = getattr(chain, "first", None)
    if isinstance(first, RunnableParallel):  # include_raw
        first = first.steps__.get("raw")
    if isinstance(first, RunnableBinding) and first.bound is model:
        return first
    return None
