"""What is known of each request, and where it is written when it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from snne_guard.engine import answer_settings
from snne_guard.evaluation.decision_log import DecisionLog
from snne_guard.evaluation.recorded_calls import drawing_of
from snne_guard.server.metrics import Metrics, model_name
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment

_log = logging.getLogger("snne_guard.server")

_UNSET = dict.fromkeys(("temperature", "top_p", "max_tokens", "stop"))

_PROBED = {"/health", "/ready", "/metrics"}  # asked every few seconds

GONE = 499
"""Status, in logs alone, of a request whose client left before it was answered."""


@dataclass(slots=True, kw_only=True)
class RequestRecord:
    """What is known of one request.

    Attributes:
        id: The request id, the client's own where it sent one.
        method: The HTTP method.
        route: The address as the server knows it; ``other`` for any that it does not.
        key: Name of the key, blank where there is none.
        policy: Name of the policy, blank where none holds.
        status: HTTP status that the client got.
        error: Name of the exception, also inside a stream.
        assessment: The guarded call that it led to.
        fields: What the decision log says of the call besides.
    """

    id: str
    method: str
    route: str = "other"
    key: str = ""
    policy: str = ""
    status: int = GONE
    error: str | None = None
    assessment: Assessment | None = None
    fields: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    started: float = field(default_factory=time.monotonic)
    ended: bool = False


CURRENT: ContextVar[RequestRecord] = ContextVar("request")
"""The request that this task serves."""


def policy_fields(settings: GuardSettings) -> dict[str, Any]:
    """Return the fields of a policy in the decision log, which its calls share."""
    calibration: Any = settings.calibration
    return {
        "n": settings.n,
        "calibration": calibration and calibration.checksum,
        "settings": drawing_of(settings),
    }


def asked_fields(body: Mapping[str, Any], policy: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a call in the decision log, with its ``policy_fields``."""
    names = ("messages", "instructions", "input")
    return {
        **policy,
        "model": model_name(body.get("model")),
        "prompt": {name: body[name] for name in names if name in body},
        "settings": {
            **policy["settings"],
            "model": body.get("model"),
            **answer_settings({**_UNSET, **body}),
        },
    }


class Records:
    """Writes what became of each request to the logs and the metrics."""

    def __init__(self, metrics: Metrics, decisions: DecisionLog | None) -> None:
        self.metrics, self.decisions = metrics, decisions

    async def on_assessment(self, assessment: Assessment, /) -> None:
        """Count a call, as an observer of every guard; its line is written at the end.

        It is async so that it runs in the request's own task.
        """
        record = CURRENT.get()
        record.assessment = assessment
        self.metrics.count(record.policy, assessment, key=record.key)

    async def end(self, record: RequestRecord) -> None:
        """Write what became of a request, once."""
        if record.ended:
            return
        record.ended = True
        call = record.assessment
        self.metrics.responses.labels(record.route, record.status).inc()
        known: dict[str, Any] = {
            "request_id": record.id,
            "method": record.method,
            "route": record.route,
            "status": record.status,
            "seconds": round(time.monotonic() - record.started, 4),
            "key": record.key,
            "policy": record.policy,
            "assessment_id": call and call.id,
            "decision": call and call.decision,
        }
        if record.error is not None:
            failed = {**known, "error": record.error}
            _log.error("request failed", extra={"fields": failed})
        level = logging.DEBUG if record.route in _PROBED else logging.INFO
        _log.log(level, "request", extra={"fields": known})
        if self.decisions is not None and call is not None:
            names = ("request_id", "key", "policy", "status")
            given = {**{name: known[name] for name in names}, **record.fields}
            write = partial(self.decisions.write, call, **given)
            if not await asyncio.to_thread(write):  # a disk may be slow
                self.metrics.lost_lines.inc()
