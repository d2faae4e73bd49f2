"""What guarded calls take: requests, tokens, seconds and money."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

Role = Literal["answer", "sample", "self_check", "judge"]
"""What a request asks for: the answer, drawn with the user's own settings; samples; a
self-check; or a judgement of which samples bear out the parts of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a guarded call took, the answer and every sample counted once.

    Attributes:
        calls: Requests that the provider answered.
        attempts: Requests sent, failed and repeated ones included. If the call was cut
            short, it counts requests that still waited for their turn too.
        prompt_tokens: Input tokens, as the provider counts them.
        cached_tokens: How many of them came from a prompt cache.
        cache_creation_tokens: How many of them were written to one.
        completion_tokens: Output tokens.
        reasoning_tokens: How many of them the model spent on hidden reasoning, as far
            as the provider counts them.
        seconds: Wall time from the first request to the decision.
        lower_bound: Whether a provider left tokens out of its count, so that the true
            figures are higher.
        money: What the tokens cost at the given ``Prices``; None without prices.
        details: What else LangChain counts among the tokens, by its names, such as
            ``"input_token_details.audio"``.
    """

    calls: int = 0
    attempts: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    cache_creation_tokens: int = 0
    completion_tokens: int = 0
    reasoning_tokens: int = 0
    seconds: float = 0.0
    lower_bound: bool = False
    money: float | None = None
    details: Mapping[str, int] = field(default_factory=dict[str, int], hash=False)

    def __add__(self, other: Cost) -> Cost:
        """Add up counts and seconds; money stays unknown unless both know it."""
        known = self.money is not None and other.money is not None
        return Cost(
            calls=self.calls + other.calls,
            attempts=self.attempts + other.attempts,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            cache_creation_tokens=self.cache_creation_tokens
            + other.cache_creation_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            seconds=self.seconds + other.seconds,
            lower_bound=self.lower_bound or other.lower_bound,
            money=(self.money or 0.0) + (other.money or 0.0) if known else None,
            details=dict(Counter(self.details) + Counter(other.details)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return a plain dict for metadata and JSON, without ``details`` if empty."""
        given = {each.name: getattr(self, each.name) for each in fields(self)}
        if not self.details:
            del given["details"]  # Parquet cannot hold an empty mapping
        return given


COUNTS = tuple(each.name for each in fields(Cost))
"""Names of what a ``Cost`` counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCost(Cost):
    """What one request of a guarded call took; its ``seconds`` are not measured.

    Attributes:
        role: What it asked for.
        view: Name of the view of its samples, None without views.
        other_model: Name of the other model that was asked, None for the guarded one.
        replies: How many it brought.
    """

    role: Role
    view: str | None = None
    other_model: str | None = None
    replies: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a million tokens cost, in any currency.

    Attributes:
        prompt: Price of a million input tokens.
        completion: Price of a million output tokens.
        cached: Price of a million cached input tokens; None: as ``prompt``.
        cache_creation: Price of a million input tokens that are written to a cache;
            None: as ``prompt``.

    Example:
        >>> Prices(prompt=1.0, completion=4.0).of(
        ...     Cost(prompt_tokens=500_000, completion_tokens=250_000)
        ... )
        1.5
    """

    prompt: float
    completion: float
    cached: float | None = None
    cache_creation: float | None = None

    def of(self, cost: Cost, /) -> float:
        """Return the price of the tokens of a call."""
        cached = self.prompt if self.cached is None else self.cached
        written = self.prompt if self.cache_creation is None else self.cache_creation
        special = cost.cached_tokens + cost.cache_creation_tokens
        return (
            max(0, cost.prompt_tokens - special) * self.prompt  # servers miscount
            + cost.cached_tokens * cached
            + cost.cache_creation_tokens * written
            + cost.completion_tokens * self.completion
        ) / 1e6
