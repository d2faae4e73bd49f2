"""What a request will take, as far as earlier ones tell: counts of tokens, averaged."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snne_guard.types import Cost

__all__ = ["Amount", "Estimates", "tokens_of"]

_WEIGHT = 0.2  # of the newest observation in a moving average
_CHARACTERS_A_TOKEN = 3  # where a provider counts nothing; rather too few than too many


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens, kept apart by what they cost; whole numbers, so that sums are exact.

    Attributes:
        prompt: Tokens read, those from a cache among them.
        cached: Tokens read from a cache.
        completion: Tokens written.
    """

    prompt: int = 0
    cached: int = 0
    completion: int = 0

    @classmethod
    def of(cls, cost: Cost) -> Amount:
        """Return the tokens of a cost."""
        return cls(cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens)

    @property
    def tokens(self) -> int:
        """All tokens, read and written."""
        return self.prompt + self.completion

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.prompt + other.prompt,
            self.cached + other.cached,
            self.completion + other.completion,
        )

    def __sub__(self, other: Amount) -> Amount:
        return self + Amount(-other.prompt, -other.cached, -other.completion)

    def cost(self) -> Cost:
        """Return it as a cost."""
        return Cost(
            prompt_tokens=self.prompt,
            cached_tokens=self.cached,
            completion_tokens=self.completion,
        )


class Estimates:
    """Moving averages over the requests of one guard.

    Example:
        >>> estimates = Estimates()
        >>> seen = Cost(calls=1, prompt_tokens=50, completion_tokens=8)
        >>> estimates.learn(seen, characters=100, replies=1)
        >>> estimates.prompt(300), estimates.completion
        (150, 8)
    """

    def __init__(self) -> None:
        self._per_character: float | None = None
        self._completion: float | None = None
        self._cached: float | None = None
        self._together = 1

    def learn(self, cost: Cost, *, characters: int, replies: int) -> None:
        """Take in what some requests with the same prompt took.

        Args:
            cost: What the provider counted; nothing is learnt where it did not.
            characters: Length of the prompt.
            replies: Replies that they brought, together.
        """
        if not cost.calls or not cost.prompt_tokens:
            return
        prompt = cost.prompt_tokens / cost.calls / max(1, characters)
        self._per_character = _moved(self._per_character, prompt)
        if replies:
            completion = cost.completion_tokens / replies
            self._completion = _moved(self._completion, completion)

    def learn_samples(
        self, cost: Cost, *, characters: int, replies: int, batch: int
    ) -> None:
        """Take in what requests for samples took.

        Args:
            cost: What the provider counted.
            characters: Length of the prompt.
            replies: Samples that they brought, together.
            batch: Replies that the provider may give in one request, by what is known.
        """
        self.learn(cost, characters=characters, replies=replies)
        if not cost.calls or not cost.prompt_tokens:
            return
        share = min(1.0, cost.cached_tokens / cost.prompt_tokens)
        self._cached = _moved(self._cached, share)
        seen = max(self._together, replies // cost.calls)
        self._together = min(seen, batch)

    def prompt(self, characters: int) -> int | None:
        """Return the tokens of a prompt, None before anything was seen."""
        if self._per_character is None:
            return None
        return math.ceil(self._per_character * max(1, characters))

    @property
    def completion(self) -> int | None:
        """Tokens of a reply, None before anything was seen."""
        return None if self._completion is None else math.ceil(self._completion)

    def together(self, batch: int) -> int:
        """Return how many of ``batch`` replies were seen to come in one request."""
        return min(self._together, batch)

    def cached(self, prompt: int) -> int:
        """Return how many tokens of a sample's prompt come from a cache."""
        return math.floor(prompt * (self._cached or 0.0))


def tokens_of(characters: int) -> int:
    """Return a guess at the tokens of a text where a provider counts none."""
    return max(1, math.ceil(characters / _CHARACTERS_A_TOKEN))


def _moved(average: float | None, new: float) -> float:
    return new if average is None else average + _WEIGHT * (new - average)
