"""Putting a guard where the model stands inside what the model has built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.runnables import Runnable, RunnableParallel, RunnableSequence

from snne_guard.errors import ConfigurationError
from snne_guard.sampling.langchain_models import check_model

__all__ = ["reseat"]


AnyRunnable = Runnable[Any, Any]


def reseat(
    chain: AnyRunnable, guarded: Callable[[AnyRunnable], AnyRunnable]
) -> AnyRunnable:
    """Return a chain with the model in it replaced by a guard on that model.

    Args:
        chain: What ``with_structured_output`` returned: the model and its parsers.
        guarded: Makes the guard from the model, its bound options included.

    Raises:
        ConfigurationError: If no model is found: it would bypass the guard.
    """
    changed = _reseated(chain, guarded)
    if changed is None:
        msg = (
            "with_structured_output of this model returns a "
            f"{type(chain).__name__} in which no chat model is found; the guard would "
            "be bypassed. Guard the model and parse its text instead"
        )
        raise ConfigurationError(msg)
    return changed


def _reseated(
    runnable: AnyRunnable, guarded: Callable[[AnyRunnable], AnyRunnable]
) -> AnyRunnable | None:
    """Return the runnable with the guard in it, None if there is no model in it."""
    if _is_model(runnable):
        return guarded(runnable)
    if isinstance(runnable, RunnableSequence):
        first = _reseated(runnable.first, guarded)
        return None if first is None else runnable.model_copy(update={"first": first})
    if isinstance(runnable, RunnableParallel):
        steps = {
            key: _reseated(step, guarded) for key, step in runnable.steps__.items()
        }
        if not any(steps.values()):
            return None
        kept = {key: step or runnable.steps__[key] for key, step in steps.items()}
        return runnable.model_copy(update={"steps__": kept})
    return None


def _is_model(runnable: AnyRunnable) -> bool:
    """Return whether a runnable is a chat model, or wrappers around nothing else."""
    try:
        check_model(runnable)
    except ConfigurationError:
        return False
    return True
