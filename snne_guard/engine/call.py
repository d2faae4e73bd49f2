"""One guarded call, as a generator that does no I/O.

``guarded_call`` decides everything: which draws to make, which replies count, how they
are scored, what becomes of the answer. It yields the work to be done, a ``Draws`` or a
``Work``, and is sent the results. ``threads`` and ``tasks`` do the work; ``replay``
feeds it replies that exist already.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from snne_guard.decision import Calibration
from snne_guard.decision.policy import Verdict
from snne_guard.engine.protocol import Call, Draws, Failure, Outcome, Work
from snne_guard.engine.reply_set import (
    ReplySet,
    agree_suspiciously,
    compared_text,
    reply_set_of,
)
from snne_guard.engine.request import Request
from snne_guard.engine.retrying import is_transient
from snne_guard.engine.state import CallState
from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.scorers import Method, resolve_method, score
from snne_guard.self_check import UNKNOWN
from snne_guard.settings import is_disabled
from snne_guard.similarity import SIMILARITIES
from snne_guard.similarity.judge import judge_prompt
from snne_guard.spans import SpanJudge, score_spans
from snne_guard.spans.cutting import cut
from snne_guard.types import Assessment, Reply, Score, SpanSimilarity

_COMPARES_VALUES = ("content_f1", "exact")
"""Similarities kept for calls and JSON; the first replaces any other."""


def guarded_call(request: Request, /) -> Call:
    """Draw an answer and samples, score them, decide; see the module's docstring.

    An exception that is thrown in (a cancellation, an interrupt) ends the call with an
    outcome that has it as ``error`` and says what the call has cost so far.
    """
    disabled = is_disabled() and not request.replayed
    wants_logprobs = not disabled and _wants_logprobs(request)
    call = CallState(request, disabled=disabled, wants_logprobs=wants_logprobs)
    try:
        ended = yield from _draw_all(call)
        if ended is not None:
            return ended
        call.score = yield from _score(call)
        return (yield from _decide(call))
    except BaseException as error:  # noqa: BLE001 - whoever called raises it
        call.count_open()
        call.note("cancelled")
        return call.fail(error)


# -- Drawing ---------------------------------------------------------------------------


def _wants_logprobs(request: Request) -> bool:
    """Return whether draws of this call should ask for log-probabilities."""
    method = resolve_method(request.settings.method, logprobs=True)
    offered = request.capabilities.logprobs or request.settings.method != "auto"
    return offered and method.needs_logprobs


def _draw_all(call: CallState) -> Generator[Draws, Any, Outcome | None]:
    """Draw the answer and the samples; return the outcome if the call ends with it."""
    request = call.request
    skipped, tools_pass = _why_skipped(call), request.tool_calls_pass
    together = (
        call.settings.schedule == "concurrent"
        and skipped is None
        and not request.side_effects
        and not tools_pass
    )
    samples = _sample_draws(call)
    if call.answer is None:
        beside, samples = (samples, ()) if together else ((), samples)
        yield from call.send((call.draw("answer"), *beside))
        if call.answer is None:
            return _without_answer(call)
    if skipped is not None:
        return call.skip(skipped)
    if tools_pass and call.answer.tool_calls is not None:
        return call.skip("tool_calls")
    if request.side_effects:
        call.note("side_effects")
        return None
    further = (*samples, *_self_check_draws(call, call.answer))
    if further:
        yield from call.send(further)
    yield from _top_up(call)
    if not call.temperature_set:
        call.note("temperature_unset")
    return None


def _why_skipped(call: CallState) -> str | None:
    """Return why the user wants no score of this call, None where one is wanted."""
    if call.disabled:
        return "disabled"
    if call.request.replayed:
        return None
    sampled = random.random() < call.settings.sample_rate  # noqa: S311 - no secret
    return None if sampled else "not_sampled"


def _sample_draws(call: CallState) -> Draws:
    """Return requests for samples: one per view with ``n``, else one per sample."""
    wanted = call.views
    if call.request.capabilities.n and "n" not in call.rejected:
        shares = Counter(wanted).items()
        return tuple(call.draw("sample", n=n, view=view) for view, n in shares)
    return tuple(call.draw("sample", view=view) for view in wanted)


def _self_check_draws(call: CallState, answer: Reply) -> Draws:
    """Return the request for the self-check, if there is one worth making."""
    self_check = call.settings.self_check_used
    if self_check is None or call.is_late or answer.unreadable or answer.refused:
        return ()
    return (call.draw("self_check", turns=(compared_text(answer), self_check.prompt)),)


def _top_up(call: CallState) -> Generator[Draws, Any, None]:
    """Ask one by one for samples that a request for several did not return."""
    request, had = call.request, len(call.samples)
    in_turn = call.samples_in_turn
    places = zip(call.views, in_turn, strict=True)
    missing = [view for view, sample in places if sample is None]
    asked_for_several = any(draw.n > 1 for draw in call.drawn)
    failing = any(map(is_transient, call.errors))
    if asked_for_several and missing and not call.late and not failing:
        further = tuple(call.draw("sample", view=view) for view in missing)
        yield from call.send(further)
        if len(call.samples) > had:
            for key in request.keys:
                request.state.rejections.learn(key, {"n"})
        in_turn = call.samples_in_turn
    if None in in_turn and (call.errors or not call.late):
        call.note("samples_failed")
    # In the order of the views, so that the first k are what a smaller n would draw.
    call.samples = [*filter(None, in_turn)]


def _without_answer(call: CallState) -> Outcome:
    """End a call whose answer failed or did not come in time."""
    call.note("answer_failed")
    if call.answer_error is None:
        seconds = call.settings.timeout or 0.0
        msg = f"the model did not answer within timeout={seconds:g} seconds"
        return call.fail(GuardTimeoutError(msg, timeout=seconds))
    if call.settings.fallback is None or call.disabled:
        return call.fail(call.answer_error)
    assessment = call.assess("fallback")
    error = call.answer_error
    return Outcome(assessment=assessment, delivery="fallback", error=error)


# -- Scoring ---------------------------------------------------------------------------


def _score(call: CallState) -> Generator[Work, Any, Score | None]:
    """Return the score of the reply set, None where they cannot be scored."""
    request, settings, answer = call.request, call.settings, call.answer
    assert answer is not None  # noqa: S101 - drawn before
    reply_set = reply_set_of(
        answer, call.samples, include_answer=settings.include_answer
    )
    call.reply_set = reply_set
    for reason in reply_set.reasons:
        call.note(reason)
    if not reply_set.answer_readable:
        return None
    if problem := _why_unscored(call, reply_set):
        call.note(problem)
        return None
    self_check = settings.self_check_used
    p_correct = None if call.self_check is None else call.self_check.p_correct
    if self_check is not None and p_correct is None:
        call.note("self_check_unknown")
        p_correct = UNKNOWN
    method = _method_for(call, reply_set)
    similarity = settings.similarity_for(method)
    by_value = reply_set.has_tool_calls or request.structured
    if by_value and similarity not in _COMPARES_VALUES:
        similarity = "content_f1"
    result: Score | Failure = yield Work(
        function=partial(
            score,
            reply_set.texts,
            method=method,
            similarity=similarity,
            question=request.question,
            token_logprobs=reply_set.token_logprobs,
            include_answer=settings.include_answer,
        ),
        deadline=call.deadline,
        # What this library brings needs no model and is fast.
        quick=reply_set.are_short
        and isinstance(similarity, str)
        and similarity in SIMILARITIES
        and isinstance(settings.method, str),
    )
    if isinstance(result, Failure):
        call.errors.append(result.error)
        call.note_failure("an answer", result.error, reason="scoring_failed")
        return None
    for reason in result.reasons:
        call.note(reason)
    if self_check is None or p_correct is None:
        return result
    return self_check.applied(result, p_correct)


def _why_unscored(call: CallState, reply_set: ReplySet) -> str | None:
    """Return the reason why readable replies cannot be scored, None where they can."""
    if len(reply_set.texts) < call.settings.enough_replies:
        return "too_few_samples"
    if call.greedy:
        return "greedy_samples"
    if call.settings.temperature >= 1 and agree_suspiciously(reply_set.samples):
        return "suspect_agreement"
    return None


def _method_for(call: CallState, reply_set: ReplySet) -> Method:
    """Return the method that runs in this call, by the log-probabilities it has."""
    wanted = call.settings.method
    complete = all(one is not None for one in reply_set.token_logprobs)
    texts = not reply_set.has_tool_calls  # few providers give any for calls
    if not complete and texts and call.wants_logprobs:
        call.note("logprobs_missing")
    method = resolve_method(wanted, logprobs=complete)
    if complete or not method.needs_logprobs:
        return method
    return method.without_logprobs or method


# -- Deciding --------------------------------------------------------------------------


def _decide(call: CallState) -> Generator[Draws | Work, Any, Outcome]:
    """Return what becomes of the answer."""
    policy, score = call.settings.policy, call.score
    if policy.threshold is None:
        call.note("no_threshold")
    if score is None:
        verdict = policy.unscored()
    else:
        covered = _is_covered(call, score)
        if covered:
            call.guarantees = _guarantees(call, score)
        else:
            call.note("uncalibrated")
        verdict = policy.scored(score.uncertainty, covered=covered)
    replacement: Any = None
    if verdict.delivery == "replacement":
        chosen: Any = yield Work(function=partial(_choose, call, verdict))
        if isinstance(chosen, Failure):
            return call.fail(chosen.error, verdict.decision)
        verdict, replacement = chosen
    if verdict.delivery == "refusal" and call.settings.refusal is None:
        verdict = replace(verdict, delivery="nothing")
    if score is not None and verdict.delivery == "answer":
        yield from _score_spans(call)
    assessment = call.assess(verdict.decision)
    return Outcome(
        assessment=assessment,
        delivery=verdict.delivery,
        answer=call.answer_response,
        error=_error(call, assessment) if verdict.delivery == "nothing" else None,
        replacement=replacement,
    )


def _score_spans(call: CallState) -> Generator[Draws | Work, Any, None]:
    """Give each part of a text that is delivered its own uncertainty, if wanted."""
    request, reply_set, compare = (
        call.request,
        call.reply_set,
        call.settings.span_similarity,
    )
    answer = call.answer
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it is scored
    is_text = not (request.structured or request.schema or reply_set.has_tool_calls)
    if compare is None or not is_text or not reply_set.samples:
        return
    text, samples = answer.text, [sample.text for sample in reply_set.samples]
    if compare == "judge":
        compare = yield from _judge(call, text, samples)
    result: Any = yield Work(
        function=partial(
            score_spans,
            text,
            samples,
            question=request.question,
            context=request.context,
            similarity=compare,
        ),
        deadline=call.deadline,
    )
    if isinstance(result, Failure):
        call.note_failure("spans", result.error, reason="spans_failed")
    else:
        call.spans = tuple(result)


def _judge(
    call: CallState, text: str, samples: Sequence[str]
) -> Generator[Draws | Work, Any, SpanSimilarity]:
    """Ask the guarded model which samples support the parts of its answer."""
    context, question = call.request.context, call.request.question
    texts = [*samples] if context is None else [*samples, context]

    def prompt() -> str | None:
        parts = [text[start:end] for start, end in cut(text)]
        return judge_prompt(parts, texts, question) if parts else None

    asked = yield Work(function=prompt, deadline=call.deadline)
    if isinstance(asked, str) and not call.is_late:
        yield from call.send((call.draw("judge", turns=(text, asked)),))
    replies = () if call.judgement is None else call.judgement.replies
    reply = replies[0].text if replies else ""
    return SpanJudge(lambda _: reply)


def _guarantees(call: CallState, score: Score) -> dict[str, Any]:
    """Return what a calibration says of an answer that it covers."""
    calibration, u = call.settings.calibration, score.uncertainty
    if not isinstance(calibration, Calibration) or u is None:
        return {}
    certified = calibration.threshold.certified
    return {"certified": certified, "p_wrong": calibration.p_wrong(u)}


def _choose(call: CallState, verdict: Verdict) -> tuple[Verdict, Any]:
    """Return what the user's ``on_uncertain`` decides, and what it gives instead."""
    on_uncertain: Any = call.settings.on_uncertain
    chosen = on_uncertain(call.assess(verdict.decision))
    if not isinstance(chosen, str):
        return verdict, chosen
    verdict = call.settings.policy.chosen(chosen)
    if verdict.delivery == "fallback" and call.settings.fallback is None:
        msg = 'on_uncertain returned "fallback", but the guard has none'
        raise ConfigurationError(msg)
    return verdict, None


