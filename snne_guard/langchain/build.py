"""From a guard's options to its parts, each checked where it belongs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from langchain_core.runnables.base import coerce_to_runnable
from pydantic import BaseModel

from snne_guard.assess import Assessor, Judge, ObserverHub
from snne_guard.decision import Policy, accept_threshold
from snne_guard.errors import ConfigurationError
from snne_guard.langchain.core import GuardCore
from snne_guard.sampling import Limiter, SamplingPlan
from snne_guard.sampling.langchain_models import check_model
from snne_guard.sampling.memory import Memory

__all__ = ["PAPER", "Shared", "build", "described"]

_PLAN = (
    "n",
    "include_answer",
    "temperature",
    "schedule",
    "timeout",
    "sample_timeout",
    "sample_max_tokens",
    "sample_rate",
    "max_attempts",
)

PAPER: dict[str, Any] = {
    "n": 10,
    "include_answer": False,
    "temperature": 1.0,
    "method": "snne",
    "similarity": "rouge_l_paper",
    "tau": 1.0,
}
"""The settings of the paper's experiments (arXiv 2506.00245, section 4)."""

_SHOWN = (
    "n",
    "include_answer",
    "temperature",
    "tau",
    "threshold",
    "on_error",
    "tool_calls",
    "min_samples",
    "schedule",
    "timeout",
    "sample_timeout",
    "sample_max_tokens",
    "max_concurrency",
    "sample_rate",
)


class Shared:
    """What a guard shares with those made from it: limits, observers, what it learnt.

    Args:
        max_concurrency: Sample requests in flight, None for no limit.
        observers: Who is told.
    """

    def __init__(
        self, *, max_concurrency: int | None = None, observers: tuple[Any, ...] = ()
    ) -> None:
        self.limiter = Limiter(max_concurrency)
        self.observers = ObserverHub(observers)
        self.watching = observers
        self.memory = Memory()

    def under(
        self, *, max_concurrency: int | None, observers: tuple[Any, ...]
    ) -> Shared:
        """Return itself, with another limit or other observers where they differ."""
        if max_concurrency == self.limiter.limit and observers == self.watching:
            return self
        shared = Shared(max_concurrency=max_concurrency, observers=observers)
        shared.memory = self.memory
        return shared


def build(
    options: Mapping[str, Any], shared: Shared | None
) -> tuple[GuardCore, Shared]:
    """Return the parts of a guard, and what it shares with those made from it.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.
    """
    check_model(options["model"])
    plan = SamplingPlan(**{name: options[name] for name in _PLAN})
    limit = options["max_concurrency"]
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        msg = f"max_concurrency must be a whole number of at least 1; got {limit!r}"
        raise ConfigurationError(msg)
    shared = (shared or Shared()).under(
        max_concurrency=limit, observers=options["observers"]
    )
    judge = Judge(
        policy=_policy(options, plan),
        method=options["method"],
        similarity=options["similarity"],
        tau=options["tau"],
        tool_calls=options["tool_calls"],
    )
    fallback = options["fallback"]
    core = GuardCore(
        model=options["model"],
        assessor=Assessor(
            plan=plan,
            judge=judge,
            observers=shared.observers,
            memory=shared.memory,
            limiter=shared.limiter,
        ),
        fallback=None if fallback is None else coerce_to_runnable(fallback),
        refusal=options["refusal"],
        trace_samples=options["trace_samples"],
        structured=options["structured"],
    )
    return core, shared


def _policy(options: Mapping[str, Any], plan: SamplingPlan) -> Policy:
    accept, refuse_above = accept_threshold(options["threshold"])
    if options["on_uncertain"] == "fallback" and options["fallback"] is None:
        msg = 'on_uncertain="fallback" needs a fallback: whoever answers instead'
        raise ConfigurationError(msg)
    least = options["min_samples"]
    if least is None:
        least = max(2, math.ceil(plan.n / 2))
    if not isinstance(least, int) or not 2 <= least <= plan.n:  # noqa: PLR2004 - a pair
        msg = f"min_samples must be from 2 to n = {plan.n}, or None; got {least!r}"
        raise ConfigurationError(msg)
    return Policy(
        threshold=accept,
        refuse_above=refuse_above,
        on_uncertain=options["on_uncertain"],
        on_error=options["on_error"],
        min_samples=least,
    )


def described(guard: BaseModel) -> str:
    """Return a guard's settings that differ from the defaults; no secret in them.

    What users hand in (models, callables, observers) is left to its type's name: a
    bound option may be a key.
    """
    fields = type(guard).model_fields
    shown = [
        f"{name}={value!r}"
        for name in _SHOWN
        if (value := getattr(guard, name)) != fields[name].default
    ]
    model: Any = getattr(guard, "model", None)
    while "bound" in vars(model):
        model = model.bound
    return f"{type(guard).__name__}({', '.join([type(model).__name__, *shown])})"
