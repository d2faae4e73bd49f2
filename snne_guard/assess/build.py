"""From a guard's options to its parts, each checked where it belongs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

from snne_guard.assess.brief import Assessor
from snne_guard.assess.judge import Judge
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.stopping import Stopping, StopRule
from snne_guard.decision import Policy, accept_threshold
from snne_guard.errors import ConfigurationError
from snne_guard.sampling import Limiter, Prices, SamplingPlan
from snne_guard.sampling.memory import Memory

__all__ = ["Shared", "build_assessor"]

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


def build_assessor(
    options: Mapping[str, Any], shared: Shared | None = None
) -> tuple[Assessor, Shared]:
    """Return what samples, scores and decides, and what it shares with others.

    Args:
        options: The options of a guard by name, all of them.
        shared: What it is to share, None to begin anew.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one.
    """
    plan = SamplingPlan(
        **{name: options[name] for name in _PLAN}, rounds=options.get("rounds")
    )
    shared = (shared or Shared()).under(
        max_concurrency=options["max_concurrency"], observers=options["observers"]
    )
    judge = Judge(
        policy=_policy(options, plan),
        method=options["method"],
        similarity=options["similarity"],
        tau=options["tau"],
        tool_calls=options["tool_calls"],
        temperature=plan.temperature,
    )
    assessor = Assessor(
        plan=plan,
        judge=judge,
        observers=shared.observers,
        memory=shared.memory,
        limiter=shared.limiter,
        prices=_prices(options.get("prices")),
        stopping=_stopping(options, plan, judge),
    )
    return assessor, shared


def _stopping(
    options: Mapping[str, Any], plan: SamplingPlan, judge: Judge
) -> Stopping | None:
    stopping = options.get("stopping", "certificate")
    certificate = stopping == "certificate"
    rule = None if certificate else _stop_rule(stopping)
    if plan.rounds is None and rule is not None:
        msg = "stopping needs rounds, such as rounds=(3, 5, 10) with n=10"
        raise ConfigurationError(msg)
    if judge.policy.threshold is None:
        if plan.rounds is None:
            return None
        msg = (
            "rounds need a threshold: without one nothing is decided, so there is "
            "nothing that fewer samples could settle"
        )
        raise ConfigurationError(msg)
    if stopping is None:
        return None
    return Stopping(judge=judge, certificate=certificate, rule=rule)


def _stop_rule(value: object) -> StopRule | None:
    if value is not None and not callable(value):
        msg = f"stopping must be 'certificate', a callable or None; got {value!r}"
        raise ConfigurationError(msg)
    return cast("StopRule | None", value)


def _prices(value: object) -> Prices | None:
    if value is not None and not isinstance(value, Prices):
        msg = f"prices must be Prices(prompt=..., completion=...); got {value!r}"
        raise ConfigurationError(msg)
    return value


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
