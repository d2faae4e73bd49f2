"""An answer and its samples drawn into a response set, by threads or by tasks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field

from snne_guard.errors import GuardTimeoutError
from snne_guard.sampling.clock import Clock
from snne_guard.sampling.collect import Collector, Draw, Reply
from snne_guard.sampling.drive import TaskDraws, ThreadDraws
from snne_guard.sampling.limiter import Limiter
from snne_guard.sampling.memory import Memory
from snne_guard.sampling.plan import SamplingPlan
from snne_guard.sampling.within import OutOfTimeError, aask_in_place, ask_in_place
from snne_guard.types import Cost, ResponseSet, Sample

__all__ = ["Gathering", "agather", "gather"]


@dataclass(slots=True, kw_only=True)
class Gathering:
    """What one response set is drawn under.

    Attributes:
        plan: What is drawn.
        memory: What was learnt about the provider.
        limiter: Cap on the requests in flight.
        batch: Replies to ask for in one request.
        question: Text of the user's last message.
        answer_first: Whether the samples wait for the answer.
        skip: Why no samples are drawn, None if they are.
        context: Context in which the requests for samples run.
    """

    plan: SamplingPlan
    memory: Memory
    limiter: Limiter
    batch: int = 1
    question: str | None = None
    answer_first: bool = False
    skip: str | None = None
    context: Context = field(default_factory=copy_context)
    collector: Collector = field(init=False)
    clock: Clock = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self.clock = Clock(timeout=plan.timeout, sample_timeout=plan.sample_timeout)
        self.collector = Collector(self.plan.n_samples, batch=self.batch)

    def timed_out(self) -> GuardTimeoutError:
        """Return the error for an answer that did not come in time."""
        timeout = self.plan.timeout or 0.0
        return GuardTimeoutError(f"no answer within {timeout} s", timeout=timeout)

    def response_set(self, answer: Reply, *, late: bool, cut: bool) -> ResponseSet:
        """Return what has arrived.

        Args:
            answer: The reply to the user's own request.
            late: Whether the time was up before all samples had come.
            cut: Whether something was in flight at the end.
        """
        collector, plan = self.collector, self.plan
        named = {
            str(self.skip): self.skip is not None,
            "temperature_unset": self.memory.temperature is False,
            "samples_failed": bool(collector.errors),
            "samples_late": late,
        }
        if collector.samples:
            self.memory.learn_batch(collector.batch, asked=plan.n_samples)
        return ResponseSet(
            answer=answer.samples[0],
            samples=collector.samples,
            n_requested=plan.n,
            include_answer=plan.include_answer,
            question=self.question,
            reasons=tuple(reason for reason, true in named.items() if true),
            errors=tuple(collector.errors),
            cost=collector.total(answer.cost, seconds=self.clock.elapsed, cut=cut),
        )


def _ignore(
    draw: Draw,
    /,
    *,
    ended: bool,
    samples: tuple[Sample, ...] = (),
    error: BaseException | None = None,
    cost: Cost | None = None,
) -> None:
    del draw, ended, samples, error, cost  # nobody listens


def gather(
    gathering: Gathering, ask: Callable[[], Reply], send: Callable[[Draw], Reply]
) -> ResponseSet:
    """Draw a response set in threads.

    Args:
        gathering: What it is drawn under.
        ask: Sends the user's own request.
        send: Sends a request for samples.

    Raises:
        GuardTimeoutError: If the answer did not come in time.
    """
    draws = ThreadDraws(
        gathering.collector,
        send,
        listener=_ignore,
        limiter=gathering.limiter,
        max_attempts=gathering.plan.max_attempts,
        context=gathering.context,
    )
    settled = True
    try:
        if gathering.skip is None and not gathering.answer_first:
            draws.start()
        try:
            answer = ask_in_place(ask, gathering.limiter, gathering.clock.remaining)
        except OutOfTimeError:
            raise gathering.timed_out() from None
        if gathering.skip is None:
            if gathering.answer_first:
                gathering.clock.begin_samples()
                draws.start()
            settled = draws.wait(gathering.clock.patience())
    finally:
        draws.stop()
    return gathering.response_set(answer, late=not settled, cut=draws.unfinished)


async def agather(
    gathering: Gathering,
    ask: Callable[[], Awaitable[Reply]],
    send: Callable[[Draw], Awaitable[Reply]],
) -> ResponseSet:
    """Draw a response set in tasks; the twin of ``gather``.

    Args:
        gathering: What it is drawn under.
        ask: Sends the user's own request.
        send: Sends a request for samples.

    Raises:
        GuardTimeoutError: If the answer did not come in time.
    """
    draws = TaskDraws(
        gathering.collector,
        send,
        listener=_ignore,
        limiter=gathering.limiter,
        max_attempts=gathering.plan.max_attempts,
        context=gathering.context,
    )
    settled = True
    try:
        if gathering.skip is None and not gathering.answer_first:
            draws.start()
        try:
            answer = await aask_in_place(
                ask, gathering.limiter, gathering.clock.remaining
            )
        except OutOfTimeError:
            raise gathering.timed_out() from None
        if gathering.skip is None:
            if gathering.answer_first:
                gathering.clock.begin_samples()
                draws.start()
            settled = await draws.wait(gathering.clock.patience())
    finally:
        await draws.stop()
    return gathering.response_set(answer, late=not settled, cut=draws.unfinished)
