"""The books of one guarded call: its clock, its events, its cost and its record."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from snne_guard.assess.brakes import Brakes
from snne_guard.assess.brief import CHOSEN_SKIPS, Assessor, Brief
from snne_guard.assess.watching import Watch, unwatched, watched
from snne_guard.decision import Policy, Verdict
from snne_guard.sampling.clock import Clock
from snne_guard.sampling.collect import Collector, Draw
from snne_guard.sampling.retry import perhaps_billed
from snne_guard.similarity.growth import Growth
from snne_guard.types import Assessment, Cost, ResponseSet, Sample, SampleEvent

__all__ = ["Books"]

_ANSWER = Draw(index=0, n=1)
_UNASKED, _ASKED = Cost(), Cost(attempts=1, lower_bound=True)
_GRACE = 1.0
"""Seconds in which a set that came at the very end may still be scored."""

_INLINE_CHARACTERS = 2_000
_INLINE_MEMBERS = 20
"""Smaller sets are scored on the event loop: handing them to a thread takes longer.
Comparing takes the square of both, some 3 seconds for ten texts of 5,000 words."""


class Books:
    """What a session of threads and one of tasks have in common: all but the waiting.

    Args:
        assessor: What is shared with other calls.
        brief: What this call is about.

    Attributes:
        id: Id of the assessment.
        assessment: The final one, None until it is reported.
    """

    def __init__(self, assessor: Assessor, brief: Brief) -> None:
        self.id = brief.id
        self.assessment: Assessment | None = None
        self._assessor, self._brief = assessor, brief
        self._usual = assessor.judge.policy
        rounds = assessor.sample_rounds(batch=brief.batch)
        self._brakes = Brakes(assessor, brief)
        self._collector = Collector(rounds[-1], batch=brief.batch, rounds=rounds)
        self._growth = Growth() if len(rounds) > 1 else None
        self._stopped = False
        plan = assessor.plan
        self._clock = Clock(timeout=plan.timeout, sample_timeout=plan.sample_timeout)
        self._answer_cost, self._cut = _UNASKED, False

    @property
    def elapsed(self) -> float:
        """Seconds since the call began."""
        return self._clock.elapsed

    @property
    def errors(self) -> tuple[BaseException, ...]:
        """The exceptions of the samples that failed for good."""
        return tuple(self._collector.errors)

    @property
    def samples_cost(self) -> Cost:
        """What the samples took, without the answer."""
        return self._collector.cost

    @property
    def remaining(self) -> float | None:
        """Seconds until the time limit of the whole call, None without a limit."""
        return self._clock.remaining()

    def answer_started(self) -> None:
        """Note that the answer was asked for."""
        # Until it ends it is in flight: perhaps billed, and nobody knows.
        self._answer_cost = _ASKED
        self._assessor.circuit.began()
        self._tell("answer", ended=False)

    def answer_repeated(self) -> None:
        """Note that the answer is asked for once more, with fewer options."""
        self._answer_cost += Cost(attempts=1)

    def answer_ended(
        self, answer: Sample | None, *, cost: Cost, error: BaseException | None = None
    ) -> None:
        """Note the answer, or why there is none, and what it took."""
        unknown = error is not None and perhaps_billed(error)
        sent = max(cost.attempts, self._answer_cost.attempts)
        self._answer_cost = replace(
            cost,
            # An answer from a cache of the client's own took no request at all.
            attempts=sent if cost.calls or error is not None else 0,
            lower_bound=cost.lower_bound or unknown,
        )
        self._brakes.answered(answer, cost, error)
        samples = (answer,) if answer is not None else ()
        self._tell("answer", ended=True, samples=samples, error=error, cost=cost)

    def answer_given(self, answer: Sample, *, cost: Cost) -> None:
        """Note an answer that was there already, and what it took elsewhere."""
        self._brakes.given(answer, cost)

    def listen(
        self,
        draw: Draw,
        /,
        *,
        ended: bool,
        samples: tuple[Sample, ...] = (),
        error: BaseException | None = None,
        cost: Cost | None = None,
    ) -> None:
        """Pass on what happens to the samples."""
        self._tell("sample", draw, ended=ended, samples=samples, error=error, cost=cost)

    def _tell(
        self,
        role: Literal["answer", "sample"],
        draw: Draw = _ANSWER,
        *,
        ended: bool,
        samples: tuple[Sample, ...] = (),
        error: BaseException | None = None,
        cost: Cost | None = None,
    ) -> None:
        observers = self._assessor.observers
        if not observers.listening:
            return
        event = SampleEvent(
            assessment_id=self.id,
            role=role,
            index=draw.index,
            n=draw.n,
            samples=samples,
            error=error,
            cost=cost or _UNASKED,
            model=self._brief.model,
            provider=self._brief.provider,
        )
        (observers.sample_ended if ended else observers.sample_started)(event)

    @property
    def _concurrent(self) -> bool:
        return self._brief.skip is None and not self._brief.answer_first

    @property
    def policy(self) -> Policy:
        """What is decided by; that of this answer, once it is there."""
        return self._assessor.judge.policy

    def _skips(self, answer: Sample) -> str | None:
        """Return why this answer is delivered without a score, None if it is scored."""
        if answer.tool_calls is not None and self._assessor.judge.tool_calls == "skip":
            return "tool_calls"
        return self._brief.skip or self._brakes.skip

    def _responses(self, answer: Sample, *, late: bool) -> ResponseSet:
        collector, plan = self._collector, self._assessor.plan
        reasons = list(self._brief.reasons)
        if self._assessor.memory.temperature is False:
            reasons.append("temperature_unset")
        reasons.extend(self._brakes.reasons(collector.errors))
        if late:
            reasons.append("samples_late")
        if self._stopped:
            reasons.append("stopped_early")
        if collector.samples:
            self._assessor.memory.learn_batch(collector.batch, asked=plan.n_samples)
        return ResponseSet(
            answer=answer,
            samples=collector.samples,
            n_requested=plan.n - self._saved,
            stopped=self._stopped,
            include_answer=plan.include_answer,
            question=self._brief.question,
            reasons=tuple(dict.fromkeys(reasons)),
            errors=tuple(collector.errors),
            cost=self._cost(),
        )

    def _cost(self) -> Cost:
        cost = self._collector.total(
            self._answer_cost, seconds=self.elapsed, cut=self._cut, saved=self._saved
        )
        prices = self._assessor.prices
        return cost if prices is None else prices.priced(cost)

    def _ended(self, *, unfinished: bool) -> None:
        self._cut = unfinished
        self._brakes.close(self._collector, unfinished=unfinished)

    def _judged(self, answer: Sample, *, late: bool) -> tuple[Assessment, Verdict]:
        memory = self._assessor.memory
        return self._assessor.judge.judge(
            self._responses(answer, late=late),
            assessment_id=self.id,
            run_id=self._brief.run_id,
            settle_logprobs=lambda seen: memory.settle_logprobs(seen=seen),
            growth=self._growth,
        )

    @property
    def _watch(self) -> Watch | None:
        """Who is to see the verdict: nobody where an answer has a policy of its own."""
        return self._assessor.watch if self.policy is self._usual else None

    def _watched(self, found: tuple[Assessment, Verdict]) -> tuple[Assessment, Verdict]:
        """Return what is found once what watches the guard has seen it."""
        watch = self._watch
        return found if watch is None else watched(watch, *found, policy=self.policy)

    def _unwatched(
        self, found: tuple[Assessment, Verdict]
    ) -> tuple[Assessment, Verdict]:
        """Return what is found where what watches the guard was too slow."""
        watch = self._watch
        return found if watch is None else unwatched(watch, *found, policy=self.policy)

    @property
    def _watching_time(self) -> float | None:
        """Seconds that what watches the guard may take, None for no limit."""
        left = self._clock.remaining()
        return None if left is None else max(left, _GRACE)

    @property
    def _saved(self) -> int:
        """Samples that an early stop spared."""
        collector = self._collector
        return collector.n_samples - collector.asked if self._stopped else 0

    def _enough(self, answer: Sample) -> bool:
        """Return whether the rounds so far are enough, and remember it."""
        stopping, memory = self._assessor.stopping, self._assessor.memory
        if stopping is None or self._growth is None:
            return False
        self._stopped = stopping.enough(
            self._responses(answer, late=False),
            missing=self._collector.n_samples - self._collector.asked,
            growth=self._growth,
            # Only what is scored in the end settles it for the guard.
            settle_logprobs=lambda seen: (
                seen if memory.logprobs is None else memory.logprobs
            ),
        )
        return self._stopped

    def _scores_at_once(self, answer: Sample) -> bool:
        """Return whether few and short texts meet no code but the library's own."""
        members = (answer, *self._collector.samples)
        size = sum(len(m.text) + len(m.tool_calls or "") for m in members)
        small = size < _INLINE_CHARACTERS and len(members) <= _INLINE_MEMBERS
        return small and self._assessor.judge.light

    def _is_quick(self, answer: Sample) -> bool:
        """Return whether scoring takes less than handing it to a thread."""
        stopping = self._assessor.stopping
        light = stopping is None or stopping.light
        return light and self._scores_at_once(answer)

    def _scoring_time(self, answer: Sample) -> float | None:
        """Seconds that scoring may take, None for no limit.

        What is over at once needs none. The rest has what is left of the whole call,
        and a moment at least.
        """
        left = self._clock.remaining()
        return (
            None if left is None or self._scores_at_once(answer) else max(left, _GRACE)
        )

    def _skipped(self, answer: Sample, reason: str) -> tuple[Assessment, Verdict]:
        judge = self._assessor.judge
        chosen = reason in CHOSEN_SKIPS
        verdict = judge.policy.skipped() if chosen else judge.policy.unscored()
        responses = self._responses(answer, late=False)
        record = judge.record(
            responses,
            assessment_id=self.id,
            run_id=self._brief.run_id,
            verdict=verdict,
            reasons=(reason,),
        )
        return record, verdict

    def broken_off(self, error: BaseException) -> Assessment:
        """Return the record of a call that broke off: what came, and its cost."""
        reason = "answer_failed" if isinstance(error, Exception) else "cancelled"
        threshold = self.policy.threshold
        return Assessment(
            id=self.id,
            answer=None,
            samples=self._collector.samples,
            threshold=None if threshold is None else threshold.value,
            n_requested=self._assessor.plan.n,
            reasons=(
                *self._assessor.judge.standing_reasons,
                *self._brief.reasons,
                reason,
            ),
            cost=self._cost(),
            question=self._brief.question,
            run_id=self._brief.run_id,
        )
