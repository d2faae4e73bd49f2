"""Counts what the guards of one process decide, for Prometheus and the live page."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import threading
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator
from functools import partial
from importlib.resources import files
from typing import Any

import prometheus_client as prometheus
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route

from snne_guard.types import Assessment

CALLS_KEPT = 100
MINUTES_KEPT = 60
TEXT_KEPT = 10_000  # characters of a question or an answer
FIELDS_KEPT = 20  # paths of uncertain fields
SAMPLES_KEPT, SAMPLE_KEPT = 20, 1_000  # characters of each
MODELS_NAMED = 50  # further ones are counted as ``other``
LOOK_SECONDS = 0.5  # between updates of the live page

_TENTHS = tuple(tenth / 10 for tenth in range(1, 11))
_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_TOKENS = ("prompt", "cached", "completion", "reasoning")
_FAILED = frozenset({"answer_failed", "cancelled"})
_OTHER = "other"
_NAME = re.compile(r"[\w.:/@+-]{1,100}", re.ASCII)
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
_CONTENT_POLICY = (
    "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; "
    "connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Allows the page's own script and style, and nothing else."""


class Metrics:
    """What the guards of one process did since it started.

    It is safe to share between threads, and of bounded size: counters, the last hour
    minute by minute, and the last hundred calls, with texts only by ``show_texts``. A
    model has a label once it has answered; what clients make up is ``other``.

    Attributes:
        closed: Whether the event streams should end, so that the server can stop.
        thresholds: The largest u that each policy with a threshold accepts.
    """

    def __init__(self, *, show_texts: bool = False) -> None:
        self.closed = False
        self.thresholds: dict[str, float] = {}
        self._show_texts = show_texts
        self._lock = threading.Lock()
        self._models: set[str] = set()
        self._calls: deque[dict[str, Any]] = deque(maxlen=CALLS_KEPT)
        self._minutes: deque[tuple[int, defaultdict[str, float]]] = deque(
            maxlen=MINUTES_KEPT
        )
        self._registry = prometheus.CollectorRegistry()  # several servers count apart
        counter = partial(prometheus.Counter, registry=self._registry)
        histogram = partial(prometheus.Histogram, registry=self._registry)
        who = ["policy", "key", "model"]
        meaning = (
            "Guarded calls by what was decided; none: no threshold is set; failed: no "
            "answer was decided on, as the upstream failed or the client left."
        )
        self._decisions = counter("snne_guard_calls", meaning, [*who, "decision"])
        meaning = "Uncertainty u of the scored calls."
        name, by = "snne_guard_uncertainty", ["policy", "model"]
        self._uncertainty = histogram(name, meaning, by, buckets=_TENTHS)
        meaning = "Wall time from the first request to the decision."
        name = "snne_guard_call_seconds"
        self._seconds = histogram(name, meaning, by, buckets=_SECONDS)
        meaning = "Tokens of all draws; prompt includes cached, completion reasoning."
        self._tokens = counter("snne_guard_tokens", meaning, [*who, "kind"])
        meaning = "What the tokens cost at the given prices."
        self._money = counter("snne_guard_money", meaning, who)
        meaning = "Requests that the upstream failed, by the status that clients got."
        self.upstream_errors = counter(
            "snne_guard_upstream_errors", meaning, ["status"]
        )
        meaning = "Requests by address and status; 499: the client left."
        by = ["route", "status"]
        self.responses = counter("snne_guard_responses", meaning, by)
        meaning = "Lines of the decision log that could not be written."
        self.lost_lines = counter("snne_guard_decision_log_failures", meaning)

    def count(self, policy: str, assessment: Assessment, /, *, key: str = "") -> None:
        """Count a call of a policy and of a key."""
        cost, decision = assessment.cost, outcome_of(assessment)
        u, money = assessment.uncertainty, cost.money
        model = self._label(assessment)
        self._decisions.labels(policy, key, model, decision).inc()
        if u is not None:
            self._uncertainty.labels(policy, model).observe(u)
        self._seconds.labels(policy, model).observe(cost.seconds)
        for kind in _TOKENS:
            tokens = getattr(cost, f"{kind}_tokens")
            self._tokens.labels(policy, key, model, kind).inc(tokens)
        if money is not None:
            self._money.labels(policy, key, model).inc(money)
        now = time.time()
        call = {"at": now, "policy": policy, **assessment.to_metadata()}
        if found := call.pop("fields", None):  # there may be thousands
            limit = assessment.field_threshold
            limit = 0.5 if limit is None else limit
            doubted = [each["path"] for each in found if each["uncertainty"] > limit]
            call["n_fields"], call["n_uncertain_fields"] = len(found), len(doubted)
            call["uncertain_fields"] = [path[:100] for path in doubted[:FIELDS_KEPT]]
        call["outcome"] = decision
        if self._show_texts:
            answer = assessment.answer
            call["question"] = (assessment.question or "")[:TEXT_KEPT]
            call["answer"] = ("" if answer is None else answer.text)[:TEXT_KEPT]
            samples = assessment.samples[:SAMPLES_KEPT]
            call["samples"] = [sample.text[:SAMPLE_KEPT] for sample in samples]
        with self._lock:
            self._calls.append(call)
            minute = int(now // 60)
            if not self._minutes or self._minutes[-1][0] != minute:
                self._minutes.append((minute, defaultdict(float)))
            counts = self._minutes[-1][1]
            counts[decision] += 1
            if u is not None:
                counts[f"u{min(int(10 * u), 9)}"] += 1
            if money is not None:
                counts["money"] += money

    def _label(self, assessment: Assessment) -> str:
        # Some upstreams answer under whatever name they are asked by.
        name = model_name(assessment.answer and assessment.answer.model)
        with self._lock:
            if len(self._models) < MODELS_NAMED:
                self._models.add(name)
            return name if name in self._models else _OTHER

    def state(self) -> dict[str, Any]:
        """Return the live page's content as plain JSON; the oldest calls first.

        Each minute has its calls by decision, those with u in each tenth from ``u0`` to
        ``u9``, and their money.
        """
        now = int(time.time() // 60)
        with self._lock:
            minutes = [
                [60 * minute, dict(counts)]
                for minute, counts in self._minutes
                if minute > now - MINUTES_KEPT
            ]
            calls = list(self._calls)
        told = {"calls": calls, "minutes": minutes, "thresholds": self.thresholds}
        return {**told, "now": 60 * now}

    def text(self) -> str:
        """Return every counter in Prometheus' text format, version 0.0.4."""
        return prometheus.generate_latest(self._registry).decode()


def outcome_of(assessment: Assessment, /) -> str:
    """Return the decision, or why there is none: ``none`` without a threshold."""
    if assessment.decision is not None:
        return assessment.decision
    failed = _FAILED.intersection(assessment.reasons)
    return "failed" if failed or assessment.answer is None else "none"


def model_name(name: object, /) -> str:
    """Return a model's name if it looks like one, else ``other``: clients choose it."""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else _OTHER


def live_routes(metrics: Metrics) -> list[Route]:
    """Return the routes ``/metrics``, ``/snne/live`` and ``/snne/events``.

    Whoever reaches them sees the figures of every policy, and the texts that the
    metrics keep: they ask for no key.
    """
    page = files("snne_guard.server").joinpath("page.html").read_text("utf-8")

    async def text(_: Request) -> Response:
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    async def live(_: Request) -> Response:
        nonce = secrets.token_urlsafe()
        policy = {"Content-Security-Policy": _CONTENT_POLICY.format(nonce)}
        return HTMLResponse(page.replace("NONCE", nonce), headers=_HEADERS | policy)

    async def events(_: Request) -> Response:
        return StreamingResponse(
            _events(metrics), media_type="text/event-stream", headers=_HEADERS
        )

    served = {"/metrics": text, "/snne/live": live, "/snne/events": events}
    return [Route(path, handle) for path, handle in served.items()]


async def _events(metrics: Metrics) -> AsyncIterator[str]:
    """Yield the state whenever it has changed, which it does at least every minute."""
    sent = None
    while not metrics.closed:
        state = json.dumps(metrics.state())
        if state != sent:
            yield f"data: {state}\n\n"
            sent = state
        await asyncio.sleep(LOOK_SECONDS)
