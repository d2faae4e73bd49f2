"""Examining a guard in both ways, and what a model that behaves is found to do."""

from __future__ import annotations

import asyncio
from typing import Any

from snne_guard import SNNEGuard
from snne_guard.assess.preflight import Preflight

__all__ = ["GOOD", "WAYS", "examined", "statuses"]

WAYS = ("preflight", "apreflight")
GOOD = {
    "variation": "works",
    "temperature": "works",
    "n": "works",
    "logprobs": "works",
    "seed": "works",
    "cache": "works",
    "max_tokens": "works",
    "usage": "works",
}


def examined(guard: SNNEGuard, way: str, *args: Any, **options: Any) -> Preflight:
    if way == "preflight":
        return guard.preflight(*args, **options)
    return asyncio.run(guard.apreflight(*args, **options))


def statuses(report: Preflight) -> dict[str, str]:
    return {finding.check: finding.status for finding in report.findings}
