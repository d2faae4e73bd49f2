"""Whether samples agree that are too unlikely to agree by chance."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from snne_guard.types import Sample

__all__ = ["agree_suspiciously"]

_CHANCE = math.log(1e-6)
_TRUNCATION = math.log(1 / 0.9)
"""What top-p sampling with p of at least 0.9 may add to a token's log-probability,
which servers report before truncation (arXiv 1904.09751, section 3.1)."""


def agree_suspiciously(samples: Sequence[Sample], /) -> bool:
    """Return whether equal samples came by something other than chance.

    A cache, an ignored temperature or a fixed seed brings the same words again and
    again, which looks like certainty. Independent draws give some text of probability
    p at least k times in n with a probability of at most C(n, k) p^(k - 1).

    Args:
        samples: Draws at temperature 1 or above, the answer not among them.

    Returns:
        True where that is below one in a million for some text; False where its
        log-probabilities are unknown.

    Example:
        >>> likely = Sample(text="Paris", token_logprobs=(-0.01,))
        >>> unlikely = Sample(text="A long tale", token_logprobs=(-9.0, -8.0, -7.0))
        >>> agree_suspiciously([likely, likely]), agree_suspiciously([unlikely] * 2)
        (False, True)
    """
    groups: defaultdict[str, list[Sample]] = defaultdict(list)
    for sample in samples:
        groups[sample.tool_calls or sample.text].append(sample)
    return any(_improbable(group, len(samples)) for group in groups.values())


def _improbable(group: Sequence[Sample], drawn: int) -> bool:
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
