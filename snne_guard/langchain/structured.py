"""Structured output of a guard: the model's own form, guarded before it is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableParallel,
    RunnableSequence,
)

if TYPE_CHECKING:
    from snne_guard.langchain.guard import SNNEGuard

__all__ = ["structured_output"]

AnyRunnable: TypeAlias = Runnable[Any, Any]


def structured_output(
    guard: SNNEGuard, schema: Any, *, include_raw: bool, **kwargs: Any
) -> AnyRunnable:
    """Return what the model makes of ``with_structured_output``, guarded.

    The first step of the model's own chain is guarded and its parser kept. Where the
    chain cannot be taken apart in that way, LangChain's default by ``bind_tools`` takes
    its place. With ``on_uncertain="fallback"`` the fallback is asked for the same
    schema, in its own form; otherwise it is not asked, and a function as
    ``on_uncertain`` cannot choose it.

    Args:
        guard: The guard.
        schema: What ``with_structured_output`` takes.
        include_raw: Whether to return the message together with what was parsed.
        **kwargs: Further options of the model's ``with_structured_output``.
    """
    fallback = guard.fallback
    # A fallback takes the place of the whole chain, with a parser of its own; a refusal
    # would not fit the schema.
    update: dict[str, Any] = {"structured": True, "fallback": None, "refusal": None}
    if guard.on_uncertain == "fallback":
        update["on_uncertain"] = "raise"
    inner = guard.model_copy(update=update)
    chain = _taken_apart(inner, schema, include_raw=include_raw, **kwargs)
    if chain is None:
        default = BaseChatModel.with_structured_output
        chain = default(inner, schema, include_raw=include_raw, **kwargs)
    if fallback is None or guard.on_uncertain != "fallback":
        return chain
    instead = fallback.with_structured_output(schema, include_raw=include_raw)
    return chain.with_fallbacks([instead])


def _taken_apart(guard: SNNEGuard, schema: Any, **kwargs: Any) -> AnyRunnable | None:
    """Return the model's own chain with its first step guarded, None if impossible."""
    if not isinstance(guard.guarded, BaseChatModel):
        return None
    chain = guard.guarded.with_structured_output(schema, **kwargs)
    if not isinstance(chain, RunnableSequence):
        return None
    first: AnyRunnable = chain.first
    if isinstance(first, RunnableParallel):  # include_raw
        raw = _guarded(guard, first.steps__.get("raw"))
        step: AnyRunnable | None
        step = None if raw is None else RunnableParallel({**first.steps__, "raw": raw})
    else:
        step = _guarded(guard, first)
    return None if step is None else chain.model_copy(update={"first": step})


def _guarded(guard: SNNEGuard, step: AnyRunnable | None) -> AnyRunnable | None:
    """Return the step that asks the model with a guard in the model's place."""
    if not isinstance(step, RunnableBinding) or step.bound is not guard.guarded:
        return None
    return guard.bind(**step.kwargs)
