"""Which replies of a response set are compared, and why others are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from snne_guard.types import Sample

__all__ = ["Members", "select_members"]

_SHORT = 4_000
"""Characters in all that built-in similarities compare in a few milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Members:
    """The replies that are compared.

    Attributes:
        texts: What is compared of each, the answer first where it is a member.
        token_logprobs: For each the log-probabilities of its tokens, None if unknown.
        samples: The samples among them, the answer not.
        answer_readable: Whether the answer has something to compare at all.
        calls: Whether calls of tools are among them.
        reasons: Why other replies were left out, as reason codes.
    """

    texts: tuple[str, ...] = field(repr=False)
    token_logprobs: tuple[tuple[float, ...] | None, ...] = field(repr=False)
    samples: tuple[Sample, ...]
    answer_readable: bool
    calls: bool
    reasons: tuple[str, ...]

    @property
    def are_short(self) -> bool:
        """Whether comparing them takes next to no time."""
        return sum(map(len, self.texts)) <= _SHORT


def select_members(
    answer: Sample, samples: Sequence[Sample], /, *, include_answer: bool
) -> Members:
    """Return the replies that can be compared.

    A truncated answer is compared as it is, since the application gets it so; a
    truncated sample leaves the set. Where the answer calls tools, a sample in prose
    differs from it; where it does not, a sample that calls tools leaves the set.
    """
    reasons: list[str] = []
    problem = _problem(answer, calls=True)
    if problem is not None:
        reasons.append(f"answer_{problem}")
    used: list[Sample] = []
    for sample in samples:
        left_out = _problem(sample, calls=answer.tool_calls is not None)
        if left_out is None:
            used.append(sample)
        else:
            reasons.append(f"{left_out}_samples")
    members = [answer, *used] if include_answer else used
    if len({one.model for one in (answer, *used) if one.model}) > 1:
        reasons.append("mixed_models")
    return Members(
        texts=tuple(map(_compared, members)),
        token_logprobs=tuple(one.token_logprobs for one in members),
        samples=tuple(used),
        answer_readable=problem in {None, "truncated"},
        calls=any(one.tool_calls is not None for one in members),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _problem(sample: Sample, *, calls: bool) -> str | None:
    """Return why a reply cannot be compared, as the stem of a reason code."""
    if sample.refused:
        return "refused"
    if sample.tool_calls is not None:
        return None if calls else "tool_call"
    if sample.unreadable or not sample.text.strip():
        return "unreadable"
    return "truncated" if sample.truncated else None


def _compared(sample: Sample) -> str:
    """Return what is compared of a reply: its calls where it makes any."""
    return sample.text if sample.tool_calls is None else sample.tool_calls
