"""What one call has brought so far, and its record at any moment."""

from __future__ import annotations

import logging
import math
import time
import uuid
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

from snne_guard.cost import COUNTS, Cost, RequestCost, Role
from snne_guard.engine.protocol import Draw, Draws, Failure, Outcome, Response
from snne_guard.engine.reply_set import ReplySet
from snne_guard.engine.request import Request
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.settings import is_disabled
from snne_guard.spans.grounding import Support
from snne_guard.types import Assessment, Decision, Field, Reply, Score, Span
from snne_guard.views import View

_log = logging.getLogger(__name__)


class CallState:
    """What one call has brought so far: replies, errors, cost, reasons and score."""

    def __init__(self, request: Request) -> None:
        settings = request.settings
        self.request, self.settings = request, settings
        self.started = time.monotonic()
        self.deadline = self.samples_deadline = None
        if settings.timeout is not None:
            self.deadline = self.samples_deadline = self.started + settings.timeout
        if settings.sample_timeout is not None:
            limit = min(settings.sample_timeout, settings.timeout or math.inf)
            self.samples_deadline = self.started + limit
        self.id = uuid.uuid4().hex
        self.views = settings.sample_views
        if request.tools_bound or request.structured or request.schema:
            self.views = (None,) * len(self.views)  # the form of an answer is bound
        self.disabled = is_disabled() and not request.replayed
        # Parameters that one of the models was seen to reject or ignore.
        known = map(request.state.rejections.known, request.keys)
        self.rejected = frozenset[str]().union(*known)
        offered = "logprobs" in request.parameters
        asked = offered or settings.method != "auto"
        needed = settings.methods[True].needs_logprobs and not self.disabled
        self.wants_logprobs = needed and asked
        # Where the method needs none, those of the guarded model tell whether its
        # samples came from a cache, if there are other models.
        others = bool(settings.other_models) and not self.disabled
        self.asks_logprobs = (
            (self.wants_logprobs or others)
            and offered
            and "logprobs" not in self.rejected
        )
        self.answer_response = request.answer
        self.answer = None if request.answer is None else request.answer.replies[0]
        self.drawn: list[Draw] = []
        self.samples: list[Reply] = []
        self.other_replies: list[Reply] = []
        self.errors: list[BaseException] = []
        self.answer_error: BaseException | None = None
        self.costs: list[RequestCost] = []
        self.temperature_set = True
        self.greedy = False
        self.reply_set: ReplySet | None = None
        self.self_check: Response | None = None
        self.judgement: Response | None = None
        self.score: Score | None = None
        self.guarantees: dict[str, Any] = {}
        self.spans: tuple[Span, ...] | None = None
        self.fields: tuple[Field, ...] | None = None
        self.supports: list[Support] = []
        self.grounded: float | None = None
        self.late = False
        self._reasons: list[str] = []

    def note(self, reason: str) -> None:
        """Add a reason code, once."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def note_failure(self, what: str, error: BaseException, *, reason: str) -> None:
        """Note that something could not be scored; log why, but quote no answer."""
        ours = isinstance(error, ConfigurationError | MissingExtraError)
        why = f"{error}" if ours else type(error).__name__
        _log.warning("scoring %s failed: %s", what, why)
        self.note(reason)

    @property
    def is_late(self) -> bool:
        """Whether it is too late for a question about the answer."""
        until = self.samples_deadline
        return until is not None and until <= time.monotonic()

    @property
    def samples_in_turn(self) -> list[Reply | None]:
        """The own sample for each view in turn, None where it has not come."""
        names = [None if view is None else view.name for view in self.views]
        brought = {
            name: iter([sample for sample in self.samples if sample.view == name])
            for name in names
        }
        return [next(brought[name], None) for name in names]

    def draw(
        self,
        role: Role,
        *,
        n: int = 1,
        view: View | None = None,
        turns: tuple[str, ...] = (),
    ) -> Draw:
        """Return a request to the guarded model, with what the settings say for it."""
        is_answer = role == "answer"
        return Draw(
            role=role,
            n=n,
            view=view,
            turns=turns,
            temperature=self.settings.temperature if role == "sample" else None,
            logprobs=role == "self_check" or (self.asks_logprobs and role != "judge"),
            deadline=self.deadline if is_answer else self.samples_deadline,
            retry=self.request.retry,
        )

    def draw_others(self) -> Draws:
        """Return a request for a sample to each other model."""
        names = () if self.request.partial else self.settings.other_models
        until, retried = self.samples_deadline, self.request.others_retried
        return tuple(
            Draw(role="sample", other_model=name, deadline=until, retry=name in retried)
            for name in names
        )

    def send(self, draws: Draws, /) -> Generator[Draws, Any, None]:
        """Have requests sent, and record what came of each."""
        self.drawn += draws
        results = yield draws
        for draw, result in zip(draws, results, strict=True):
            self._take(draw, result)

    def _take(self, draw: Draw, result: Response | Failure | None) -> None:
        """Record the result of a draw."""
        self.costs.append(self._cost_of(draw, result))
        response = result if isinstance(result, Response) else None
        if draw.other_model is not None:
            self._take_other(draw.other_model, result)
        elif draw.role == "self_check":
            self.self_check = response
            if response is None:  # an error's message may hold an answer
                error = getattr(result, "error", TimeoutError())
                _log.warning("the self-check failed: %s", type(error).__name__)
        elif draw.role == "judge":
            self.judgement = response
        elif isinstance(result, Failure):
            self.errors.append(result.error)
            if draw.role == "answer":
                self.answer_error = result.error
        elif response is None:
            self.late = True
            if draw.role == "sample" and self.answer_error is None:
                self.note("samples_late")
        elif draw.role == "answer":
            self.answer_response, self.answer = response, response.replies[0]
        else:
            replies = response.replies[: draw.n]
            read = None if draw.view is None else draw.view.read
            self.samples += replies if read is None else map(read, replies)
            self.temperature_set &= response.temperature_set
            self.greedy |= response.greedy or (
                # What takes the answer's temperature and not the samples' has not
                # refused temperature as such: without one it may draw greedily.
                "temperature" in response.rejected
                and self.request.answer_settings.get("answer_temperature") is not None
            )

    def _take_other(self, name: str, result: Response | Failure | None) -> None:
        """Record what another model said: no error, delay or setting of it counts."""
        if isinstance(result, Response):
            said = result.replies[:1]
            self.other_replies += [replace(each, other_model=name) for each in said]
        else:
            error = getattr(result, "error", TimeoutError())
            _log.warning("another model failed: %s", type(error).__name__)

    def count_open(self) -> None:
        """Count the draws that were still open when the call was broken off."""
        for draw in self.drawn[len(self.costs) :]:
            self.costs.append(self._cost_of(draw, None))

    def _cost_of(self, draw: Draw, result: Response | Failure | None) -> RequestCost:
        """Return the cost of a draw; one that is late may still cost something."""
        brought = 0
        if isinstance(result, Response):
            cost, brought = result.cost, min(len(result.replies), draw.n)
        elif isinstance(result, Failure):
            cost = Cost(attempts=result.attempts)
        else:
            cost = Cost(attempts=1, lower_bound=True)
        counts = {name: getattr(cost, name) for name in COUNTS}
        counts["money"] = self._price_of(cost, draw.other_model)
        return RequestCost(
            role=draw.role,
            view=None if draw.view is None else draw.view.name,
            other_model=draw.other_model,
            replies=brought,
            **counts,
        )

    def _price_of(self, cost: Cost, other_model: str | None) -> float | None:
        """Return the price of a model's tokens, None if it is unknown."""
        prices: Any = self.settings.prices
        if isinstance(prices, Mapping):
            prices = prices.get(other_model or self.request.model)
        elif other_model is not None:
            prices = None  # where they name no model, they are the guarded one's
        return None if prices is None else prices.of(cost)

    def _money(self) -> float | None:
        """Return the price of all requests, None if that of one is unknown."""
        total = 0.0
        for name in dict.fromkeys([None, *(each.other_model for each in self.costs)]):
            own = [each for each in self.costs if each.other_model == name]
            price = self._price_of(sum(own, Cost()), name)
            if price is None:
                return None
            total += price  # by model, since sums of rounded prices look odd
        return total

    def assess(
        self, decision: Decision | None = None, *, withheld: bool = False
    ) -> Assessment:
        """Return the record of the call as it stands."""
        reply_set, score = self.reply_set, self.score
        cost = sum(self.costs, Cost(seconds=time.monotonic() - self.started))
        found: dict[str, Any] = {}
        if reply_set is not None and score is not None:
            found = {
                "reply_set": reply_set.texts,
                "matrix": score.matrix,
                "method": score.method,
                "score": score.value,
                "uncertainty": score.uncertainty,
                "disagreement": score.disagreement,
                "self_check": score.self_check,
            }
        return Assessment(
            id=self.id,
            answer=self.answer,
            samples=(*self.samples, *self.other_replies),
            **found,
            **self.guarantees,
            threshold=self.settings.policy.threshold,
            decision=decision,
            n_requested=self.settings.reply_set_size,
            n_used=0 if reply_set is None else len(reply_set.texts),
            reasons=tuple(self._reasons),
            cost=replace(cost, money=self._money()),
            requests=tuple(self.costs),
            question=self.request.question,
            run_id=self.request.run_id,
            spans=self.spans,
            span_threshold=self.settings.span_threshold,
            fields=self.fields,
            field_threshold=self.settings.field_threshold,
            grounded=self.grounded,
            min_grounded=self.settings.policy.min_grounded,
            withheld=withheld,
        )

    def fail(self, error: BaseException, decision: Decision | None = None) -> Outcome:
        """End the call with an error in place of an answer."""
        return Outcome(
            assessment=self.assess(decision, withheld=True),
            delivery="nothing",
            answer=self.answer_response,
            error=error,
        )

    def skip(self, reason: str) -> Outcome:
        """End the call with the answer, which is not scored by the user's choice."""
        self.note(reason)
        assessment = self.assess(self.settings.policy.skipped().decision)
        answer = self.answer_response
        return Outcome(assessment=assessment, delivery="answer", answer=answer)
