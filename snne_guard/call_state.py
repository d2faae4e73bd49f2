"""The state of one guarded call, which the engine fills in as replies come."""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import asdict, replace
from typing import Any

from snne_guard.call import Outcome, Request
from snne_guard.sampling.members import Members
from snne_guard.sampling.replies import Draw, Failure, Reply
from snne_guard.types import Assessment, Cost, DrawCost, Sample, Score, Span
from snne_guard.views import views_of_samples

__all__ = ["CallState"]

_log = logging.getLogger(__name__)


class CallState:
    """What one call has brought so far: replies, errors, cost and reasons."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.settings = request.settings
        self.started = time.monotonic()
        self.id = uuid.uuid4().hex
        self.answer = request.answer
        self.views = views_of_samples(request.views, n=request.settings.n_samples)
        self.drawn: list[Draw] = []
        self.samples: list[Sample] = []
        self.errors: list[BaseException] = []
        self.answer_error: BaseException | None = None
        self.costs: list[DrawCost] = []
        self.temperature_set = request.capabilities.temperature
        self.members: Members | None = None
        self.check_reply: Reply | None = None
        self.judgement: Reply | None = None
        self.spans: tuple[Span, ...] | None = None
        self.late = False
        self._reasons: list[str] = []

    def note(self, reason: str) -> None:
        """Add a reason code, once."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    @property
    def deadline(self) -> float | None:
        """Until when the answer is waited for, by ``time.monotonic()``."""
        limit = self.settings.timeout
        return None if limit is None else self.started + limit

    @property
    def samples_deadline(self) -> float | None:
        """The same for samples and the self-check."""
        limits = [self.settings.timeout, self.settings.sample_timeout]
        given = [limit for limit in limits if limit is not None]
        return self.started + min(given) if given else None

    def take(self, draw: Draw, result: Reply | Failure | None) -> None:
        """Count what a draw brought."""
        self.costs.append(self._cost_of(draw, result))
        if draw.role == "check":
            self._take_check(result)
        elif draw.role == "judge":
            self.judgement = result if isinstance(result, Reply) else None
        elif result is None:
            self.late = True
            if draw.role == "sample" and self.answer_error is None:
                self.note("samples_late")
        elif isinstance(result, Failure):
            self.errors.append(result.error)
            if draw.role == "answer":
                self.answer_error = result.error
        else:
            if draw.role == "answer":
                self.answer = result
                return
            samples = result.samples[: draw.n]
            if draw.view is not None:
                samples = tuple(map(draw.view.read, samples))
            self.samples.extend(samples)
            self.temperature_set &= result.temperature_set

    def _take_check(self, result: Reply | Failure | None) -> None:
        """Keep the self-check; one that failed loses nothing but itself."""
        if isinstance(result, Reply):
            self.check_reply = result
            return
        why = "late" if result is None else type(result.error).__name__
        _log.warning("the self-check failed: %s", why)  # a message may hold an answer

    def _cost_of(self, draw: Draw, result: Reply | Failure | None) -> DrawCost:
        """Return what a draw took; one that is late may still cost something."""
        brought = 0
        if isinstance(result, Reply):
            cost, brought = result.cost, min(len(result.samples), draw.n)
        elif isinstance(result, Failure):
            cost = Cost(attempts=result.attempts)
        else:
            cost = Cost(attempts=1, lower_bound=True)
        return DrawCost(
            role=draw.role,
            view=None if draw.view is None else draw.view.name,
            samples=brought,
            **asdict(replace(cost, money=self._money(cost))),
        )

    def _money(self, cost: Cost) -> float | None:
        prices = self.settings.prices
        return None if prices is None else prices.of(cost)

    def assess(self, score: Score | None = None, **decided: Any) -> Assessment:  # noqa: ANN401
        """Return the record of the call as it stands."""
        cost, members = sum(self.costs, Cost()), self.members
        compared = members is not None and score is not None
        return Assessment(
            id=self.id,
            answer=None if self.answer is None else self.answer.first,
            samples=tuple(self.samples),
            scored=members.texts if members is not None and compared else (),
            matrix=None if score is None else score.matrix,
            method=None if score is None else score.method,
            score=None if score is None else score.value,
            uncertainty=None if score is None else score.uncertainty,
            disagreement=None if score is None else score.disagreement,
            self_check=None if score is None else score.self_check,
            threshold=self.settings.policy.threshold,
            n_requested=self.settings.n_members,
            n_used=0 if members is None else len(members.texts),
            reasons=tuple(self._reasons),
            cost=replace(
                cost,
                seconds=time.monotonic() - self.started,
                money=self._money(cost),
            ),
            draws=tuple(self.costs),
            question=self.request.question,
            run_id=self.request.run_id,
            spans=self.spans,
            span_threshold=self.settings.span_limit,
            **decided,
        )

    def fail(self, error: BaseException) -> Outcome:
        """End the call with an error in place of an answer."""
        return Outcome(
            assessment=self.assess(),
            delivery="nothing",
            answer=self.answer,
            error=error,
        )

    def skip(self, reason: str) -> Outcome:
        """End the call with the answer, which is not scored by the user's choice."""
        self.note(reason)
        verdict = self.settings.policy.skipped()
        assessment = self.assess(decision=verdict.decision)
        return Outcome(assessment=assessment, delivery="answer", answer=self.answer)
