"""The reply set: which replies are scored, and why others are not."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from snne_guard.engine.reading import canonical_calls, json_object
from snne_guard.types import Reply

_SHORT = 4_000
"""Characters in all that built-in similarities compare in a few milliseconds."""

_CHANCE = math.log(1e-6)
_TRUNCATION = math.log(1 / 0.9)
"""What top-p sampling with p of at least 0.9 may add to a token's log-probability,
which servers report before truncation (arXiv 1904.09751, section 3.1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplySet:
    """The replies that are scored.

    Attributes:
        texts: What is compared of each, the answer first where it counts.
        token_logprobs: Log-probabilities of each one's tokens, None if unknown.
        own_samples: The samples of the guarded model among them, the answer not.
        others: The samples of other models.
        answer_readable: Whether the answer has something to compare at all.
        has_tool_calls: Whether one of them calls tools.
        has_logprobs: Whether the log-probabilities of all are known.
        agrees_suspiciously: Whether equal samples came by something other than chance,
            if they were drawn at temperature 1 or above.
        are_short: Whether comparing them takes next to no time.
        reasons: Why other replies were left out, as reason codes.
    """

    texts: tuple[str, ...] = field(repr=False)
    token_logprobs: tuple[tuple[float, ...] | None, ...] = field(repr=False)
    own_samples: tuple[Reply, ...]
    others: tuple[Reply, ...]
    answer_readable: bool
    has_tool_calls: bool
    has_logprobs: bool
    agrees_suspiciously: bool
    are_short: bool
    reasons: tuple[str, ...]

    @property
    def samples(self) -> tuple[Reply, ...]:
        """The samples among them, those of other models last."""
        return (*self.own_samples, *self.others)


def reply_set_of(
    answer: Reply,
    samples: Sequence[Reply],
    others: Sequence[Reply] = (),
    /,
    *,
    include_answer: bool,
    by_form: bool = False,
) -> ReplySet:
    """Return the replies that can be compared; those of other models come last.

    A truncated answer is compared as it is, since the application gets it so; a
    truncated sample leaves the set. Where the answer calls tools, a sample in prose
    differs from it; where it does not, a sample that calls tools leaves the set. Where
    one reply came twice, a cache has answered: then no sample of the guarded model
    counts. Other models' replies are left out without a reason of their own; with
    ``by_form`` calls and JSON are forms of one answer, of which each has its own.
    """
    reasons: list[str] = []
    problem = _problem(answer, tool_calls_allowed=True)
    if problem is not None:
        reasons.append(f"answer_{problem}")
    used: list[Reply] = []
    calls = answer.tool_calls is not None
    for sample in samples:
        left_out = _problem(sample, tool_calls_allowed=calls)
        if left_out is None:
            used.append(sample)
        elif left_out == "unreadable" and sample.view is not None:
            reasons.append("view_unreadable")
        else:
            reasons.append(f"{left_out}_samples")
    if _came_twice([answer, *used]):
        reasons.append("suspect_agreement")
        used = []
    readable = problem in {None, "truncated"}
    names = {reply.model for reply in (answer, *used) if reply.model}
    if len(names) > 1:
        reasons.append("mixed_models")
    if by_form:
        others = [in_form_of(answer, other) for other in others]
    others = [one for one in others if not _problem(one, tool_calls_allowed=calls)]
    replies = [*([answer] if include_answer and readable else ()), *used, *others]
    texts = [compared_text(reply) for reply in replies]
    logprobs = [reply.token_logprobs for reply in replies]
    return ReplySet(
        texts=(*texts,),
        token_logprobs=(*logprobs,),
        own_samples=(*used,),
        others=(*others,),
        answer_readable=readable,
        has_tool_calls=any(reply.tool_calls is not None for reply in replies),
        has_logprobs=None not in logprobs,
        agrees_suspiciously=agree_suspiciously(used),
        are_short=sum(map(len, texts)) <= _SHORT,
        reasons=tuple(dict.fromkeys(reasons)),
    )


def in_form_of(answer: Reply, other: Reply, /) -> Reply:
    """Return another model's structured reply in the form that the answer has.

    One asks for a structured answer by a call, the other one for JSON text.
    """
    call, other_call = _single_call(answer), _single_call(other)
    if call is not None and other.tool_calls is None:
        said = json_object(other.text)
        if said is None:
            return other
        made = canonical_calls([(call["name"], said)])
        return replace(other, text="", tool_calls=made)
    if other_call is None or not isinstance(other_call["args"], dict):
        return other
    if answer.tool_calls is None:
        text = json.dumps(other_call["args"], ensure_ascii=False)
        return replace(other, text=text, tool_calls=None)
    return replace(other, text="")  # words beside a call, which no parser reads


def _single_call(reply: Reply) -> dict[str, Any] | None:
    """Return the call of a reply that makes one, None for any other."""
    calls = [] if reply.tool_calls is None else json.loads(reply.tool_calls)
    return calls[0] if len(calls) == 1 else None


def _came_twice(replies: Sequence[Reply]) -> bool:
    """Find replies of separate requests that have one id and one text.

    Models repeat themselves, and Ollama draws its ids from 999: one alone says little.
    """
    said = [(each.response_id, compared_text(each)) for each in replies]
    known = [pair for pair in said if pair[0] is not None]
    return len({*known}) < len(known)


def agree_suspiciously(samples: Sequence[Reply], /) -> bool:
    """Recognise equal samples that came by something other than chance.

    A cache, an ignored temperature or a fixed seed brings the same words again and
    again, which looks like certainty. Independent draws at temperature 1 give some text
    of probability p at least k times in n with a probability of at most
    C(n, k) p^(k - 1): here below one in a million. False without log-probabilities.
    """
    groups: defaultdict[tuple[str | None, str], list[Reply]] = defaultdict(list)
    for sample in samples:
        # Another view is another prompt, with other probabilities.
        groups[sample.view, sample.tool_calls or sample.text].append(sample)
    alike = [group for group in groups.values() if len(group) > 1]
    return any(_improbable(group, len(samples)) for group in alike)


def _improbable(group: Sequence[Reply], drawn: int) -> bool:
    # Draws of one text may be split into tokens differently: take the likeliest.
    texts = [
        sum(min(0.0, logprob + _TRUNCATION) for logprob in sample.token_logprobs)
        for sample in group
        if sample.token_logprobs
    ]
    if not texts:
        return False
    alike = len(group)
    return math.log(math.comb(drawn, alike)) + (alike - 1) * max(texts) < _CHANCE


def _problem(reply: Reply, *, tool_calls_allowed: bool) -> str | None:
    """Return the stem of the reason code for a reply that cannot be compared."""
    if reply.refused:
        return "refused"
    if reply.tool_calls is not None and not tool_calls_allowed:
        return "tool_call"
    if reply.unreadable:
        return "unreadable"
    return "truncated" if reply.truncated else None


def compared_text(reply: Reply) -> str:
    """Return the part of a reply to compare: its text, its calls, or both as JSON."""
    if reply.tool_calls is None:
        return reply.text
    if not reply.text.strip():
        return reply.tool_calls
    return f"[{json.dumps(reply.text, ensure_ascii=False)},{reply.tool_calls}]"
