"""Counts what the guards of one process decide, for Prometheus and the live page."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator
from functools import partial
from importlib.resources import files
from itertools import pairwise
from typing import Any

import prometheus_client as prometheus
from prometheus_client.metrics import MetricWrapperBase
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from snne_guard.types import Assessment

__all__ = ["Metrics", "live_routes"]

CALLS_KEPT = 100
"""Calls that are kept one by one."""

MINUTES_KEPT = 60
"""Minutes for which the calls of each are counted."""

TEXT_KEPT = 10_000
"""Characters that are kept of a question or an answer, where texts are shown."""

SPAN_THRESHOLD = 0.5
"""Above which a sentence counts as uncertain where no threshold is set for it."""

LOOK_SECONDS = 0.5
"""How often the live page is told of changes."""

_TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_TOKENS = ("prompt", "cached", "completion", "reasoning")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Metrics:
    """What the guards of one process did since it started.

    It is safe to share between threads, and keeps numbers only, of bounded size:
    counters, the last hour minute by minute, and the last hundred calls.

    Args:
        show_texts: Whether these calls are kept with the question and the answer, cut
            to 10,000 characters each, withheld answers included.

    Attributes:
        closed: Whether the streams of events are to end, so that the server can.

    Example:
        >>> from snne_guard.types import Assessment
        >>> metrics = Metrics()
        >>> metrics.count("default", Assessment(id="a", answer=None, decision="flag"))
        >>> 'calls_total{decision="flag",policy="default"} 1.0' in metrics.text()
        True
    """

    def __init__(self, *, show_texts: bool = False) -> None:
        self.closed = False
        self._show_texts = show_texts
        self._lock = threading.Lock()
        self._started = time.time()
        self._calls: deque[dict[str, Any]] = deque(maxlen=CALLS_KEPT)
        self._minutes: deque[tuple[int, Counter[str]]] = deque(maxlen=MINUTES_KEPT)
        self._registry = prometheus.CollectorRegistry()  # several servers count apart
        counter = partial(prometheus.Counter, registry=self._registry)
        histogram = partial(prometheus.Histogram, registry=self._registry)
        meaning = "Guarded calls by what was decided; none: no threshold is set."
        self._decisions = counter("snne_guard_calls", meaning, ["policy", "decision"])
        meaning = "Uncertainty u of the scored calls."
        name = "snne_guard_uncertainty"
        self._uncertainty = histogram(name, meaning, ["policy"], buckets=_TENTHS)
        meaning = "Wall time from the first request to the decision."
        name = "snne_guard_call_seconds"
        self._seconds = histogram(name, meaning, ["policy"], buckets=_SECONDS)
        meaning = "Tokens of all draws; prompt includes cached, completion reasoning."
        self._tokens = counter("snne_guard_tokens", meaning, ["policy", "kind"])
        meaning = "What the tokens cost at the given prices."
        self._money = counter("snne_guard_money", meaning, ["policy"])
        meaning = "Requests that the upstream failed."
        self._failures = counter("snne_guard_upstream_errors", meaning, ["status"])

    def upstream_error(self, status: int | str, /) -> None:
        """Count a request that the upstream failed.

        Args:
            status: Its HTTP status, or one word such as ``"timeout"``.
        """
        self._failures.labels(status).inc()

    def count(self, policy: str, assessment: Assessment, /) -> None:
        """Count a call of a policy."""
        cost, decision = assessment.cost, assessment.decision or "none"
        self._decisions.labels(policy, decision).inc()
        if assessment.uncertainty is not None:
            self._uncertainty.labels(policy).observe(assessment.uncertainty)
        self._seconds.labels(policy).observe(cost.seconds)
        for kind in _TOKENS:
            self._tokens.labels(policy, kind).inc(getattr(cost, f"{kind}_tokens"))
        if cost.money is not None:
            self._money.labels(policy).inc(cost.money)
        call = _call(policy, assessment, texts=self._show_texts)
        minute = int(call["at"] // 60)
        with self._lock:
            self._calls.append(call)
            if not self._minutes or self._minutes[-1][0] != minute:
                self._minutes.append((minute, Counter()))
            self._minutes[-1][1][decision] += 1

    def state(self) -> dict[str, Any]:
        """Return what the live page shows, as plain JSON; calls, the oldest first."""
        now = int(time.time() // 60)
        with self._lock:
            calls = list(self._calls)
            minutes = [
                [60 * minute, dict(counts)]
                for minute, counts in self._minutes
                if minute > now - MINUTES_KEPT
            ]
        reached, tokens = _sums(self._uncertainty, "le"), _sums(self._tokens, "kind")
        steps = pairwise([0.0, *(reached[str(tenth)] for tenth in _TENTHS)])
        money = _sums(self._money, "policy")
        return {
            "calls": calls,
            "now": 60 * now,
            "minutes": minutes,
            "started": self._started,
            "total": sum(_sums(self._decisions, "policy").values()),
            "uncertainty": [upper - lower for lower, upper in steps],
            "tokens": tokens["prompt"] + tokens["completion"],
            "money": sum(money.values()) if money else None,
            "upstream_errors": _sums(self._failures, "status"),
        }

    def text(self) -> str:
        """Return every counter in Prometheus' text format, version 0.0.4."""
        return prometheus.generate_latest(self._registry).decode()


