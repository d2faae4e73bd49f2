"""What is known of a model that was examined, and why its replies agree if they do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import combinations, takewhile
from typing import Any, Literal

from snne_guard.sampling.agreement import agreement_logprob
from snne_guard.sampling.probes import Abilities, Observations, Seen, texts_of
from snne_guard.similarity.tokens import unicode_tokens

__all__ = ["Case", "Cause", "Finding", "Status"]

Status = Literal["works", "ignored", "rejected", "missing", "broken", "unknown"]
"""What becomes of a request: it is done, silently not done, refused, impossible, done
wrongly, or there is no telling."""

Cause = Literal["varied", "chance", "greedy", "cache", "seed", "unclear"]
"""Why separate requests brought the same words; ``varied`` where they did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What, one of ``CHECKS``.
        status: How the model behaves.
        message: The same in words, with the evidence.
        fix: What to do about it, empty where nothing is to be done.
        trusted: Whether samples can be trusted as far as this goes.
    """

    check: str
    status: Status
    message: str
    fix: str = ""
    trusted: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Case:
    """Everything that is known of a model.

    Attributes:
        seen: What came of the requests; at least the first was answered.
        abilities: What the model's class can do.
        temperature: The guard's sampling temperature.
        rejected: Parameters that the provider refused.
        own_cache: Whether the application has a cache of its own for this model.
    """

    seen: Observations
    abilities: Abilities = field(default_factory=Abilities)
    temperature: float = 1.0
    rejected: frozenset[str] = frozenset()
    own_cache: bool = False

    @cached_property
    def warm(self) -> list[str]:
        """Separate replies to one prompt at the guard's temperature."""
        return texts_of(self.seen.warm)

    @cached_property
    def cold(self) -> list[str]:
        """Replies at temperature 0."""
        return texts_of(self.seen.cold)

    @cached_property
    def choices(self) -> list[str]:
        """Replies that came in one request."""
        return texts_of(self.seen.batch)

    @cached_property
    def seeded(self) -> list[str]:
        """Replies drawn with the same seed twice, then with another one."""
        return texts_of(self.seen.seeded)

    @cached_property
    def cause(self) -> Cause:
        """Why separate replies agree."""
        if not self._agree:
            return "varied"
        if self.same_response and not self.seen.is_written_anew:
            return "cache"
        if len(set(texts_of(self.seen.other))) > 1:
            return "chance"
        if not self.seen.begins_alike:
            return "cache"  # it goes by the whole request, the token limit too
        return self._cause_of_beginning()

    @property
    def _agree(self) -> bool:
        alone = len(self.seen.short) < _PAIR or not self.seen.short[1].texts
        return self.seen.repeats or (alone and self.seen.begins_alike)

    def _cause_of_beginning(self) -> Cause:
        first, short = self.warm[:_PAIR]
        drawn_hot = bool(self.cold) and short not in self.cold
        if first == short:
            # It did not fit into half the limit, so it was not written anew.
            if self.heeds_limit:
                return "cache"
            return "seed" if drawn_hot else "unclear"
        if drawn_hot or self.choices_differ:
            return "seed"
        return "greedy" if self.cold else "unclear"

    @property
    def heeds_limit(self) -> bool | None:
        """Whether the first reply keeps to its token limit, None if it ended before."""
        reply = self.seen.first.reply
        if reply is None:
            return None
        if reply.cost.completion_tokens > self.seen.max_tokens:
            return False
        return True if any(sample.truncated for sample in reply.samples) else None

    @property
    def same_response(self) -> bool:
        """Whether two responses have one name, on a server that gives several."""
        seen = self.seen
        everything = [*seen.warm, *seen.cold, *seen.batch, *seen.other, *seen.seeded]
        warm, names = (
            [one.response_id for one in part if one.response_id]
            for part in (seen.warm, everything)
        )
        return len(set(warm)) < len(warm) and len(set(names)) > 1

    @property
    def seeds_differ(self) -> bool:
        """Whether replies with different seeds differ."""
        return len(set(self.seeded)) > 1

    @property
    def choices_differ(self) -> bool:
        """Whether the replies of one request differ."""
        return len(set(self.choices)) > 1

    @property
    def colder_is_alike(self) -> bool:
        """Whether two replies at temperature 0 begin alike as no two others do."""
        pairs = combinations([*self.warm, *self.choices], 2)
        return _beginning(*self.cold) > max(_beginning(*pair) for pair in pairs)

    @property
    def colder_is_likelier(self) -> bool:
        """Whether every reply at temperature 0 is likelier than those beside it."""
        cold = _means(self.seen.cold)
        warm = _means([*self.seen.warm, *self.seen.batch])
        return bool(cold and warm) and min(cold) > max(warm)

    @property
    def chance(self) -> str:
        """How rare the agreement is by its own log-probabilities, if it is rare."""
        bounds = [
            agreement_logprob(sample.token_logprobs, alike=2, drawn=2)
            for one in self.seen.short
            for sample in one.samples
            if sample.token_logprobs is not None
        ]
        rare = max(bounds, default=0.0)
        if rare > _RARE:
            return ""
        return f"; by their own log-probabilities in one case of 10^{-rare / _TEN:.0f}"


_PAIR = 2
_TEN = math.log(10)
_RARE = math.log(1e-3)


def _means(seen: Sequence[Seen]) -> list[float]:
    means = [sample.mean_logprob for one in seen for sample in one.samples]
    return [mean for mean in means if mean is not None]


def _beginning(a: str, b: str) -> int:
    """Return how many words two texts begin with alike.

    Not characters: words of one kind share some by chance.
    """
    pairs = zip(unicode_tokens(a), unicode_tokens(b), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
