"""What guarded calls share, and what one of them is about."""

from __future__ import annotations

import inspect
import logging
import uuid
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any

from snne_guard.assess.judge import Judge
from snne_guard.assess.observe import ObserverHub
from snne_guard.assess.stopping import Stopping
from snne_guard.assess.switch import disabled
from snne_guard.assess.watching import Watch
from snne_guard.sampling.breaker import Circuit
from snne_guard.sampling.budget import Ledger
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.options import AnswerSettings
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.prices import Prices
from snne_guard.types import Sample

__all__ = ["CHOSEN_SKIPS", "Assessor", "Brief"]

logger = logging.getLogger(__name__)

CHOSEN_SKIPS = frozenset({"tool_calls", "not_sampled", "skipped_by_rule", "disabled"})
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
        ledger: What may be spent and was, None where there is no budget.
        circuit: Whether the provider is failing.
        sample_when: Says of a call's messages whether samples are worth their cost.
        question: Says what the user asks in them, None for all of the last message.
        watch: Sees every verdict before it is told, None where nothing does.
    """

    plan: SamplingPlan
    judge: Judge
    observers: ObserverHub = field(default_factory=ObserverHub)
    memory: Memory = field(default_factory=Memory)
    limiter: Limiter = field(default_factory=Limiter)
    prices: Prices | None = None
    stopping: Stopping | None = None
    ledger: Ledger | None = None
    circuit: Circuit = field(default_factory=Circuit)
    sample_when: Callable[[Any], object] | None = None
    question: Callable[[Any], object] | None = None
    watch: Watch | None = None

    @property
    def may_withhold(self) -> bool:
        """Whether an answer can fail to reach the application."""
        watches = self.watch is not None and self.watch.may_withhold
        return watches or self.judge.may_withhold

    def on_models(
        self,
        names: AbstractSet[str | None],
        answer_settings: AnswerSettings | None = None,
    ) -> Assessor:
        """Return the same for a call of other models, or one that is drawn otherwise.

        Args:
            names: By which it asks whoever may answer, None for one without a name.
            answer_settings: What they may draw the answer with, where it is known.
        """
        binding = self.judge.binding
        if binding is None:
            return self
        asked = binding.on(names, answer_settings or {})
        return replace(self, judge=replace(self.judge, binding=asked))

    def for_answer(self, answer: Sample) -> Assessor:
        """Return what holds for this answer; see ``Judge.for_answer``."""
        judge = self.judge.for_answer(answer)
        if judge is self.judge:
            return self
        stopping = self.stopping
        if stopping is not None:
            stopping = stopping.under(judge)
        return replace(self, judge=judge, stopping=stopping)

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

    def skip(self, messages: Sequence[Any]) -> tuple[str | None, tuple[str, ...]]:
        """Return why a call is not sampled by the user's choice, None if it is.

        With it comes what was not as usual in finding out: a rule that fails skips
        nothing.
        """
        if disabled():
            return "disabled", ()
        wanted, reasons = self._wanted(messages)
        if not wanted:
            return "skipped_by_rule", ()
        return None if self.plan.wants_samples() else "not_sampled", reasons

    def asked(
        self, messages: Sequence[Any], last: str | None, *, said: object = None
    ) -> tuple[str | None, tuple[str, ...]]:
        """Return what the user asks, with what was not as usual in finding out.

        Args:
            messages: The conversation.
            last: Text of the user's last message, for want of anything better.
            said: What this call says that the question is, None if it says nothing.
        """
        if said is None:
            if self.question is None or disabled():
                return last, ()
            said, _ = _called("question", self.question, messages)
        if isinstance(said, str) and said.strip():
            return said, ()
        return last, ("question_failed",)

    def _wanted(self, messages: Sequence[Any]) -> tuple[bool, tuple[str, ...]]:
        if self.sample_when is None:
            return True, ()
        wanted, failed = _called("sample_when", self.sample_when, messages)
        return (True, ("sample_when_failed",)) if failed else (bool(wanted), ())


def _called(
    name: str, function: Callable[[Any], object], messages: Sequence[Any]
) -> tuple[object, bool]:
    """Return what the user's function says of the messages, and whether it failed."""
    try:
        value: Any = function(list(messages))
        if inspect.iscoroutine(value):
            value.close()
            msg = f"{name} returned a coroutine; it must be a plain function"
            raise TypeError(msg)  # noqa: TRY301 - every failure ends the same way
    except (Exception, CancelledError) as error:  # noqa: BLE001 - anyone's code
        # Nothing is awaited here, so a cancellation is its own. The error's text may
        # quote the messages, so it is not logged.
        logger.warning("%s failed with %s", name, type(error).__name__)
        return None, True
    return value, False


@dataclass(slots=True, kw_only=True)
class Brief:
    """What one guarded call is about.

    Attributes:
        question: What the user asks, for similarities that use it.
        characters: Length of the prompt, all messages together.
        batch: Replies to ask for in one request.
        context: Context in which the requests run.
        reasons: What is known not to be as usual before anything is drawn.
        skip: Why this call is not sampled at all, None if it is.
        answer_first: Whether the samples wait for the answer.
        id: Id of the assessment.
        run_id: The LangChain run that it belongs to.
        model: Name of the model that is asked.
        provider: Who serves it.
    """

    question: str | None = None
    characters: int = 0
    batch: int = 1
    context: Context = field(default_factory=Context)
    reasons: tuple[str, ...] = ()
    skip: str | None = None
    answer_first: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    run_id: str | None = None
    model: str | None = None
    provider: str | None = None