def _sums(family: MetricWrapperBase, label: str) -> defaultdict[str, float]:
    """Return the values of a counter, or the buckets of a histogram, by a label."""
    sums: defaultdict[str, float] = defaultdict(float)
    for metric in family.collect():
        for sample in metric.samples:
            if sample.name.endswith(("_total", "_bucket")):
                sums[sample.labels[label]] += sample.value
    return sums


def _call(policy: str, assessment: Assessment, *, texts: bool) -> dict[str, Any]:
    cost, answer = assessment.cost, assessment.answer
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
    if assessment.spans is not None:
        given = assessment.span_threshold
        limit = SPAN_THRESHOLD if given is None else given
        call["sentences"] = len(assessment.spans)
        call["marks"] = [
            (span.start, span.end)
            for span in assessment.spans
            if span.uncertainty > limit
        ]
    if texts:
        call["question"] = _cut(assessment.question or "")
        call["answer"] = _cut("" if answer is None else answer.text)
    return call


def _cut(text: str) -> str:
    return text if len(text) <= TEXT_KEPT else f"{text[:TEXT_KEPT]}…"


# -- The live page ---------------------------------------------------------------------


def live_routes(metrics: Metrics) -> list[Route]:
    """Return the routes ``/metrics``, ``/snne/live`` and ``/snne/events``.

    Whoever reaches them sees the figures of every policy, and the texts that the
    metrics keep: they ask for no key.
    """
    page = files("snne_guard.server").joinpath("page.html").read_text("utf-8")
    page_headers = {**_HEADERS, "Content-Security-Policy": _content_policy(page)}

    async def text(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def live(_: Request) -> Response:
        return HTMLResponse(page, headers=page_headers)

    async def events(_: Request) -> Response:
        # The last header asks nginx not to hold events back.
        headers = {**_HEADERS, "X-Accel-Buffering": "no"}
        return StreamingResponse(
            _events(metrics), media_type="text/event-stream", headers=headers
        )

    return [
        Route("/metrics", text),
        Route("/snne/live", live),
        Route("/snne/events", events),
    ]


async def _events(metrics: Metrics) -> AsyncIterator[str]:
    """Yield the state whenever it has changed, which it does at least every minute."""
    sent = None
    while not metrics.closed:
        state = json.dumps(metrics.state())
        if state != sent:
            yield f"data: {state}\n\n"
            sent = state
        await asyncio.sleep(LOOK_SECONDS)


def _content_policy(page: str) -> str:
    """Allow the page's own script and style, by their hashes, and nothing else."""
    script, style = (
        base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        for tag in ("script", "style")
        for source in re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    )
    return (
        f"default-src 'none'; script-src 'sha256-{script}'; "
        f"style-src 'sha256-{style}'; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