def _is_covered(call: CallState, score: Score) -> bool:
    """Return whether a calibration, if there is one, was made for such a set."""
    calibration, reply_set = call.settings.calibration, call.reply_set
    if not isinstance(calibration, Calibration):
        return True
    assert reply_set is not None  # noqa: S101 - it has a score
    asked = call.settings.self_check_used is not None
    if (asked and call.self_check is None) or (
        call.views != call.settings.sample_views
    ):
        return False
    answer = () if call.answer is None else (call.answer,)
    try:
        calibration.check(call.request.answer_settings)
    except ConfigurationError:
        return False
    return calibration.covers(
        n_used=score.n,
        method=score.method,
        similarity=score.similarity,
        models={one.model for one in (*answer, *reply_set.samples)},
        temperature_set=call.temperature_set,
    )


def _error(call: CallState, assessment: Assessment) -> Exception:
    """Return what stands for an answer that is withheld by ``"raise"``."""
    if assessment.score is None and call.settings.on_error == "raise":
        needed = call.settings.enough_replies
        msg = (
            f"the answer could not be scored ({', '.join(assessment.reasons)}): "
            f"only {assessment.n_used} replies could be compared, {needed} are needed"
        )
        return SamplingError(
            msg,
            assessment_id=assessment.id,
            n_used=assessment.n_used,
            needed=needed,
            reasons=assessment.reasons,
            causes=tuple(type(error).__name__ for error in call.errors),
        )
    return uncertain_answer_error(assessment)


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
