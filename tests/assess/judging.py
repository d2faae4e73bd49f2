"""Response sets and policies to judge by."""

from __future__ import annotations

from typing import Any

from snne_guard.assess import Judge
from snne_guard.decision import Policy, Threshold, Verdict
from snne_guard.types import Assessment, ResponseSet, Sample

__all__ = [
    "CALL",
    "CUT",
    "EMPTY",
    "LYON",
    "OTHER_CALL",
    "PARIS",
    "REFUSED",
    "THOUGHT",
    "TOO_FEW",
    "certain",
    "judged",
    "limited",
]


PARIS, LYON = Sample(text="Paris"), Sample(text="Lyon")
TOO_FEW = ("too_few_samples",)
EMPTY = Sample(text=" \n")
THOUGHT = Sample(text="", reasoned=True)
CUT = Sample(text="Par", finish_reason="length")
REFUSED = Sample(text="I cannot", refused=True)
CALL = Sample(text="", tool_calls='[{"args":{"a":1},"name":"add"}]')
OTHER_CALL = Sample(text="", tool_calls='[{"args":{"a":2},"name":"add"}]')


def certain(text: str, logprob: float, **options: Any) -> Sample:
    return Sample(text=text, token_logprobs=(logprob,), **options)


def judged(
    answer: Sample, *samples: Sample, judge: Judge | None = None, **options: Any
) -> tuple[Assessment, Verdict]:
    settle = options.pop("settle_logprobs", bool)
    responses = ResponseSet(answer=answer, samples=samples, **options)
    judge = Judge(policy=Policy()) if judge is None else judge
    return judge.judge(responses, assessment_id="an id", settle_logprobs=settle)


def limited(threshold: float | Threshold = 0.5, **options: Any) -> Policy:
    fixed = Threshold.fixed(threshold) if isinstance(threshold, float) else threshold
    return Policy(threshold=fixed, **options)
