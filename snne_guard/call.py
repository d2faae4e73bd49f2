"""One guarded call: its request, the work it asks for, its state and its outcome."""

from __future__ import annotations

import logging
import time
import uuid
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Generator, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from snne_guard.decision.policy import Delivery
from snne_guard.errors import (
    ConfigurationError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.limiter import Limiter
from snne_guard.sampling.members import Members
from snne_guard.sampling.replies import Draw, Failure, ProviderCapabilities, Reply
from snne_guard.settings import GuardSettings
from snne_guard.similarity.content import LONG_QUESTION
from snne_guard.types import (
    Assessment,
    Cost,
    Decision,
    DrawCost,
    Role,
    Sample,
    Score,
    Span,
)
from snne_guard.views import View

__all__ = [
    "Call",
    "CallState",
    "Draws",
    "GuardState",
    "Outcome",
    "Request",
    "Sender",
    "StreamingSender",
    "Work",
    "uncertain_answer_error",
]

_log = logging.getLogger(__name__)


# -- What it is given ------------------------------------------------------------------


class GuardState:
    """What the calls of one guard share: a limit, and what they have learnt.

    Attributes:
        limiter: How many requests may be in flight, all calls together.
        method: Name of the method that ``method="auto"`` has settled on, None before.
        n_ignored: Whether the provider was seen to ignore or refuse ``n``.
        rejected: Parameters that the provider was seen to reject, by model.
    """

    def __init__(self, limiter: Limiter | None = None) -> None:
        self.limiter = limiter or Limiter(None)
        self.rejected: defaultdict[Hashable, set[str]] = defaultdict(set)
        self.method: str | None = None
        self.n_ignored = False
        self._warned = False

    def question(self, chosen: object, message: str | None, /) -> str | None:
        """Return what the user asks in a call.

        Args:
            chosen: The question as the application gives it, None if it does not.
            message: The user's last message, used if ``chosen`` is None. If it is too
                long to be only a question, there is a warning, once.

        Raises:
            ConfigurationError: ``chosen`` is not a text.
        """
        if isinstance(chosen, str):
            return chosen
        if chosen is not None:
            msg = f"expected the question as a text, got {type(chosen).__name__}"
            raise ConfigurationError(msg)
        if message and len(message) >= LONG_QUESTION and not self._warned:
            self._warned = True
            _log.warning(
                "the user's message has over %d characters: if it holds more than the "
                "question, such as retrieved text, pass the question with question=",
                LONG_QUESTION,
            )
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to the engine for one assessed answer.

    Attributes:
        settings: The options of the guard.
        state: What its calls share.
        capabilities: What the provider supports.
        question: What the user asks, for similarities that use it.
        tools_bound: Whether the answer may call tools on the application's behalf.
        structured: Whether calls are a form of the answer, so that they are compared.
        schema: Whether the answer is to fit a schema, or to be JSON.
        context: What the model was given to answer from, for ``Span.grounded``.
        side_effects: Whether a sample could act on the world, so that none is drawn.
        retry: Whether failed requests are sent again; only where neither the model nor
            its client does so.
        answer: An answer that exists already; then only samples are drawn.
        answer_settings: What the answer is drawn with (``answer_temperature``,
            ``top_p``, ``max_tokens``, ``stop``), as far as that is known.
        run_id: The LangChain run of the call.
    """

    settings: GuardSettings
    state: GuardState
    capabilities: ProviderCapabilities = field(default_factory=ProviderCapabilities)
    question: str | None = field(default=None, repr=False)
    tools_bound: bool = False
    structured: bool = False
    schema: bool = False
    context: str | None = field(default=None, repr=False)
    side_effects: bool = False
    retry: bool = False
    answer: Reply | None = field(default=None, repr=False)
    answer_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str | None = None

    @property
    def views(self) -> tuple[View | None, ...]:
        """The view of each sample; none where the form of an answer is bound."""
        bound = self.tools_bound or self.structured or self.schema
        views = self.settings.sample_views
        return (None,) * len(views) if bound else views

    @property
    def tool_calls_pass(self) -> bool:
        """Whether an answer that calls tools is delivered without a score."""
        skip = self.settings.tool_calls == "skip"
        return self.tools_bound and skip and not self.structured


# -- What it wants done ----------------------------------------------------------------


Draws = tuple[Draw, ...]
"""Asks the driver to send requests to the model, all at once; the answer comes first.

The driver sends back a ``Reply`` or ``Failure`` for each, None for one that was still
open at its deadline. A failed answer ends the wait for the samples.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Asks the driver for the result of a function, or a ``Failure`` if it raises.

    Attributes:
        function: What to call, without arguments.
        deadline: The ``time.monotonic()`` until which to wait, None for no limit; after
            it the result is a ``Failure`` with a ``TimeoutError``.
        quick: Whether it takes next to no time, and so needs neither a thread of its
            own nor a deadline.
    """

    function: Callable[[], Any]
    deadline: float | None = None
    quick: bool = False


class Sender(Protocol):
    """Sends the requests of one guarded call to its model."""

    def send(self, draw: Draw, /) -> Reply:
        """Send one request and wait for its reply."""
        ...

    async def asend(self, draw: Draw, /) -> Reply:
        """Do the same without blocking the event loop."""
        ...


class StreamingSender(Sender, Protocol):
    """A sender that can also pass on the answer's chunks as they come."""

    def stream(self, draw: Draw, /) -> Generator[Any]:
        """Send the request for the answer and yield its chunks."""
        ...

    def astream(self, draw: Draw, /) -> AsyncGenerator[Any]:
        """Do the same without blocking the event loop."""
        ...

    def streamed_answer(self) -> Reply:
        """Return the answer that the chunks make up, once all have passed."""
        ...


# -- How it ends -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guarded call ended.

    Attributes:
        assessment: The record of it, for observers.
        delivery: What the application gets; where that is nothing, ``error`` is raised.
        answer: The answer's reply, None where none came.
        error: What withheld the answer, or why there is none.
        replacement: What ``on_uncertain`` returned.
    """

    assessment: Assessment
    delivery: Delivery
    answer: Reply | None = field(default=None, repr=False)
    error: BaseException | None = None
    replacement: Any = field(default=None, repr=False)

    def assessed(self) -> Assessment:
        """Return the assessment, even if the answer is withheld.

        Raises:
            BaseException: What ended the call before there was an answer to assess.
        """
        withheld = isinstance(self.error, UncertainAnswerError | SamplingError)
        if self.error is None or (withheld and self.answer is not None):
            return self.assessment
        raise self.error


Call = Generator[Draws | Work, Any, Outcome]
"""A guarded call in progress: it yields work to be done, and is sent the results."""


def uncertain_answer_error(assessment: Assessment, /) -> UncertainAnswerError:
    """Return what is raised in place of an answer that is withheld."""
    u = assessment.uncertainty
    if u is None:
        why = "could not be scored"
    elif "uncalibrated" in assessment.reasons:
        why = "is not covered by the calibration"
    else:
        why = f"has an uncertainty of {u:.3f}, above {assessment.threshold}"
    return UncertainAnswerError(
        f"the answer {why}",
        assessment_id=assessment.id,
        uncertainty=u,
        score=assessment.score,
        threshold=assessment.threshold,
        reasons=assessment.reasons,
    )


# -- Its state -------------------------------------------------------------------------


class CallState:
    """What one call has brought so far: replies, errors, cost, reasons and score."""

    def __init__(self, request: Request, *, wants_logprobs: bool) -> None:
        self.request = request
        self.wants_logprobs = wants_logprobs
        self.settings = request.settings
        self.started = time.monotonic()
        self.id = uuid.uuid4().hex
        self.answer = request.answer
        self.drawn: list[Draw] = []
        self.samples: list[Sample] = []
        self.errors: list[BaseException] = []
        self.answer_error: BaseException | None = None
        self.costs: list[DrawCost] = []
        self.temperature_set = True
        self.members: Members | None = None
        self.check_reply: Reply | None = None
        self.judgement: Reply | None = None
        self.score: Score | None = None
        self.promises: dict[str, Any] = {}
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

    @property
    def samples_in_turn(self) -> list[Sample | None]:
        """The sample for each view in turn, None where it has not come."""
        names = [None if view is None else view.name for view in self.request.views]
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
        """Return a request to the model, with what the settings say for its role."""
        is_answer = role == "answer"
        return Draw(
            role=role,
            n=n,
            view=view,
            turns=turns,
            temperature=self.settings.temperature if role == "sample" else None,
            logprobs=role == "check" or (self.wants_logprobs and role != "judge"),
            deadline=self.deadline if is_answer else self.samples_deadline,
        )

    def take(self, draw: Draw, result: Reply | Failure | None) -> None:
        """Record the result of a draw."""
        self.costs.append(self._cost_of(draw, result))
        reply = result if isinstance(result, Reply) else None
        if draw.role == "check":
            self.check_reply = reply
            if reply is None:  # an error's message may hold an answer
                error = getattr(result, "error", TimeoutError())
                _log.warning("the self-check failed: %s", type(error).__name__)
        elif draw.role == "judge":
            self.judgement = reply
        elif isinstance(result, Failure):
            self.errors.append(result.error)
            if draw.role == "answer":
                self.answer_error = result.error
        elif reply is None:
            self.late = True
            if draw.role == "sample" and self.answer_error is None:
                self.note("samples_late")
        elif draw.role == "answer":
            self.answer = reply
        else:
            samples = reply.samples[: draw.n]
            read = None if draw.view is None else draw.view.read
            self.samples += samples if read is None else map(read, samples)
            self.temperature_set &= reply.temperature_set

    def count_open(self) -> None:
        """Count the draws that were still open when the call was broken off."""
        for draw in self.drawn[len(self.costs) :]:
            self.costs.append(self._cost_of(draw, None))

    def _cost_of(self, draw: Draw, result: Reply | Failure | None) -> DrawCost:
        """Return what a draw cost; one that is late may still cost something."""
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
            **{**cost.to_dict(), "money": self._money(cost)},
        )

    def _money(self, cost: Cost) -> float | None:
        prices = self.settings.prices
        return None if prices is None else prices.of(cost)

    def assess(self, decision: Decision | None = None) -> Assessment:
        """Return the record of the call as it stands."""
        members, score = self.members, self.score
        cost = sum(self.costs, Cost(seconds=time.monotonic() - self.started))
        found: dict[str, Any] = {}
        if members is not None and score is not None:
            found = {
                "scored": members.texts,
                "matrix": score.matrix,
                "method": score.method,
                "score": score.value,
                "uncertainty": score.uncertainty,
                "disagreement": score.disagreement,
                "self_check": score.self_check,
            }
        return Assessment(
            id=self.id,
            answer=None if self.answer is None else self.answer.first,
            samples=tuple(self.samples),
            **found,
            **self.promises,
            threshold=self.settings.policy.threshold,
            decision=decision,
            n_requested=self.settings.n_members,
            n_used=0 if members is None else len(members.texts),
            reasons=tuple(self._reasons),
            cost=replace(cost, money=self._money(cost)),
            draws=tuple(self.costs),
            question=self.request.question,
            run_id=self.request.run_id,
            spans=self.spans,
            span_threshold=self.settings.span_threshold,
        )

    def fail(self, error: BaseException, decision: Decision | None = None) -> Outcome:
        """End the call with an error in place of an answer."""
        return Outcome(
            assessment=self.assess(decision),
            delivery="nothing",
            answer=self.answer,
            error=error,
        )

    def skip(self, reason: str) -> Outcome:
        """End the call with the answer, which is not scored by the user's choice."""
        self.note(reason)
        assessment = self.assess(self.settings.policy.skipped().decision)
        return Outcome(assessment=assessment, delivery="answer", answer=self.answer)
