"""What guarded calls share, and what one of them is about."""

from __future__ import annotations

import uuid
from contextvars import Context
from dataclasses import dataclass, field

from snne_guard.assess.judge import Judge
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.stopping import Stopping
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.prices import Prices

__all__ = ["CHOSEN_SKIPS", "Assessor", "Brief"]

CHOSEN_SKIPS = frozenset({"tool_calls", "not_sampled", "disabled"})
"""Reasons for which the user has said that answers pass without a score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessor:
    """Everything that one guarded call shares with the next.

    Attributes:
        plan: What is drawn.
        judge: How it is scored and decided.
        observers: Who is told.
        memory: What was learnt about the provider.
        limiter: Cap on the requests in flight.
        prices: What tokens cost, None if nobody has said.
        stopping: Whether a round of samples was enough, None where all are drawn.
    """

    plan: SamplingPlan
    judge: Judge
    observers: ObserverHub = field(default_factory=ObserverHub)
    memory: Memory = field(default_factory=Memory)
    limiter: Limiter = field(default_factory=Limiter)
    prices: Prices | None = None
    stopping: Stopping | None = None

    def batch(self, *, supported: bool) -> int:
        """Return how many replies to ask for in one request."""
        if not supported:
            return 1
        return self.memory.batch or self.plan.n_samples

    def sample_rounds(self, *, batch: int) -> tuple[int, ...]:
        """Return how many samples there are to be after each round.

        Args:
            batch: Replies to ask for in one request.
        """
        stopping, rounds = self.stopping, self.plan.sample_rounds
        one_by_one = self.limiter.limit == 1 and batch == 1
        if self.plan.rounds is not None or stopping is None or not one_by_one:
            return rounds
        # They come one after another in any case, and any of them may be the last.
        least = stopping.judge.policy.min_samples - int(self.plan.include_answer)
        return tuple(range(least, self.plan.n_samples + 1))


@dataclass(slots=True, kw_only=True)
class Brief:
    """What one guarded call is about.

    Attributes:
        question: Text of the user's last message.
        batch: Replies to ask for in one request.
        context: Context in which the requests run.
        reasons: What is known not to be as usual before anything is drawn.
        skip: Why this call is not sampled at all, None if it is.
        answer_first: Whether the samples wait for the answer.
        id: Id of the assessment.
    """

    question: str | None = None
    batch: int = 1
    context: Context = field(default_factory=Context)
    reasons: tuple[str, ...] = ()
    skip: str | None = None
    answer_first: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
