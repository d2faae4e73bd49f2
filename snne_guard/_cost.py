"""What a guarded call took, and how that adds up."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Cost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a guarded call took, the answer and every sample counted once.

    Attributes:
        calls: Requests that the provider answered.
        attempts: Requests sent, the failed and repeated ones included.
        prompt_tokens: Tokens read, as the provider counts them.
        cached_tokens: Those of them that came from a prompt cache.
        completion_tokens: Tokens written.
        seconds: Wall time from the first request to the decision.
        rounds: Rounds of samples that were sent, one after another.
        samples_saved: Samples that were not drawn, the decision being settled.
        lower_bound: Whether a provider left tokens out of its count, so that
            the true figures are higher.
        money: What the tokens are worth at the prices that were given, in units of
            their currency; None without prices.
    """

    calls: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    rounds: int = 0
    samples_saved: int = 0
    lower_bound: bool = False
    money: float | None = None

    def __add__(self, other: Cost) -> Cost:
        """Add up two costs; the seconds too, since parts that overlap are not known.

        The sum has an amount of money only if all of its tokens have one.
        """
        return Cost(
            calls=self.calls + other.calls,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            seconds=self.seconds + other.seconds,
            rounds=self.rounds + other.rounds,
            samples_saved=self.samples_saved + other.samples_saved,
            lower_bound=self.lower_bound or other.lower_bound,
            money=_added(self, other),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for metadata and JSON."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


def _added(*costs: Cost) -> float | None:
    unknown = any(
        cost.money is None and (cost.prompt_tokens or cost.completion_tokens)
        for cost in costs
    )
    known = [cost.money for cost in costs if cost.money is not None]
    return None if unknown or not known else sum(known)
