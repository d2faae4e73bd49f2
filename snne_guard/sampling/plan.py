"""How many samples are wanted, under which settings and within which limits."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast, get_args

from snne_guard.errors import ConfigurationError
from snne_guard.types import Schedule

__all__ = ["SamplingPlan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingPlan:
    """The settings of a guarded call that concern drawing.

    Attributes:
        n: Members of the response set, at least 2.
        include_answer: Whether the answer is one of them.
        temperature: Sampling temperature of the samples, 0 or more.
        rounds: Members of the set after each round of samples, rising to n; None for
            one round.
        schedule: Whether samples are drawn beside the answer or after it; None means
            after it where tools are bound, else beside it.
        timeout: Seconds for the whole guarded call, None for no limit.
        sample_timeout: Seconds after which what has arrived is scored.
        sample_max_tokens: Token limit of a sample, None for the model's own.
        sample_rate: Share of calls that are sampled at all, in [0, 1].
        max_attempts: Requests sent for one sample before it counts as failed.

    Raises:
        ConfigurationError: If a value makes no sense.

    Example:
        >>> (
        ...     SamplingPlan(n=5).n_samples,
        ...     SamplingPlan(n=10, include_answer=False).n_samples,
        ... )
        (4, 10)
    """

    n: int = 5
    include_answer: bool = True
    temperature: float = 1.0
    rounds: Sequence[int] | None = None
    schedule: Schedule | None = None
    timeout: float | None = None
    sample_timeout: float | None = None
    sample_max_tokens: int | None = None
    sample_rate: float = 1.0
    max_attempts: int = 4

    def __post_init__(self) -> None:
        _require(_whole(self.n, 2), "n", "a whole number of at least 2", self.n)
        _require(
            _real(self.temperature, 0.0), "temperature", "0 or more", self.temperature
        )
        _require(
            self.rounds is None or _rounds(self.rounds, self.n),
            "rounds",
            f"members after each round, rising from at least 2 to n = {self.n}, "
            f"such as {(min(3, self.n), self.n)}, or None",
            self.rounds,
        )
        _require(
            self.schedule in {None, *get_args(Schedule)},
            "schedule",
            "'concurrent', 'answer_first' or None",
            self.schedule,
        )
        for name in ("timeout", "sample_timeout"):
            value = getattr(self, name)
            good = value is None or (_real(value, 0.0) and value > 0)
            _require(good, name, "seconds above 0, or None", value)
        limit = self.sample_max_tokens
        _require(
            limit is None or _whole(limit, 1),
            "sample_max_tokens",
            "a whole number of at least 1, or None",
            limit,
        )
        rate = self.sample_rate
        _require(_real(rate, 0.0) and rate <= 1, "sample_rate", "in [0, 1]", rate)
        _require(
            _whole(self.max_attempts, 1),
            "max_attempts",
            "a whole number of at least 1",
            self.max_attempts,
        )

    @property
    def n_samples(self) -> int:
        """Draws besides the answer."""
        return self.n - 1 if self.include_answer else self.n

    @property
    def sample_rounds(self) -> tuple[int, ...]:
        """Draws besides the answer after each round."""
        drawn = int(self.include_answer)
        return tuple(members - drawn for members in self.rounds or (self.n,))

    def wants_samples(self) -> bool:
        """Decide for one call, at random, whether it is among the sampled share."""
        rate = self.sample_rate
        return rate >= 1 or random.random() < rate  # noqa: S311 - no secret


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _rounds(value: object, n: int) -> bool:
    if not isinstance(value, list | tuple):
        return False
    members = cast("Sequence[object]", value)
    if not members or not all(_whole(count, 2) for count in members):
        return False
    counts = cast("Sequence[int]", members)
    return counts[-1] == n and all(one < two for one, two in pairwise(counts))


def _real(value: object, least: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= least


def _require(good: bool, name: str, expected: str, got: object) -> None:  # noqa: FBT001
    if not good:
        msg = f"{name} must be {expected}; got {got!r}"
        raise ConfigurationError(msg)
