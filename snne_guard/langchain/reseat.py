"""Putting a guard where the model stands inside what the model has built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from langchain_core.runnables import (
    Runnable,
    RunnableConfig,
    RunnableLambda,
    RunnableParallel,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase
from langchain_core.runnables.retry import RunnableRetry

from snne_guard.errors import ConfigurationError
from snne_guard.langchain.wrapped import beneath, each_of, is_model, put_into
from snne_guard.sampling.langchain_models import has_choices, pin

__all__ = ["reseat", "structured"]


AnyRunnable = Runnable[Any, Any]

Guarded = Callable[[AnyRunnable], AnyRunnable]
"""Makes a guard on a model, what is bound to it included."""


def structured(
    model: Any,
    schema: Any,
    options: Mapping[str, Any],
    *,
    guarded: Guarded,
) -> AnyRunnable:
    """Return a model's structured output with a guard on the model in it.

    What wrappers around the model bring stays around it, inside of the guard: no retry
    of theirs asks for a guarded answer again.

    Args:
        model: The model.
        schema: What ``with_structured_output`` takes.
        options: Its further options.
        guarded: Makes the guard from the model, its bound options included.

    Raises:
        ConfigurationError: If no model is found: it would bypass the guard. If a retry
            is around several models.
    """
    if has_choices(model):

        def late(_value: Any, config: RunnableConfig) -> AnyRunnable:
            return _structured(pin(model, config), schema, options, guarded, {})

        return RunnableLambda(late, name="structured")
    return _structured(model, schema, options, guarded, {})


def _structured(
    model: Any,
    schema: Any,
    options: Mapping[str, Any],
    guarded: Guarded,
    kwargs: Mapping[str, Any],
) -> AnyRunnable:
    """Return the same of a model that is chosen, given what wrappers bind to it."""
    if isinstance(model, RunnableWithFallbacks):
        several: AnyRunnable = each_of(
            model, lambda one: _structured(one, schema, options, guarded, kwargs)
        )
        return several
    if isinstance(model, RunnableBindingBase):
        wrapper = cast("Any", model)
        _check_retry(wrapper)
        return _structured(
            wrapper.bound,
            schema,
            options,
            lambda inner: guarded(put_into(wrapper, inner)),
            {**wrapper.kwargs, **kwargs},
        )
    chain = model.with_structured_output(schema, **options)
    return reseat(chain, lambda inner: guarded(beneath(inner, kwargs)))


def _check_retry(wrapper: RunnableBindingBase[Any, Any]) -> None:
    """Refuse a retry around several models: each has a parser of its own.

    Raises:
        ConfigurationError: If it is one.
    """
    inner: Any = wrapper.bound
    while isinstance(inner, RunnableBindingBase):
        inner = cast("Any", inner.bound)
    if isinstance(wrapper, RunnableRetry) and isinstance(inner, RunnableWithFallbacks):
        msg = (
            "with_structured_output cannot keep with_retry around with_fallbacks: each "
            "model has a parser of its own. Put it around each model: "
            "first.with_retry().with_fallbacks([second.with_retry()])"
        )
        raise ConfigurationError(msg)


def reseat(
    chain: AnyRunnable,
    guarded: Guarded,
    *,
    around: type[Any] | None = None,
) -> AnyRunnable:
    """Return a chain with the model in it replaced by a guard on that model.

    Args:
        chain: What ``with_structured_output`` returned: the model and its parsers.
        guarded: Makes the guard from the model, its bound options included.
        around: A class that stands for a model besides chat models.

    Raises:
        ConfigurationError: If no model is found: it would bypass the guard.
    """
    changed = _reseated(chain, guarded, around)
    if changed is None:
        msg = (
            "with_structured_output of this model returns a "
            f"{type(chain).__name__} in which no chat model is found; the guard would "
            "be bypassed. Guard the model and parse its text instead"
        )
        raise ConfigurationError(msg)
    return changed


Step = Callable[[AnyRunnable], AnyRunnable | None]


def _reseated(
    runnable: AnyRunnable,
    guarded: Guarded,
    around: type[Any] | None,
) -> AnyRunnable | None:
    """Return the runnable with the guard in it, None if there is no model in it."""
    if is_model(runnable) or (around and isinstance(runnable, around)):
        return guarded(runnable)
    for kind, inside in _INSIDE.items():
        if isinstance(runnable, kind):
            return inside(runnable, lambda inner: _reseated(inner, guarded, around))
    return None


def _in_sequence(chain: Any, step: Step) -> AnyRunnable | None:
    first = step(chain.first)
    return None if first is None else chain.model_copy(update={"first": first})


def _in_binding(binding: Any, step: Step) -> AnyRunnable | None:
    bound = step(binding.bound)
    return None if bound is None else binding.model_copy(update={"bound": bound})


def _in_fallbacks(chain: Any, step: Step) -> AnyRunnable | None:
    first, *others = (step(each) for each in (chain.runnable, *chain.fallbacks))
    if first is None or any(other is None for other in others):
        return None
    update = {"runnable": first, "fallbacks": others}
    return cast("AnyRunnable", chain.model_copy(update=update))


def _in_parallel(parallel: Any, step: Step) -> AnyRunnable | None:
    steps = {name: step(each) for name, each in parallel.steps__.items()}
    if all(each is None for each in steps.values()):
        return None
    kept = {name: each or parallel.steps__[name] for name, each in steps.items()}
    return cast("AnyRunnable", parallel.model_copy(update={"steps__": kept}))


_INSIDE: dict[type[Any], Callable[[Any, Step], AnyRunnable | None]] = {
    RunnableSequence: _in_sequence,
    RunnableWithFallbacks: _in_fallbacks,
    RunnableBindingBase: _in_binding,
    RunnableParallel: _in_parallel,
}
