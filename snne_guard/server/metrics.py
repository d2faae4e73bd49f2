"""Counts what the guards of one process decide, for Prometheus and the live page."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from functools import partial
from typing import Any, get_args

import prometheus_client as prometheus
from prometheus_client import CollectorRegistry

from snne_guard.types import Assessment, Decision, Observer

__all__ = ["Metrics"]

CALLS_KEPT = 100
"""Calls that are kept one by one."""

MINUTES_KEPT = 60
"""Minutes for which the calls of each are counted."""

TEXT_KEPT = 10_000
"""Characters that are kept of a question or an answer, where texts are shown."""

DECISIONS = (*get_args(Decision), "none")
"""Decisions as labels; ``none``: no threshold is set."""

HELD_BACK = ("refuse", "fallback")
"""Decisions for which the application does not get the answer."""

SPAN_THRESHOLD = 0.5
"""Above which a sentence counts as uncertain where no threshold is set for it."""

_TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_TOKENS = ("prompt", "cached", "completion", "reasoning")


class _Families:
    """What Prometheus reads, in a registry of its own: several servers count apart."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(prometheus.Counter, registry=self.registry)
        histogram = partial(prometheus.Histogram, registry=self.registry)
        meaning = "Guarded calls by what was decided."
        self.calls = counter("snne_guard_calls", meaning, ["policy", "decision"])
        meaning = "Uncertainty u of the scored calls."
        name = "snne_guard_uncertainty"
        self.uncertainty = histogram(name, meaning, ["policy"], buckets=_TENTHS)
        meaning = "Wall time from the first request to the decision."
        name = "snne_guard_call_seconds"
        self.seconds = histogram(name, meaning, ["policy"], buckets=_SECONDS)
        meaning = "Tokens of all draws; prompt includes cached, completion reasoning."
        self.tokens = counter("snne_guard_tokens", meaning, ["policy", "kind"])
        meaning = "What the tokens cost at the given prices."
        self.money = counter("snne_guard_money", meaning, ["policy"])
        meaning = "Calls in which something was not as usual."
        self.reasons = counter("snne_guard_reasons", meaning, ["policy", "reason"])
        meaning = "Requests that the upstream failed."
        self.failures = counter("snne_guard_upstream_errors", meaning, ["status"])

    def show(self, policy: str) -> None:
        """Show a policy with zeros until its first call."""
        self.uncertainty.labels(policy)
        self.seconds.labels(policy)
        for decision in DECISIONS:
            self.calls.labels(policy, decision)
        for kind in _TOKENS:
            self.tokens.labels(policy, kind)

    def count(self, policy: str, assessment: Assessment) -> None:
        cost = assessment.cost
        self.calls.labels(policy, assessment.decision or "none").inc()
        if assessment.uncertainty is not None:
            self.uncertainty.labels(policy).observe(assessment.uncertainty)
        self.seconds.labels(policy).observe(cost.seconds)
        for kind in _TOKENS:
            self.tokens.labels(policy, kind).inc(getattr(cost, f"{kind}_tokens"))
        if cost.money is not None:
            self.money.labels(policy).inc(cost.money)
        for reason in assessment.reasons:
            self.reasons.labels(policy, reason).inc()


