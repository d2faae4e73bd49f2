"""The model's own chain for structured output, guarded before anything is parsed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
)

__all__ = ["guarded_chain"]

AnyRunnable: TypeAlias = Runnable[Any, Any]


def guarded_chain(
    model: AnyRunnable, bind: Callable[..., AnyRunnable], schema: Any, **options: Any
) -> AnyRunnable | None:
    """Return what a model makes of ``with_structured_output``, its first step guarded.

    Args:
        model: The guarded model.
        bind: Returns the guard with bound options, in the place of the step that asks
            the model.
        schema: What ``with_structured_output`` takes.
        **options: Further options of it.

    Returns:
        The chain with its own parser; None where it cannot be taken apart.
    """
    if not isinstance(model, BaseChatModel):
        return None
    chain = model.with_structured_output(schema, **options)
    if not isinstance(chain, RunnableSequence):
        return None

    def guarded(step: AnyRunnable | None) -> AnyRunnable | None:
        if not isinstance(step, RunnableBinding) or step.bound is not model:
            return None
        return bind(**step.kwargs)

    first: AnyRunnable = chain.first
    step: AnyRunnable | None
    if isinstance(first, RunnableParallel):  # include_raw
        raw = guarded(first.steps__.get("raw"))
        step = None if raw is None else RunnableParallel({**first.steps__, "raw": raw})
    else:
        step = guarded(first)
    return None if step is None else chain.model_copy(update={"first": step})
