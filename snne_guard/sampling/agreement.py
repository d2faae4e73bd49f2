"""Agreement that chance does not produce: draws that cannot have been independent."""

from __future__ import annotations

import math
from collections.abc import Sequence

from snne_guard.types import Sample

__all__ = ["agreement_logprob", "suspect", "words_of"]

_SIGNIFICANCE = math.log(1e-6)
"""Agreement of a smaller probability is no chance: one call in a million or fewer."""

_KEPT_MASS = 0.9
"""Share of the distribution that truncated sampling is taken to keep at least.

Servers report log-probabilities before truncation. Top-p sampling with p >= 0.9 draws
no token with more than 1 / 0.9 of its probability (arXiv 1904.09751, section 3.1)."""


def words_of(member: Sample) -> str:
    """Return what is compared of a member: its calls where it makes any."""
    # What an answer that calls tools does is in the calls, not in the words beside.
    return member.text if member.tool_calls is None else member.tool_calls


def agreement_logprob(logprobs: Sequence[float], *, alike: int, drawn: int) -> float:
    """Return how improbable it is that independent draws give one text so often.

    That any text of probability p or less comes at least ``alike`` times among
    ``drawn`` independent draws has probability at most
    C(drawn, alike) p^(alike - 1): the union bound over the sets of draws, the first
    of each being free to be any text.

    Args:
        logprobs: Natural log-probability of each token of the text, at temperature 1.
        alike: Draws that are byte for byte the same.
        drawn: Draws in all.

    Returns:
        An upper bound of the natural log-probability, with the log-probabilities
        raised by what truncated sampling may add; 0 or more where it says nothing.

    Example:
        >>> round(agreement_logprob([-3.0, -4.0], alike=4, drawn=4), 2)
        -20.37
        >>> agreement_logprob([-0.05, -0.01], alike=9, drawn=9)
        0.0
    """
    slack = -math.log(_KEPT_MASS)
    text = sum(min(0.0, logprob + slack) for logprob in logprobs)
    return math.log(math.comb(drawn, alike)) + (alike - 1) * text


def suspect(samples: Sequence[Sample], *, temperature: float = 1.0) -> bool:
    """Return whether samples agree that by their own log-probabilities could not.

    Something else than chance then made them alike: a cache, an ignored temperature,
    a fixed seed. Tokens that were nearly certain count for nothing, so short certain
    answers may agree as often as they like.

    Args:
        samples: Draws that are to be independent of one another.
        temperature: What they were drawn at. Below 1 a draw is more probable than
            its log-probability says, by an unknown amount, and nothing is suspect.
    """
    if temperature < 1:
        return False
    alike: dict[str, list[Sample]] = {}
    for sample in samples:
        alike.setdefault(words_of(sample), []).append(sample)
    return any(
        _improbable(group, drawn=len(samples))
        for group in alike.values()
        if len(group) > 1
    )


def _improbable(group: Sequence[Sample], *, drawn: int) -> bool:
    # Draws of one text may be cut into tokens, and rounded, differently.
    bounds = [
        agreement_logprob(sample.token_logprobs, alike=len(group), drawn=drawn)
        for sample in group
        if sample.token_logprobs is not None
    ]
    return bool(bounds) and max(bounds) < _SIGNIFICANCE
