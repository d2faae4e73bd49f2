"""From a guard's options to its parts, each checked where it belongs."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from snne_guard.assess.brief import Assessor
from snne_guard.assess.calibrated import bind, with_calibration
from snne_guard.assess.judge import Judge
from snne_guard.assess.monitoring import watching
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.stopping import Stopping, StopRule
from snne_guard.decision import (
    CalibratedStop,
    Calibration,
    Policy,
    accept_threshold,
)
from snne_guard.errors import ConfigurationError
from snne_guard.sampling import Breaker, Budget, Limiter, Prices, SamplingPlan
from snne_guard.sampling.breaker import BREAKER, Circuit
from snne_guard.sampling.budget import Ledger
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.options import AnswerSettings

__all__ = ["Shared", "build_assessor"]

T = TypeVar("T")

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
        breaker: When samples are shed, None for never.
        budget: What may be spent, None for any amount.
        prices: What tokens cost.
    """

    def __init__(
        self,
        *,
        max_concurrency: int | None = None,
        observers: tuple[Any, ...] = (),
        breaker: Breaker | None = None,
        budget: Budget | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.limiter = Limiter(max_concurrency)
        self.observers, self.watching = ObserverHub(observers), observers
        self.circuit = Circuit(breaker)
        self.ledger = None if budget is None else Ledger(budget, prices)
        self.allowance = (budget, prices if budget else None)
        self.memory = Memory()

    def under(
        self,
        *,
        max_concurrency: int | None,
        observers: tuple[Any, ...],
        breaker: Breaker | None,
        budget: Budget | None,
        prices: Prices | None,
    ) -> Shared:
        """Return itself, or where settings differ another with the rest of it."""
        new = Shared(
            max_concurrency=max_concurrency,
            observers=observers,
            breaker=breaker,
            budget=budget,
            prices=prices,
        )
        new.memory = self.memory
        if max_concurrency == self.limiter.limit:
            new.limiter = self.limiter
        if observers == self.watching:
            new.observers = self.observers
        if breaker == self.circuit.breaker:
            new.circuit = self.circuit
        if new.allowance == self.allowance:
            new.ledger = self.ledger
        return self if vars(new) == vars(self) else new


def build_assessor(
    options: Mapping[str, Any],
    shared: Shared | None = None,
    *,
    model: str | None = None,
    answer_settings: AnswerSettings | None = None,
) -> tuple[Assessor, Shared]:
    """Return what samples, scores and decides, and what it shares with others.

    Args:
        options: The options of a guard by name, all of them.
        shared: What it is to share, None to begin anew.
        model: Name of the model that is asked, None where that is not known yet.
        answer_settings: What it draws the answer with, as far as that is known yet.

    Raises:
        ConfigurationError: If an option makes no sense, alone or with another one, or
            differs from what the calibration was made for.
        InputError: If the file of the calibration holds none, or was changed.
    """
    options = with_calibration(options)
    plan = SamplingPlan(
        **{name: options[name] for name in _PLAN}, rounds=_rounds(options)
    )
    prices = _is_given("prices", Prices, options)
    shared = (shared or Shared()).under(
        max_concurrency=options["max_concurrency"],
        observers=options["observers"],
        breaker=_is_given("breaker", Breaker, {"breaker": BREAKER, **options}),
        budget=_is_given("budget", Budget, options),
        prices=prices,
    )
    judge = Judge(
        policy=_policy(options, plan),
        method=options["method"],
        similarity=options["similarity"],
        tau=options["tau"],
        tool_calls=options["tool_calls"],
        temperature=plan.temperature,
    )
    judge = bind(
        options, plan, judge, model=model, answer_settings=answer_settings or {}
    )
    assessor = Assessor(
        plan=plan,
        judge=judge,
        observers=shared.observers,
        memory=shared.memory,
        limiter=shared.limiter,
        prices=prices,
        stopping=_stopping(options, plan, judge),
        ledger=shared.ledger,
        circuit=shared.circuit,
        sample_when=_plain("sample_when", "a bool", options),
        question=_plain("question", "a text", options),
        watch=watching(options, judge.policy.threshold),
    )
    return assessor, shared


def _rounds(options: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the plan checks them
    """Return the rounds that are asked for, those of a rule that has its own."""
    rounds, rule = options.get("rounds"), options.get("stopping")
    if not isinstance(rule, CalibratedStop):
        return rounds
    rule.check({"n": options["n"]})
    return rule.rounds if rounds is None else rounds


def _stopping(
    options: Mapping[str, Any], plan: SamplingPlan, judge: Judge
) -> Stopping | None:
    stopping = options.get("stopping", "certificate")
    rule = None if stopping == "certificate" else _stop_rule(stopping)
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
    if judge.binding is not None:
        # What is promised holds for this plan, or for whole sets.
        cascade = judge.binding.calibration.cascade
        if cascade is None or plan.rounds is None:
            return None
        return Stopping(judge=judge, certificate=False, rule=cascade)
    if stopping is None:
        return None
    if isinstance(rule, CalibratedStop):
        _check_learnt(rule, plan, judge)
    # Where no sample can change the decision, no promise of a rule is broken.
    certificate = rule is None or isinstance(rule, CalibratedStop)
    return Stopping(judge=judge, certificate=certificate, rule=rule)


def _check_learnt(rule: CalibratedStop, plan: SamplingPlan, judge: Judge) -> None:
    threshold, method = judge.policy.threshold, judge.method
    relation, ran = judge.relation_for(), judge.resolve(logprobs=True)
    if judge.policy.refuse_above is not None:
        msg = (
            "a calibrated stop knows one threshold, not an (accept, refuse) pair; "
            "use stopping='certificate'"
        )
        raise ConfigurationError(msg)
    rule.check(
        {
            "method": method if isinstance(method, str) else method.name,
            "similarity": relation.name,
            "anchor": relation.anchor_for(ran, member=plan.include_answer),
            "tau": 1.0 if judge.tau is None else judge.tau,
            "rounds": tuple(plan.rounds or ()),
            "include_answer": plan.include_answer,
            "threshold": None if threshold is None else threshold.value,
            "temperature": plan.temperature,
        }
    )


def _stop_rule(value: object) -> StopRule | None:
    if value is not None and not callable(value):
        msg = (
            "stopping must be 'certificate', a CalibratedStop, a callable or None; "
            f"got {value!r}"
        )
        raise ConfigurationError(msg)
    return cast("StopRule | None", value)


def _is_given(name: str, kind: type[T], options: Mapping[str, Any]) -> T | None:
    value = options.get(name)
    if value is not None and not isinstance(value, kind):
        msg = f"{name} must be {kind.__name__}(...) or None; got {value!r}"
        raise ConfigurationError(msg)
    return value


def _plain(
    name: str, result: str, options: Mapping[str, Any]
) -> Callable[[Any], object] | None:
    function = options.get(name)
    if function is None:
        return None
    if not callable(function) or inspect.iscoroutinefunction(function):
        msg = (
            f"{name} must be a plain function from messages to {result}, or None; "
            f"got {function!r}"
        )
        raise ConfigurationError(msg)
    return cast("Callable[[Any], object]", function)


def _policy(options: Mapping[str, Any], plan: SamplingPlan) -> Policy:
    calibration: Calibration | None = options.get("calibration")
    accept, refuse_above = accept_threshold(options["threshold"])
    if calibration is not None:
        accept, refuse_above = calibration.limits
    rule = options["tool_calls"]
    actions = [options["on_uncertain"], getattr(rule, "on_uncertain", None)]
    if "fallback" in actions and options["fallback"] is None:
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