class Metrics:
    """What the guards of one process did, counted since it started.

    It is safe to share between threads, and keeps numbers only, of bounded size:
    counters, the last hour minute by minute, and the last hundred calls.

    Attributes:
        show_texts: Whether the calls from now on are kept with the question and the
            answer, cut to 10,000 characters each, withheld answers included. False
            unless ``live_routes`` was told to show texts.
        number: Calls counted so far.
        closed: Whether ``close`` was called.

    Example:
        >>> from snne_guard.types import Assessment
        >>> metrics = Metrics()
        >>> observer = metrics.observer("default")
        >>> observer.on_assessment(Assessment(id="a", answer=None, decision="flag"))
        >>> 'calls_total{decision="flag",policy="default"} 1.0' in metrics.text()
        True
    """

    def __init__(self) -> None:
        self.show_texts = False
        self.number = 0
        self.closed = False
        self._lock = threading.Lock()
        self._families = _Families()
        self._started = time.time()
        self._calls: deque[dict[str, Any]] = deque(maxlen=CALLS_KEPT)
        self._minutes: deque[tuple[int, Counter[str]]] = deque(maxlen=MINUTES_KEPT)
        self._tenths = [0] * len(_TENTHS)
        self._thresholds: dict[str, float] = {}
        self._tokens = 0
        self._money: float | None = None
        self._failures: Counter[str] = Counter()

    def observer(self, policy: str, /) -> Observer:
        """Return an observer that counts the calls of one policy.

        The policy is in ``text`` from now on, with zeros until its first call.
        """
        self._families.show(policy)
        return _PolicyObserver(self, policy)

    def upstream_error(self, status: int | str, /) -> None:
        """Count a request that the upstream failed.

        Args:
            status: Its HTTP status, or one word such as ``"timeout"``.
        """
        self._families.failures.labels(status).inc()
        with self._lock:
            self._failures[str(status)] += 1

    def close(self) -> None:
        """Let every open stream of events end, so that the server can."""
        self.closed = True

    def count(self, policy: str, assessment: Assessment, /) -> None:
        """Count a call of a policy."""
        call = _call(policy, assessment, texts=self.show_texts)
        cost, minute = assessment.cost, int(call["at"] // 60)
        self._families.count(policy, assessment)
        with self._lock:
            self.number += 1
            self._calls.append(call)
            if not self._minutes or self._minutes[-1][0] != minute:
                self._minutes.append((minute, Counter()))
            self._minutes[-1][1][call["decision"]] += 1
            if assessment.uncertainty is not None:
                self._tenths[bisect_left(_TENTHS, assessment.uncertainty)] += 1
            if assessment.threshold is not None:
                self._thresholds[policy] = assessment.threshold
            self._tokens += cost.prompt_tokens + cost.completion_tokens
            if cost.money is not None:
                self._money = (self._money or 0.0) + cost.money

    def since(self, number: int, /) -> dict[str, Any]:
        """Return the figures as they are, and the calls that came after another state.

        Args:
            number: The ``number`` of the state that the reader has; 0 for none.

        Returns:
            Plain JSON: ``number`` of calls so far; ``calls``, oldest first; ``whole``,
            whether these are all that there are to show rather than to be added; and
            ``figures`` that sum up.
        """
        with self._lock:
            new = self.number - number
            whole = number == 0 or new > CALLS_KEPT
            calls = list(self._calls)
            return {
                "number": self.number,
                "whole": whole,
                "calls": calls if whole else calls[len(calls) - new :],
                "figures": self._figures(calls),
            }

    def _figures(self, calls: list[dict[str, Any]]) -> dict[str, Any]:
        now = time.time()
        oldest = int(now // 60) - MINUTES_KEPT + 1
        minutes = [minute for minute in self._minutes if minute[0] >= oldest]
        hour = sum((counts for _, counts in minutes), Counter[str]())
        seconds = sorted(call["seconds"] for call in calls)
        return {
            "now": now,
            "started": self._started,
            "minutes": [[60 * minute, dict(counts)] for minute, counts in minutes],
            "hour": hour.total(),
            "held_back": sum(hour[each] for each in HELD_BACK),
            "uncertainty": [*self._tenths],
            "thresholds": {**self._thresholds},
            "median_seconds": _quantile(seconds, 0.5),
            "p95_seconds": _quantile(seconds, 0.95),
            "tokens": self._tokens,
            "money": self._money,
            "upstream_errors": dict(self._failures),
        }

    def text(self) -> str:
        """Return every counter in Prometheus' text format, version 0.0.4."""
        return prometheus.generate_latest(self._families.registry).decode()


class _PolicyObserver:
    def __init__(self, metrics: Metrics, policy: str) -> None:
        self._metrics = metrics
        self._policy = policy

    def on_assessment(self, assessment: Assessment, /) -> None:
        self._metrics.count(self._policy, assessment)


def _call(policy: str, assessment: Assessment, *, texts: bool) -> dict[str, Any]:
    cost = assessment.cost
    call = {
        "id": assessment.id,
        "at": time.time(),
        "policy": policy,
        "decision": assessment.decision or "none",
        "uncertainty": assessment.uncertainty,
        "threshold": assessment.threshold,
        "seconds": cost.seconds,
        "prompt_tokens": cost.prompt_tokens,
        "completion_tokens": cost.completion_tokens,
        "money": cost.money,
        "reasons": list(assessment.reasons),
    }
    marks = _marks(assessment)
    if assessment.spans is not None:
        call["sentences"] = len(assessment.spans)
        call["uncertain_sentences"] = len(marks)
    if texts:
        answer = assessment.answer
        call["question"] = _cut(assessment.question)
        call["answer"] = _cut(None if answer is None else answer.text)
        shown = [(start, min(end, TEXT_KEPT)) for start, end in marks]
        call["marks"] = [mark for mark in shown if mark[0] < TEXT_KEPT]
    return call


def _marks(assessment: Assessment) -> list[tuple[int, int]]:
    """Return where the uncertain sentences of an answer begin and end."""
    given = assessment.span_threshold
    limit = SPAN_THRESHOLD if given is None else given
    spans = assessment.spans or ()
    return [(each.start, each.end) for each in spans if each.uncertainty > limit]


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= TEXT_KEPT:
        return text
    return f"{text[:TEXT_KEPT]}… ({len(text):,} characters)"


def _quantile(values: list[float], share: float) -> float | None:
    """Return the least of the sorted values that this share of them do not exceed."""
    return values[math.ceil(share * len(values)) - 1] if values else None
