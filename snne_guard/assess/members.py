"""Which replies of a response set are compared, and why others are not."""

from __future__ import annotations

from collections.abc import Callable

from snne_guard.decision import Policy
from snne_guard.types import ResponseSet, Sample, ToolCalls

__all__ = ["ToolRule", "members_of", "unusable"]

ToolRule = ToolCalls | Policy | Callable[[Sample], ToolCalls | Policy]
"""What is done with an answer that calls tools: ``"skip"``, ``"score"``, a policy of
its own (it is scored then), or a function that says which of these holds for it.
Where the function has an attribute ``may_withhold`` that is false, no answer is held
back for its sake."""


def unusable(sample: Sample, *, tool_calls: ToolRule) -> str | None:
    """Return why a reply cannot be compared with others, None if it can.

    Args:
        sample: The reply.
        tool_calls: Whether calls of tools are compared.

    Returns:
        ``"refused"``, ``"tool_calls"``, ``"unread"``, ``"reasoning_only"``,
        ``"empty"`` or ``"truncated"``.
    """
    if sample.refused:
        return "refused"
    if sample.tool_calls is not None and tool_calls == "skip":
        return "tool_calls"
    if sample.unread:
        return "unread"
    if sample.tool_calls is None and not sample.text.strip():
        return "reasoning_only" if sample.reasoned else "empty"
    return "truncated" if sample.truncated else None


_SAMPLE_REASONS = {
    "refused": "refused_samples",
    "tool_calls": "tool_call_samples",
    "unread": "unread_samples",
    "truncated": "truncated_samples",
    "reasoning_only": "reasoning_only_samples",
    "empty": "empty_samples",
}
_ANSWER_REASONS = {
    "refused": "answer_refused",
    "tool_calls": "tool_calls",
    "unread": "answer_unread",
    "truncated": "answer_truncated",
    "reasoning_only": "answer_reasoning_only",
    "empty": "answer_empty",
}


def members_of(
    responses: ResponseSet, *, tool_calls: ToolRule
) -> tuple[list[Sample] | None, tuple[str, ...]]:
    """Return the members that count, None where the answer itself does not.

    With them the reasons, as codes, for which others left the set.

    Args:
        responses: The answer and its samples.
        tool_calls: Whether calls of tools are compared.
    """
    answer = responses.answer
    used: list[Sample] = []
    reasons: list[str] = []
    for sample in responses.samples:
        problem = unusable(sample, tool_calls=tool_calls)
        if problem is None:
            used.append(sample)
        else:
            reasons.append(_SAMPLE_REASONS[problem])
    if len({member.model for member in (answer, *used) if member.model}) > 1:
        reasons.append("mixed_models")
    problem = unusable(answer, tool_calls=tool_calls)
    if problem is not None:
        reasons.append(_ANSWER_REASONS[problem])
    # A cut-off answer is what the application gets, so it stays and is compared.
    if problem not in {None, "truncated"}:
        return None, tuple(reasons)
    return [answer, *used] if responses.include_answer else used, tuple(reasons)
