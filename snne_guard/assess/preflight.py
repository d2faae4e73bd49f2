"""``preflight`` of a guard: whether samples can be trusted, whoever gives them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Never, cast

from snne_guard.assess.brief import Assessor
from snne_guard.errors import GuardTimeoutError
from snne_guard.sampling.diagnosis import diagnose
from snne_guard.sampling.evidence import Case, Finding
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.probes import (
    Abilities,
    Ask,
    Observations,
    Probing,
    Seen,
    probing,
)
from snne_guard.sampling.retry import perhaps_billed
from snne_guard.scorers.registry import WITHOUT_LOGPROBS
from snne_guard.types import Cost

__all__ = ["NEVER_SAMPLED", "Examiner", "LateError", "Preflight"]

NEVER_SAMPLED = (
    "this model is not sampled, since a further draw could do something besides "
    "answering (tools that run at the provider, a stored conversation), so there is "
    "nothing to examine"
)
"""Message of the error where a guard would draw no samples."""


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
    """Knows what to ask next, and what follows from all that was seen.

    Args:
        assessor: The guard's parts; its memory is told what was found out.
        abilities: What is known of the model beforehand.
        timeout: Seconds for everything.
        own_cache: Whether the application has a cache of its own for this model.
        late: What is raised where no reply came in time.
    """

    def __init__(
        self,
        assessor: Assessor,
        abilities: Abilities,
        *,
        timeout: float,
        own_cache: bool = False,
        late: type[GuardTimeoutError] = GuardTimeoutError,
    ) -> None:
        self.assessor, self._abilities = assessor, abilities
        self._timeout, self._own_cache, self._late = timeout, own_cache, late
        self._memory, self._cold_memory = Memory(), Memory()
        self._lock = threading.Lock()
        self._cost = Cost()
        self._started = time.monotonic()
        self._steps: Probing = probing(abilities)
        self._seen = Observations()

    @property
    def remaining(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._started + self._timeout - time.monotonic())

    def plan_for(self, ask: Ask) -> SamplingPlan:
        """Return the settings of one request: the guard's own, as far as they go."""
        plan = self.assessor.plan
        temperature = 0.0 if ask.cold else plan.temperature
        return replace(plan, temperature=temperature, sample_max_tokens=ask.max_tokens)

    def memory_for(self, ask: Ask) -> Memory:
        """Return what was learnt so far; the guard's own memory is left alone."""
        # A provider may refuse temperature 0 and take the guard's own.
        return self._cold_memory if ask.cold else self._memory

    def count(self) -> None:
        """Count a request that goes out."""
        with self._lock:
            self._cost += Cost(attempts=1)

    def next(self, seen: Seen | None) -> Ask | None:
        """Return the request to send now, None at the end.

        Args:
            seen: What came of the one before, None at the beginning.
        """
        if seen is not None:
            lost = seen.error is not None and perhaps_billed(seen.error)
            cost = Cost(lower_bound=lost) if seen.reply is None else seen.reply.cost
            self._cost += cost
        try:
            return self._steps.send(cast("Seen", seen))
        except StopIteration as stop:
            self._seen = stop.value
            return None

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
            own_cache=self._own_cache,
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
            raise self._late(msg, timeout=self._timeout)
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
                method = best if works else WITHOUT_LOGPROBS.get(best, "snne")
            settings["method"] = method
        return settings
