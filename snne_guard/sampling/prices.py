"""What tokens cost, so that a count of them becomes an amount of money."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from snne_guard.errors import ConfigurationError
from snne_guard.types import Cost

__all__ = ["Prices"]

_PER = 1_000_000  # tokens that a price is for
_PARTS = (2, 3)


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a model, in units of your currency per million tokens.

    Take them from the provider's price list; none is built in, since they change.

    Attributes:
        prompt: Price of a million tokens read.
        completion: Price of a million tokens written.
        cached: Price of a million tokens read from a prompt cache; None where they
            cost as much as the others.

    Raises:
        ConfigurationError: If a price is not a finite number of 0 or more.

    Example:
        >>> prices = Prices(prompt=2.0, completion=8.0, cached=0.5)
        >>> prices.money(
        ...     Cost(prompt_tokens=3000, cached_tokens=2000, completion_tokens=500)
        ... )
        0.007
    """

    prompt: float
    completion: float
    cached: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "completion", "cached"):
            value = getattr(self, name)
            optional = name == "cached" and value is None
            if not optional and not _is_price(value):
                msg = (
                    f"prices: {name} must be a number of 0 or more, per million "
                    f"tokens; got {value!r}"
                )
                raise ConfigurationError(msg)

    @classmethod
    def parse(cls, text: str) -> Prices:
        """Read prices as they are given on a command line.

        Args:
            text: ``PROMPT,COMPLETION`` or ``PROMPT,COMPLETION,CACHED``.

        Raises:
            ConfigurationError: If it is neither.

        Example:
            >>> Prices.parse("2,8,0.5")
            Prices(prompt=2.0, completion=8.0, cached=0.5)
        """
        try:
            parts = [float(part) for part in text.split(",")]
        except ValueError:
            parts = []
        if len(parts) not in _PARTS:
            msg = (
                "prices must be PROMPT,COMPLETION or PROMPT,COMPLETION,CACHED per "
                f"million tokens, such as 2,8,0.5; got {text!r}"
            )
            raise ConfigurationError(msg)
        return cls(*parts)

    def money(self, cost: Cost) -> float:
        """Return what the tokens of a cost are worth, in units of the currency."""
        cached = min(cost.cached_tokens, cost.prompt_tokens)
        of_cached = self.prompt if self.cached is None else self.cached
        total = (
            (cost.prompt_tokens - cached) * self.prompt
            + cached * of_cached
            + cost.completion_tokens * self.completion
        )
        return total / _PER

    def priced(self, cost: Cost) -> Cost:
        """Return a cost with its amount of money filled in."""
        return replace(cost, money=self.money(cost))


def _is_price(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0
