"""One guarded call, as a generator without input or output.

``guarded_call`` decides everything: which draws to make, which replies count, how they
are scored, what becomes of the answer. It yields what it wants done, a ``Draws`` or a
``Work``, and is sent what came of it. The drivers in ``snne_guard.drivers`` do the
work, by threads or by tasks.
"""

from __future__ import annotations

import logging
import os
import random
import time
import uuid
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from snne_guard.decision import Calibration, Verdict
from snne_guard.errors import (
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.members import Members, select_members
from snne_guard.observers import Observers
from snne_guard.sampling.agreement import agree_suspiciously
from snne_guard.sampling.replies import Draw, Failure, ProviderCapabilities, Reply
from snne_guard.scorers import resolve_method, score_members
from snne_guard.settings import GuardSettings
from snne_guard.types import Assessment, Cost, Sample, Score

__all__ = [
    "Delivery",
    "Draws",
    "GuardState",
    "Outcome",
    "Request",
    "Work",
    "guarded_call",
    "wants_logprobs",
]

Delivery = Literal["answer", "refusal", "fallback", "replacement", "nothing"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """Wanted: requests to the model, all at once.

    The driver sends back a ``Reply`` or ``Failure`` for each, None for one that was
    still open at its deadline. A failed answer ends the wait for the samples.

    Attributes:
        draws: The requests.
        deadlines: For each the ``time.monotonic()`` until which to wait, None for ever.
    """

    draws: tuple[Draw, ...]
    deadlines: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Wanted: the result of a function, or a ``Failure`` with what it raised.

    Attributes:
        function: What to call, without arguments.
        deadline: As for ``Draws``; a ``Failure`` with a ``TimeoutError`` after it.
        quick: Whether it may run on an event loop's own thread.
    """

    function: Callable[[], Any]
    deadline: float | None = None
    quick: bool = False


class GuardState:
    """What the calls of one guard share.

    Attributes:
        observers: Who is told of assessments.
        method: Name of the method that ``method="auto"`` has settled on, None as yet.
        n_ignored: Whether the provider was seen to ignore or refuse ``n``.
        rejected: Request parameters that the provider was seen to refuse.
    """

    def __init__(self, settings: GuardSettings) -> None:
        self.observers = Observers(settings.observers)
        self.method: str | None = None
        self.n_ignored = False
        self.rejected: set[str] = set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a door asks of the engine.

    Attributes:
        settings: The options of the guard.
        state: What its calls share.
        capabilities: What the provider takes.
        question: What the user asks, for similarities that use it.
        tools_bound: Whether the answer may call tools on the application's behalf.
        structured: Whether calls are a form of the answer, so that they are compared.
        side_effects: Whether a sample could act on the world, so that none is drawn.
        answer: An answer that exists already; then only samples are drawn.
        answer_settings: What the answer is drawn with (``answer_temperature``,
            ``top_p``, ``max_tokens``, ``stop``), as far as that is known.
        run_id: The LangChain run of the call.
    """

    settings: GuardSettings
    state: GuardState
    capabilities: ProviderCapabilities = ProviderCapabilities()
    question: str | None = field(default=None, repr=False)
    tools_bound: bool = False
    structured: bool = False
    side_effects: bool = False
    answer: Reply | None = field(default=None, repr=False)
    answer_settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    run_id: str | None = None

    @property
    def calls_pass(self) -> bool:
        """Whether an answer that calls tools is delivered without a score."""
        skip = self.settings.tool_calls == "skip"
        return self.tools_bound and skip and not self.structured


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a guarded call ended.

    Attributes:
        assessment: The record of it, which observers are told.
        delivery: What the application gets: the answer, the refusal text, what the
            fallback says, what ``on_uncertain`` returned, or nothing but ``error``.
        answer: The answer's reply, None where none came.
        error: What is raised in place of an answer.
        replacement: What ``on_uncertain`` returned, where that was no known word.
    """

    assessment: Assessment
    delivery: Delivery
    answer: Reply | None = field(default=None, repr=False)
    error: BaseException | None = None
    replacement: Any = field(default=None, repr=False)


Call = Generator[Draws | Work, Any, Outcome]


def wants_logprobs(request: Request, /) -> bool:
    """Return whether draws of this call should ask for log-probabilities."""
    if not request.capabilities.logprobs or request.state.method == "snne":
        return False
    method = resolve_method(request.settings.method, logprobs=True)
    return any("logprobs" in need for need in method.needs)


def guarded_call(request: Request, /) -> Call:
    """Draw an answer and samples, score them, decide; see the module's docstring.

    An exception that is thrown in (a cancellation, an interrupt) ends the call with an
    outcome that has it as ``error`` and tells what the call had cost.
    """
    call = _CallState(request)
    try:
        ended = yield from _draw_all(call)
        if ended is not None:
            return ended
        score = yield from _score(call)
        return (yield from _decide(call, score))
    except BaseException as error:  # noqa: BLE001 - handed to the driver, which raises it
        call.note("cancelled")
        return call.fail(error)


class _CallState:
    """What has happened so far in one call."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.settings = request.settings
        self.started = time.monotonic()
        self.id = uuid.uuid4().hex
        self.answer = request.answer
        self.samples: list[Sample] = []
        self.errors: list[BaseException] = []
        self.cost = Cost(money=0.0)
        self.temperature_set = request.capabilities.temperature
        self.members: Members | None = None
        self._reasons: list[str] = []

    def note(self, reason: str) -> None:
        if reason not in self._reasons:
            self._reasons.append(reason)

    @property
    def deadline(self) -> float | None:
        limit = self.settings.timeout
        return None if limit is None else self.started + limit

    @property
    def samples_deadline(self) -> float | None:
        limits = [self.settings.timeout, self.settings.sample_timeout]
        given = [limit for limit in limits if limit is not None]
        return self.started + min(given) if given else None

    def take(self, draw: Draw, result: Reply | Failure | None) -> None:
        """Count what a draw brought."""
        if result is None:
            self.cost += Cost(attempts=1, lower_bound=True, money=0.0)
            self.note("samples_late")
        elif isinstance(result, Failure):
            self.cost += Cost(attempts=result.attempts, money=0.0)
            self.errors.append(result.error)
        else:
            self.cost += replace(result.cost, money=0.0)
            if draw.role == "answer":
                self.answer = result
                return
            self.samples.extend(result.samples[: draw.n])
            self.temperature_set &= result.temperature_set

    def assess(self, score: Score | None = None, **decided: Any) -> Assessment:  # noqa: ANN401
        """Return the record of the call as it stands."""
        prices, members = self.settings.prices, self.members
        compared = members is not None and score is not None
        return Assessment(
            id=self.id,
            answer=None if self.answer is None else self.answer.samples[0],
            samples=tuple(self.samples),
            scored=members.texts if members is not None and compared else (),
            matrix=None if score is None else score.matrix,
            method=None if score is None else score.method,
            score=None if score is None else score.value,
            uncertainty=None if score is None else score.uncertainty,
            threshold=self.settings.policy.threshold,
            n_requested=self.settings.n,
            n_used=0 if members is None else len(members.texts),
            reasons=tuple(self._reasons),
            cost=replace(
                self.cost,
                seconds=time.monotonic() - self.started,
                money=None if prices is None else prices.of(self.cost),
            ),
            question=self.request.question,
            run_id=self.request.run_id,
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


# -- Drawing ---------------------------------------------------------------------------


def _draw_all(call: _CallState) -> Generator[Draws, Any, Outcome | None]:
    """Draw the answer and the samples; return the outcome if the call ends with it."""
    request, settings = call.request, call.settings
    unsampled = _why_unsampled(request)
    beside = settings.schedule == "concurrent" and not request.calls_pass
    answer = () if call.answer is not None else (Draw(role="answer"),)
    if answer:
        samples = _sample_draws(call) if beside and unsampled is None else ()
        yield from _send(call, (*answer, *samples))
        if call.answer is None:
            return _without_answer(call)
    assert call.answer is not None  # noqa: S101 - either given or drawn
    if unsampled is not None and unsampled != "side_effects":
        return call.skip(unsampled)
    if request.calls_pass and call.answer.samples[0].tool_calls is not None:
        return call.skip("tool_calls")
    if unsampled is not None:
        call.note(unsampled)
        return None
    if not (answer and beside):
        yield from _send(call, _sample_draws(call))
    yield from _top_up(call)
    if not call.temperature_set:
        call.note("temperature_unset")
    return None


def _why_unsampled(request: Request) -> str | None:
    if os.environ.get("SNNE_GUARD_DISABLED", "") not in {"", "0"}:
        return "disabled"
    if random.random() >= request.settings.sample_rate:  # noqa: S311 - no secret
        return "not_sampled"
    return "side_effects" if request.side_effects else None


def _sample_draws(call: _CallState, missing: int | None = None) -> tuple[Draw, ...]:
    """Return requests for samples: all in one where the provider takes that."""
    n = call.settings.n_samples if missing is None else missing
    together = call.request.capabilities.n and not call.request.state.n_ignored
    if together and missing is None:
        return (Draw(role="sample", n=n),)
    return (Draw(role="sample"),) * n


def _send(call: _CallState, draws: tuple[Draw, ...]) -> Generator[Draws, Any, None]:
    limits = {"answer": call.deadline, "sample": call.samples_deadline}
    deadlines = tuple(limits[draw.role] for draw in draws)
    results = yield Draws(draws=draws, deadlines=deadlines)
    for draw, result in zip(draws, results, strict=True):
        call.take(draw, result)
    if any(isinstance(result, Failure) for result in results):
        call.note("samples_failed")


def _top_up(call: _CallState) -> Generator[Draws, Any, None]:
    """Ask one by one for what a request for several replies did not bring."""
    state, missing = call.request.state, call.settings.n_samples - len(call.samples)
    together = call.request.capabilities.n and not state.n_ignored
    if not together or missing <= 0 or "samples_late" in call.assess().reasons:
        return
    failed = len(call.errors)
    had = len(call.samples)
    yield from _send(call, _sample_draws(call, missing))
    if len(call.samples) > had:
        state.n_ignored = True
        # One by one works, so nothing is missing that the failed request was for.
        if len(call.errors) == failed:
            call._reasons = [each for each in call._reasons if each != "samples_failed"]


def _without_answer(call: _CallState) -> Outcome:
    """End a call whose answer failed or did not come in time."""
    call.note("answer_failed")
    error: BaseException
    if call.errors:
        error = call.errors[0]
    else:
        seconds = call.settings.timeout or 0.0
        msg = f"the model did not answer within timeout={seconds:g} seconds"
        error = GuardTimeoutError(msg, timeout=seconds)
    falls_back = call.settings.fallback is not None and isinstance(error, Exception)
    if falls_back and not isinstance(error, GuardTimeoutError):
        assessment = call.assess(decision="fallback")
        return Outcome(assessment=assessment, delivery="fallback")
    return call.fail(error)


# -- Scoring ---------------------------------------------------------------------------


def _score(call: _CallState) -> Generator[Work, Any, Score | None]:
    """Return the score of the members, None where they cannot be scored."""
    request, settings, answer = call.request, call.settings, call.answer
    assert answer is not None  # noqa: S101 - drawn before
    members = select_members(
        answer.samples[0], call.samples, include_answer=settings.include_answer
    )
    for reason in members.reasons:
        call.note(reason)
    if not members.answer_readable:
        return None
    if len(members.texts) < settings.needed:
        call.note("too_few_samples")
        return None
    call.members = members
    if settings.temperature >= 1 and agree_suspiciously(members.samples):
        call.note("suspect_agreement")
        return None
    method = _method_for(call, members)
    result = yield Work(
        function=partial(
            score_members,
            members.texts,
            token_logprobs=members.token_logprobs,
            question=request.question,
            method=method,
            similarity="structured" if members.calls else settings.similarity,
            tau=settings.tau,
            include_answer=settings.include_answer,
        ),
        deadline=call.deadline,
        quick=members.are_short and settings.similarity is None,
    )
    if isinstance(result, Failure):
        kind = type(result.error).__name__
        _log.warning("scoring failed: %s", kind)  # its message may hold an answer
        call.errors.append(result.error)
        call.note("scoring_failed")
        return None
    for reason in result.reasons:
        call.note(reason)
    if result.uncertainty is None:
        call.note("scoring_failed")
    return result


def _method_for(call: _CallState, members: Members) -> Any:  # noqa: ANN401 - a Method
    """Return the method that runs; ``"auto"`` is settled by the guard's first call."""
    wanted, state = call.settings.method, call.request.state
    complete = all(one is not None for one in members.token_logprobs)
    expected = wants_logprobs(call.request)
    if expected and not complete:
        call.note("logprobs_missing")
    method = resolve_method(wanted, logprobs=complete)
    if wanted == "auto" and state.method is None:
        state.method = method.name
    if wanted == "auto" and state.method == "snne":
        return resolve_method("snne", logprobs=complete)
    return method


# -- Deciding --------------------------------------------------------------------------


def _decide(call: _CallState, score: Score | None) -> Generator[Work, Any, Outcome]:
    """Return what becomes of the answer."""
    policy, calibration = call.settings.policy, call.settings.calibration
    if policy.threshold is None:
        call.note("no_threshold")
    if score is None:
        verdict, certified, p_wrong = policy.unscored(), False, None
    else:
        covered = _is_covered(call, score)
        if not covered:
            call.note("uncalibrated")
        verdict = policy.scored(score.uncertainty, covered=covered)
        whole = covered and score.n == call.settings.n and score.uncertainty is not None
        certified = call.settings.certified and whole
        p_wrong = None
        if whole and isinstance(calibration, Calibration):
            p_wrong = calibration.p_wrong(score.uncertainty or 0.0)
    decided = {"certified": certified, "p_wrong": p_wrong}
    replacement: Any = None
    if verdict.action == "ask":
        assessment = call.assess(score, decision=verdict.decision, **decided)
        on_uncertain: Any = call.settings.on_uncertain
        result = yield Work(function=partial(on_uncertain, assessment))
        if isinstance(result, Failure):
            return replace(call.fail(result.error), assessment=assessment)
        if isinstance(result, str):
            verdict = policy.chosen(result)
        else:
            replacement = result
    assessment = call.assess(score, decision=verdict.decision, **decided)
    return _outcome(call, assessment, verdict, replacement)


def _is_covered(call: _CallState, score: Score) -> bool:
    """Return whether the set is one that the calibration was made for."""
    calibration, members = call.settings.calibration, call.members
    if not isinstance(calibration, Calibration) or members is None:
        return True
    answer = () if call.answer is None else call.answer.samples[:1]
    same = calibration.matches(call.request.answer_settings)
    return same and calibration.covers(
        n_used=score.n,
        method=score.method,
        similarity=score.similarity,
        models={one.model for one in (*answer, *members.samples)},
        temperature_set=call.temperature_set,
    )


def _outcome(
    call: _CallState,
    assessment: Assessment,
    verdict: Verdict,
    replacement: Any,  # noqa: ANN401
) -> Outcome:
    deliveries: dict[str, Delivery] = {
        "deliver": "answer",
        "ask": "replacement",
        "refuse": "refusal",
        "fallback": "fallback",
        "raise": "nothing",
    }
    error = _error(call, assessment) if verdict.action == "raise" else None
    return Outcome(
        assessment=assessment,
        delivery=deliveries[verdict.action],
        answer=call.answer,
        error=error,
        replacement=replacement,
    )


def _error(call: _CallState, assessment: Assessment) -> Exception:
    """Return what stands for an answer that is withheld by ``"raise"``."""
    if assessment.score is None and call.settings.on_error == "raise":
        needed = call.settings.needed
        msg = (
            f"the answer could not be scored: {assessment.n_used} of at least {needed} "
            f"members could be used ({', '.join(assessment.reasons) or 'no reason'})"
        )
        return SamplingError(
            msg,
            assessment_id=assessment.id,
            n_used=assessment.n_used,
            needed=needed,
            reasons=assessment.reasons,
            causes=tuple(call.errors),
        )
    u = assessment.uncertainty
    why = "could not be scored" if u is None else f"has an uncertainty of {u:.3f}"
    msg = f"the answer {why}; accepted is at most {assessment.threshold}"
    return UncertainAnswerError(
        msg,
        assessment_id=assessment.id,
        uncertainty=u,
        score=assessment.score,
        threshold=assessment.threshold,
        reasons=assessment.reasons,
    )
