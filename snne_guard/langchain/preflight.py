"""``guard.preflight()``: whether this model's samples can be trusted, by asking it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Never, cast

from langchain_core.globals import get_llm_cache
from langchain_core.messages import HumanMessage

from snne_guard.errors import ConfigurationError
from snne_guard.langchain.core import Request
from snne_guard.langchain.errors import GuardTimeoutError
from snne_guard.sampling.diagnosis import diagnose
from snne_guard.sampling.evidence import Case, Finding
from snne_guard.sampling.langchain_route import Route
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.probes import (
    Abilities,
    Ask,
    Observations,
    Probing,
    Seen,
    probing,
)
from snne_guard.sampling.retry import perhaps_billed
from snne_guard.types import Cost

__all__ = ["Examiner", "LateError", "Preflight"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """What was found out about a model before it is relied on.

    Attributes:
        ok: Whether samples can be trusted to be independent draws.
        findings: One for each check, in the order of ``CHECKS``.
        settings: Options of ``SNNEGuard`` that suit this model.
        model: What the provider calls the model that answered, None if it does not.
        cost: What it took to find out.
    """

    findings: tuple[Finding, ...]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    cost: Cost = field(default_factory=Cost)

    @property
    def ok(self) -> bool:
        """Whether samples can be trusted to be independent draws."""
        return all(finding.trusted for finding in self.findings)

    def finding(self, check: str) -> Finding:
        """Return what was found about one check.

        Raises:
            KeyError: If there is no such check.
        """
        return {found.check: found for found in self.findings}[check]

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for JSON."""
        return {
            "ok": self.ok,
            "findings": [finding.to_dict() for finding in self.findings],
            "settings": dict(self.settings),
            "model": self.model,
            "cost": self.cost.to_dict(),
        }


class LateError(TimeoutError):
    """No reply came while there was time."""


