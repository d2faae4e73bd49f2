"""Counts what the guards of one process decide, for Prometheus and the live page."""

from __future__ import annotations

import math
import threading
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

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

_UNCERTAINTY_BOUNDS = tuple(tenth / 10 for tenth in range(1, 11))
_SECONDS_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_TOKENS = ("prompt", "cached", "completion", "reasoning")


class _Histogram:
    """Counts values by the least bound that they do not exceed."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, **labels: str) -> Iterator[str]:
        reached = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            reached += count
            yield _line(f"{name}_bucket", reached, **labels, le=str(bound))
        yield _line(f"{name}_sum", self.total, **labels)
        yield _line(f"{name}_count", reached, **labels)


@dataclass(kw_only=True)
class _PolicyCounts:
    """What is counted for one policy, since the process started."""

    decisions: Counter[str] = field(
        default_factory=lambda: Counter(dict.fromkeys(DECISIONS, 0))
    )
    uncertainty: _Histogram = field(
        default_factory=lambda: _Histogram(_UNCERTAINTY_BOUNDS)
    )
    seconds: _Histogram = field(default_factory=lambda: _Histogram(_SECONDS_BOUNDS))
    tokens: Counter[str] = field(
        default_factory=lambda: Counter(dict.fromkeys(_TOKENS, 0))
    )
    money: float | None = None
    reasons: Counter[str] = field(default_factory=Counter)
    threshold: float | None = None

    def add(self, assessment: Assessment) -> None:
        cost = assessment.cost
        self.decisions[assessment.decision or "none"] += 1
        if assessment.uncertainty is not None:
            self.uncertainty.add(assessment.uncertainty)
        self.seconds.add(cost.seconds)
        for kind in _TOKENS:
            self.tokens[kind] += getattr(cost, f"{kind}_tokens")
        if cost.money is not None:
            self.money = (self.money or 0.0) + cost.money
        self.reasons.update(assessment.reasons)
        self.threshold = assessment.threshold


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
        >>> 'snne_guard_calls_total{policy="default",decision="flag"} 1' in (
        ...     metrics.text().splitlines()
        ... )
        True
    """

    def __init__(self) -> None:
        self.show_texts = False
        self.number = 0
        self.closed = False
        self._lock = threading.Lock()
        self._started = time.time()
        self._policies: dict[str, _PolicyCounts] = {}
        self._upstream_errors: Counter[str] = Counter()
        self._calls: deque[dict[str, Any]] = deque(maxlen=CALLS_KEPT)
        self._minutes: deque[tuple[int, Counter[str]]] = deque(maxlen=MINUTES_KEPT)

    def observer(self, policy: str, /) -> Observer:
        """Return an observer that counts the calls of one policy.

        The policy is in ``text`` from now on, with zeros until its first call.
        """
        with self._lock:
            self._policies.setdefault(policy, _PolicyCounts())
        return _PolicyObserver(self, policy)

    def upstream_error(self, status: int | str, /) -> None:
        """Count a request that the upstream failed.

        Args:
            status: Its HTTP status, or one word such as ``"timeout"``.
        """
        with self._lock:
            self._upstream_errors[str(status)] += 1

    def close(self) -> None:
        """Let every open stream of events end, so that the server can."""
        self.closed = True

    def count(self, policy: str, assessment: Assessment, /) -> None:
        """Count a call of a policy that ``observer`` was asked for."""
        call = _call(policy, assessment, texts=self.show_texts)
        minute = int(call["at"] // 60)
        with self._lock:
            self.number += 1
            self._calls.append(call)
            self._policies[policy].add(assessment)
            if not self._minutes or self._minutes[-1][0] != minute:
                self._minutes.append((minute, Counter()))
            self._minutes[-1][1][call["decision"]] += 1

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
        policies = self._policies.values()
        seconds = sorted(call["seconds"] for call in calls)
        money = [each.money for each in policies if each.money is not None]
        return {
            "now": now,
            "started": self._started,
            "minutes": [[60 * minute, dict(counts)] for minute, counts in minutes],
            "hour": hour.total(),
            "held_back": sum(hour[each] for each in HELD_BACK),
            "uncertainty": [
                sum(each.uncertainty.counts[tenth] for each in policies)
                for tenth in range(10)
            ],
            "thresholds": {
                name: each.threshold
                for name, each in self._policies.items()
                if each.threshold is not None
            },
            "median_seconds": _quantile(seconds, 0.5),
            "p95_seconds": _quantile(seconds, 0.95),
            "tokens": sum(
                each.tokens["prompt"] + each.tokens["completion"] for each in policies
            ),
            "money": sum(money) if money else None,
            "upstream_errors": dict(self._upstream_errors),
        }

    def text(self) -> str:
        """Return every counter in Prometheus' text format, version 0.0.4."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        policies = self._policies.items()
        name = "snne_guard_calls_total"
        yield from _head(name, "counter", "Guarded calls by what was decided.")
        for policy, each in policies:
            yield from _counters(name, "decision", each.decisions, policy=policy)
        name = "snne_guard_uncertainty"
        yield from _head(name, "histogram", "Uncertainty u of the scored calls.")
        for policy, each in policies:
            yield from each.uncertainty.lines(name, policy=policy)
        name = "snne_guard_call_seconds"
        meaning = "Wall time from the first request to the decision."
        yield from _head(name, "histogram", meaning)
        for policy, each in policies:
            yield from each.seconds.lines(name, policy=policy)
        name = "snne_guard_tokens_total"
        meaning = "Tokens of all draws; prompt includes cached, completion reasoning."
        yield from _head(name, "counter", meaning)
        for policy, each in policies:
            yield from _counters(name, "kind", each.tokens, policy=policy)
        name = "snne_guard_money_total"
        yield from _head(name, "counter", "What the tokens cost at the given prices.")
        for policy, each in policies:
            if each.money is not None:
                yield _line(name, each.money, policy=policy)
        name = "snne_guard_reasons_total"
        yield from _head(name, "counter", "Calls in which something was not as usual.")
        for policy, each in policies:
            yield from _counters(name, "reason", each.reasons, policy=policy)
        name = "snne_guard_upstream_errors_total"
        yield from _head(name, "counter", "Requests that the upstream failed.")
        yield from _counters(name, "status", self._upstream_errors)


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


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _counters(
    name: str, label: str, counts: Mapping[str, int], **labels: str
) -> Iterator[str]:
    for value, count in counts.items():
        yield _line(name, count, **labels, **{label: value})


def _line(name: str, value: float, **labels: str) -> str:
    pairs = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
