"""What the engine asks a sender to send, and what comes back.

A ``Draw`` is one request, a ``Reply`` is what it brought, and each ``Sample`` in that
is one reply of the model, the answer too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from snne_guard.errors import SamplingError
from snne_guard.types import Cost, Role, Sample
from snne_guard.views import View

__all__ = [
    "TOP_LOGPROBS",
    "Draw",
    "Failure",
    "NoReplyError",
    "ProviderCapabilities",
    "Reply",
    "with_failed",
]

TOP_LOGPROBS = 5
"""Likeliest tokens that a self-check asks for: as many as every provider gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """One request to the model.

    Attributes:
        role: What it asks for.
        n: Replies asked for in this one request.
        turns: What a self-check or a judgement adds to the conversation: the answer,
            and the question about it.
        view: The view that samples are drawn in, None without views.
        temperature: Sampling temperature; None leaves the user's own setting.
        logprobs: Whether token log-probabilities are wanted.
        deadline: The ``time.monotonic()`` until which to wait; None for no limit.
    """

    role: Role
    n: int = 1
    turns: tuple[str, ...] = field(default=(), repr=False)
    view: View | None = None
    temperature: float | None = None
    logprobs: bool = False
    deadline: float | None = None

    @property
    def extracts(self) -> bool:
        """Whether only a part of each reply is compared."""
        return self.view is not None and self.view.extract is not None

    def conversation(self, messages: Sequence[Any], /) -> list[Any]:
        """Return what is said to the model.

        Args:
            messages: The user's conversation.

        Raises:
            SamplingError: The view failed.
        """
        turns = [*messages] if self.view is None else self.view.rewritten(messages)
        further = zip(("assistant", "user"), self.turns, strict=False)
        return turns + [{"role": role, "content": text} for role, text in further]

    def added(self, taken: Collection[str], /) -> frozenset[str]:
        """Return which of the parameters that a provider takes the guard adds."""
        adds = {
            "n": self.n > 1,
            "logprobs": self.logprobs,
            "top_logprobs": self.role == "check",
            "temperature": self.temperature is not None,
        }
        return frozenset(name for name in taken if adds[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What one request brought.

    Attributes:
        samples: The replies in it; fewer than asked for where a provider ignores ``n``.
        cost: What the request took, failed ones before it included.
        raw: The answer as the model gave it (an ``AIMessage``, a
            ``ChatCompletion``), to be delivered as it is.
        temperature_set: Whether samples were drawn at the temperature asked for.
        p_correct: Of a self-check: the probability that the answer is called correct,
            None where it says neither Yes nor No.
    """

    samples: tuple[Sample, ...]
    cost: Cost = field(default_factory=Cost)
    raw: Any = field(default=None, repr=False, compare=False)
    temperature_set: bool = True
    p_correct: float | None = None

    @property
    def first(self) -> Sample:
        """The first reply; for an answer request, the answer itself."""
        return self.samples[0]


def with_failed(reply: Reply, failed: int, /) -> Reply:
    """Return a reply whose cost includes requests that failed before it."""
    if not failed:
        return reply
    cost = replace(reply.cost, attempts=reply.cost.attempts + failed)
    return replace(reply, cost=cost)


class NoReplyError(SamplingError):
    """The model answered a request with no reply in it."""

    def __init__(self) -> None:
        super().__init__("the model returned no reply")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A request, or work of the driver, that failed for good.

    Attributes:
        error: The last exception.
        attempts: Requests that were sent for it.
    """

    error: BaseException
    attempts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderCapabilities:
    """What is known of how a provider takes requests, before one is sent.

    Attributes:
        n: Whether one request may ask for several replies.
        logprobs: Whether token log-probabilities can be asked for.
    """

    n: bool = False
    logprobs: bool = False

    @classmethod
    def of(cls, taken: Collection[str]) -> Self:
        """Return them by the names of the parameters that a provider takes."""
        return cls(n="n" in taken, logprobs="logprobs" in taken)
