"""Observations of models that behave, and of some that do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from snne_guard.sampling.collect import Reply
from snne_guard.sampling.diagnosis import CHECKS, diagnose
from snne_guard.sampling.evidence import Case, Finding
from snne_guard.sampling.probes import Observations, Seen
from snne_guard.types import Cost, Sample

__all__ = [
    "BAD_REQUEST",
    "BRIEF",
    "COUNTED",
    "HOT",
    "LATE",
    "LONG",
    "NAMED",
    "OTHER_LIMIT",
    "SEEDED",
    "WHOLE",
    "failed",
    "found",
    "good",
    "repeating",
    "seen",
]


COUNTED = Cost(calls=1, prompt_tokens=9, completion_tokens=12)
BAD_REQUEST = NotImplementedError("no")


def seen(
    *texts: str,
    logprobs: tuple[float, ...] | None = (-2.0,) * 6,
    cost: Cost = COUNTED,
    cut: bool = True,
    **options: Any,
) -> Seen:
    finish = "length" if cut else "stop"
    samples = tuple(
        Sample(text=text, token_logprobs=logprobs, finish_reason=finish)
        for text in texts
    )
    return Seen(reply=Reply(samples=samples, cost=cost), **options)


def failed(error: BaseException) -> list[Seen]:
    return [Seen(error=error)]


def good(**parts: Any) -> Observations:
    """Return what a model that behaves is seen to do, some parts as given."""
    wrote: dict[str, Any] = {
        "first": seen("one a"),
        "short": [seen("two b"), seen("ten c")],
        "cold": [seen("likely", logprobs=(-0.5,) * 6)] * 2,
        "batch": [
            seen("three", "four", "five", cost=replace(COUNTED, completion_tokens=18))
        ],
        "seeded": [seen("six"), seen("six"), seen("seven")],
    }
    return Observations(**(wrote | parts))


def repeating(text: str = "one two three", **parts: Any) -> Observations:
    """Return what a model is seen to do that decodes greedily, parts as given."""
    short = parts.get("short", [seen(text.split(maxsplit=1)[0])] * 2)
    again = [seen(*short[0].texts)]
    greedy: dict[str, Any] = {
        "first": seen(text),
        "short": short,
        "cold": again,
        "batch": again,
    }
    return Observations(**(greedy | parts))


def found(check: str, observations: Observations, **known: Any) -> Finding:
    findings = diagnose(Case(seen=observations, **known))
    assert [finding.check for finding in findings] == list(CHECKS)
    return findings[CHECKS.index(check)]


# --- replies that agree --------------------------------------------------------------

HOT: dict[str, Any] = {"cold": [seen("likely")]}
WHOLE: dict[str, Any] = {"short": [seen("one two three")] * 2}
BRIEF: dict[str, Any] = {"first": seen("x", cut=False), "short": [seen("x")] * 2}
OTHER_LIMIT: dict[str, Any] = {"short": [seen("ten four")] * 2}
NAMED: dict[str, Any] = {
    "first": seen("x", response_id="1"),
    "short": [seen("x", response_id="1"), seen("x", response_id=None)],
    "other": [seen("else", response_id="2")],
}


LONG = seen("one two three", cost=replace(COUNTED, completion_tokens=50))
SEEDED: dict[str, Any] = {"seeded": [seen("a"), seen("a"), seen("b")]}
LATE: dict[str, Any] = {"short": [seen("one"), Seen(error=TimeoutError())]}