class Examiner:
    """What the two twins share: whom to ask what, and what follows from it.

    Args:
        request: Any call of the guard; its question is not asked.
        timeout: Seconds for everything.

    Raises:
        ConfigurationError: If this model is never sampled.
    """

    def __init__(self, request: Request, *, timeout: float) -> None:
        if request.route.unsampled(request.kwargs) is not None:
            msg = (
                "this model is not sampled, since a further draw could do something "
                "besides answering (tools that run at the provider, a stored "
                "conversation), so there is nothing to examine"
            )
            raise ConfigurationError(msg)
        self.request, self._timeout = request, timeout
        self.assessor = request.core.assessor
        self._memory, self._cold_memory = Memory(), Memory()
        self._lock = threading.Lock()
        self._cost = Cost()
        self._started = time.monotonic()
        self._abilities = self._able()
        self._steps: Probing = probing(self._abilities)
        self._seen = Observations()

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._started + self._timeout - time.monotonic())

    def _able(self) -> Abilities:
        route, assessor = self.request.route, self.assessor
        return Abilities(
            batch=assessor.batch(supported=route.supports_batch) > 1,
            logprobs=route.supports_logprobs and assessor.judge.wants_logprobs,
            temperature="temperature_unset" not in route.reasons(),
            seed=self._seed_option is not None,
            max_tokens=assessor.plan.sample_max_tokens,
        )

    def sampler(self, ask: Ask) -> dict[str, Any]:
        """Return what the sampler of one request is made of."""
        plan = self.assessor.plan
        plan = replace(
            plan,
            temperature=0.0 if ask.cold else plan.temperature,
            sample_max_tokens=ask.max_tokens,
        )
        return {
            "route": Route.of(self.request.model, plan),
            "messages": [HumanMessage(ask.prompt)],
            "kwargs": self._seeded(ask),
            "plan": plan,
            # A provider may refuse temperature 0 and take the guard's own.
            "memory": self._cold_memory if ask.cold else self._memory,
            "logprobs": self._abilities.logprobs,
        }

    @property
    def _seed_option(self) -> str | None:
        """Name of the option that seeds a request, None where there is none."""
        first, row = self.request.route.candidates[0], self.request.route.providers[0]
        # A row that names no classes is that of all others.
        known = bool(row.classes) or row.seed_name in type(first.model).model_fields
        takes = row.seed is not None and not row.seed_is_field
        return row.seed_name if known and takes else None

    def _seeded(self, ask: Ask) -> dict[str, Any]:
        name = self._seed_option
        return {} if ask.seed is None or name is None else {name: ask.seed}

    def log_options(self) -> dict[str, Any]:
        """Return how callback handlers are told of the requests."""
        # There is no decision to wait for.
        return {**self.request.log_options(), "hold": False}

    def count(self) -> None:
        """Count a request that goes out."""
        with self._lock:
            self._cost += Cost(attempts=1)

    def next(self, seen: list[Seen] | None) -> list[Ask]:
        """Return the requests to send now, none at the end."""
        for one in seen or ():
            lost = one.error is not None and perhaps_billed(one.error)
            cost = Cost(lower_bound=lost) if one.reply is None else one.reply.cost
            self._cost += cost
        try:
            return self._steps.send(cast("list[Seen]", seen))
        except StopIteration as stop:
            self._seen = stop.value
            return []

    def report(self) -> Preflight:
        """Return what was found out, and have the guard know it.

        Raises:
            GuardTimeoutError: If the first reply did not come in time.
            Exception: What the provider raised instead of a first reply.
        """
        answered = [one for one in self._seen.warm if one.reply is not None]
        if not answered:
            self._raise(self._seen.first.error)
        case = Case(
            seen=self._seen,
            abilities=self._abilities,
            temperature=self.assessor.plan.temperature,
            rejected=self._rejected(),
            own_cache=_has_cache(self.request.route),
        )
        findings = diagnose(case)
        cost = replace(self._cost, seconds=time.monotonic() - self._started)
        if self.assessor.prices is not None:
            cost = self.assessor.prices.priced(cost)
        model = next((sample.model for sample in answered[0].samples), None)
        report = Preflight(findings=findings, model=model, cost=cost)
        self._settle(report)
        return replace(report, settings=self._settings(report))

    def _raise(self, error: BaseException | None) -> Never:
        if error is None or isinstance(error, LateError):
            msg = f"no reply within the timeout of {self._timeout:g} s"
            raise GuardTimeoutError(msg, timeout=self._timeout)
        raise error

    def _rejected(self) -> frozenset[str]:
        learnt = (
            ("logprobs", self._memory.logprobs),
            ("temperature", self._memory.temperature),
        )
        return frozenset(name for name, value in learnt if value is False)

    def _settle(self, report: Preflight) -> None:
        """Have the guard's later calls know what was found out."""
        memory = self.assessor.memory
        if self._memory.temperature is False:
            memory.temperature = False
        if self._abilities.logprobs:
            works = report.finding("logprobs").status == "works"
            memory.settle_logprobs(seen=works)
        if self._abilities.batch:
            asked = self.assessor.plan.n_samples
            memory.learn_batch(self._batch(report, asked=asked), asked=asked)

    def _batch(self, report: Preflight, *, asked: int) -> int:
        """Return how many replies to ask for in one request."""
        seen = self._seen
        if report.finding("n").status != "works":
            return asked if report.finding("n").status == "unknown" else 1
        if seen.fewer:
            return len(seen.fewer[0].samples)
        got = len(seen.batch[0].samples)
        return asked if got >= seen.asked else got

    def _settings(self, report: Preflight) -> dict[str, Any]:
        plan, method = self.assessor.plan, self.assessor.judge.method
        settings: dict[str, Any] = {}
        if not plan.temperature:
            settings["temperature"] = 1.0
        if isinstance(method, str):
            if self.assessor.judge.wants_logprobs:
                works = report.finding("logprobs").status == "works"
                best = "wsnne" if method == "auto" else method
                method = best if works else "snne"
            settings["method"] = method
        return settings


def _has_cache(route: Route) -> bool:
    """Return whether LangChain would answer from a cache for the user's model."""
    kept = [candidate.model.cache for candidate in route.candidates]
    on = get_llm_cache() is not None
    return any(cache is not False and (cache is not None or on) for cache in kept)
