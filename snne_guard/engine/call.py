"""One guarded call, as a generator that does no I/O.

``guarded_call`` decides everything: which draws to make, which replies count, how they
are scored, what becomes of the answer. It yields the work to be done, a ``Draws`` or a
``Work``, and is sent the results. ``threads`` and ``tasks`` do the work; ``replay``
feeds it replies that exist already.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from snne_guard.decision import Calibration
from snne_guard.decision.policy import Verdict
from snne_guard.engine.parts import fields_of, grounding_of, spans_of
from snne_guard.engine.protocol import Call, Draws, Failure, Outcome, Work
from snne_guard.engine.reply_set import ReplySet, compared_text, reply_set_of
from snne_guard.engine.request import Request
from snne_guard.engine.retrying import is_transient
from snne_guard.engine.state import CallState
from snne_guard.errors import (
    ConfigurationError,
    GuardTimeoutError,
    SamplingError,
    UncertainAnswerError,
)
from snne_guard.scorers import Method, score_replies
from snne_guard.self_check import UNKNOWN
from snne_guard.similarity import SIMILARITIES
from snne_guard.types import Assessment, Reply, Score, Similarity

_OURS = (*SIMILARITIES.items(),)
"""The similarities that need no model and are fast."""

_COMPARE_VALUES = [each for each in _OURS if each[0] in {"content_f1", "exact"}]
"""Those kept for calls and JSON; the first replaces any other."""


def guarded_call(request: Request, /) -> Call:
    """Draw an answer and samples, score them, decide; see the module's docstring.

    An exception that is thrown in (a cancellation, an interrupt) ends the call with an
    outcome that has it as ``error`` and says what the call has cost so far.
    """
    call = CallState(request)
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


def _draw_all(call: CallState) -> Generator[Draws, Any, Outcome | None]:
    """Draw the answer and the samples; return the outcome if the call ends with it."""
    request, settings, skipped = call.request, call.settings, _why_skipped(call)
    tools_pass = request.tools_bound and settings.tool_calls == "skip"
    tools_pass &= request.structured is not True
    together = (
        settings.schedule == "concurrent"
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
    if tools_pass and request.calls_tools(call.answer):
        return call.skip("tool_calls")
    if request.side_effects:
        call.note("side_effects")
        return None
    further = (*samples, *_self_check_draws(call, call.answer))
    if further:
        yield from call.send(further)
    in_turn = call.samples_in_turn
    if None in in_turn:
        in_turn = yield from _topped_up(call, in_turn)
    # In the order of the views, so that the first k are what a smaller n would draw.
    call.samples = [*filter(None, in_turn)]
    if not call.temperature_set:
        call.note("temperature_unset")
    return None


def _why_skipped(call: CallState) -> str | None:
    """Return the reason why the user wants no score of this call, or None."""
    if call.disabled:
        return "disabled"
    if call.request.replayed:
        return None
    sampled = random.random() < call.settings.sample_rate  # noqa: S311 - no secret
    return None if sampled else "not_sampled"


def _sample_draws(call: CallState) -> Draws:
    """Return requests for samples: one per view with ``n``, else one per sample."""
    shares = [(view, 1) for view in call.views]
    if "n" in call.request.parameters - call.rejected:
        shares = [*Counter(call.views).items()]
    own = [call.draw("sample", n=n, view=view) for view, n in shares]
    return (*own, *call.draw_others()) if call.settings.other_models else (*own,)


def _self_check_draws(call: CallState, answer: Reply) -> Draws:
    """Return the request for the self-check, if there is one worth making."""
    self_check = call.settings.self_check_used
    if self_check is None or call.is_late or answer.unreadable or answer.refused:
        return ()
    return (call.draw("self_check", turns=(compared_text(answer), self_check.prompt)),)


def _topped_up(
    call: CallState, in_turn: list[Reply | None]
) -> Generator[Draws, Any, list[Reply | None]]:
    """Ask one by one for samples that a request for several did not return."""
    request, had = call.request, len(call.samples)
    places = zip(call.views, in_turn, strict=True)
    missing = [view for view, sample in places if sample is None]
    asked_for_several = any(draw.n > 1 for draw in call.drawn)
    failing = any(map(is_transient, call.errors))
    too_late = call.late or call.is_late
    if asked_for_several and missing and not too_late and not failing:
        further = tuple(call.draw("sample", view=view) for view in missing)
        yield from call.send(further)
        if len(call.samples) > had:
            for key in request.keys:
                request.state.rejections.learn(key, {"n"})
        in_turn = call.samples_in_turn
    if None in in_turn and (call.errors or not call.late):
        call.note("samples_failed")
    return in_turn


def _without_answer(call: CallState) -> Outcome:
    """End a call whose answer failed or did not come in time."""
    call.note("answer_failed")
    if call.answer_error is None:
        seconds = call.settings.timeout or 0.0
        msg = f"the model did not answer within timeout={seconds:g} seconds"
        return call.fail(GuardTimeoutError(msg, timeout=seconds))
    if call.settings.fallback is None or call.disabled:
        return call.fail(call.answer_error)
    assessment = call.assess("fallback", withheld=True)
    error = call.answer_error
    return Outcome(assessment=assessment, delivery="fallback", error=error)


# -- Scoring ---------------------------------------------------------------------------


def _score(call: CallState) -> Generator[Work, Any, Score | None]:
    """Return the score of the reply set, None where it cannot be scored."""
    request, settings, answer = call.request, call.settings, call.answer
    assert answer is not None  # noqa: S101 - drawn before
    reply_set = reply_set_of(
        answer,
        call.samples,
        call.other_replies,
        include_answer=settings.include_answer,
        by_form=request.structured is True
        or (request.schema and not request.tools_bound),
    )
    failed = len(reply_set.others) < len(settings.other_models)
    if failed and not request.side_effects:
        call.note("other_model_failed")
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
    method, similarity = _compared_by(call, reply_set)
    result: Score | Failure = yield Work(
        function=partial(
            score_replies,
            reply_set.texts,
            method=method,
            similarity=similarity,
            question=request.question,
            token_logprobs=reply_set.token_logprobs,
            include_answer=settings.include_answer,
        ),
        deadline=call.deadline,
        quick=reply_set.are_short
        and similarity in _OURS
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
    enough = len(reply_set.texts) >= call.settings.enough_replies
    if not enough or not reply_set.own_samples:  # others alone tell little
        return "too_few_samples"
    if call.greedy:
        return "greedy_samples"
    if call.settings.temperature >= 1 and reply_set.agrees_suspiciously:
        return "suspect_agreement"
    return None


def _compared_by(
    call: CallState, reply_set: ReplySet
) -> tuple[Method, tuple[str, Similarity]]:
    """Return the method of this call, by the log-probabilities it has, and on what."""
    settings, complete = call.settings, reply_set.has_logprobs
    texts = not reply_set.has_tool_calls  # few providers give any for calls
    if not complete and texts and call.wants_logprobs:
        call.note("logprobs_missing")
    method, similarity = settings.methods[complete], settings.similarities[complete]
    by_value = reply_set.has_tool_calls or call.request.structured is True
    if by_value and similarity not in _COMPARE_VALUES:
        similarity = _COMPARE_VALUES[0]
    return method, similarity


# -- Deciding --------------------------------------------------------------------------


def _decide(call: CallState) -> Generator[Draws | Work, Any, Outcome]:
    """Decide on the answer, and end the call so."""
    settings = call.settings
    verdict = yield from _verdict(call)
    replacement: Any = None
    if verdict.delivery == "replacement":
        chosen: Any = yield Work(function=partial(_choose, call, verdict))
        if isinstance(chosen, Failure):
            return call.fail(chosen.error, verdict.decision)
        verdict, replacement = chosen
    if verdict.delivery == "refusal" and settings.refusal is None:
        verdict = replace(verdict, delivery="nothing")
    wants_spans = call.score is not None and settings.span_similarity is not None
    if wants_spans and verdict.delivery == "answer":
        yield from spans_of(call)
    assessment = call.assess(verdict.decision, withheld=verdict.delivery != "answer")
    return Outcome(
        assessment=assessment,
        delivery=verdict.delivery,
        answer=call.answer_response,
        error=_error(call, assessment) if verdict.delivery == "nothing" else None,
        replacement=replacement,
    )


def _verdict(call: CallState) -> Generator[Draws | Work, Any, Verdict]:
    """Return the options' verdict on the answer, its fields and documents."""
    settings, answer, score = call.settings, call.answer, call.score
    assert answer is not None  # noqa: S101 - drawn before
    policy = settings.policy
    if not policy.decides:
        call.note("no_threshold")
    documents = call.request.context is not None or settings.context is not None
    if settings.min_grounded is not None or (settings.spans is not False and documents):
        yield from grounding_of(call)
        if not policy.is_grounded(call.grounded):
            call.note("ungrounded")
    if score is None:
        return policy.unscored(grounded=call.grounded)
    # Nothing without a brace or a bracket is JSON, and every call has some.
    said = answer.tool_calls or answer.text
    if "{" in said or "[" in said:
        yield from fields_of(call)
    calibration = settings.calibration
    covered = calibration is None or _is_covered(call, score, calibration)
    u = _decisive(call, score)
    return policy.scored(u, grounded=call.grounded, covered=covered)


def _decisive(call: CallState, score: Score) -> float | None:
    """Return the uncertainty that decides: the answer's, or that of its worst field.

    A self-check is about all fields, so it can only make the worst one more uncertain.
    """
    if call.settings.decide_on == "answer" or call.fields is None:
        return score.uncertainty
    worst = max((each.uncertainty for each in call.fields), default=None)
    self_check, p_correct = call.settings.self_check_used, score.self_check
    if worst is None or self_check is None or p_correct is None:
        return worst
    u = self_check.uncertainty(disagreement=worst, p_correct=p_correct)
    return max(worst, u)


def _choose(call: CallState, verdict: Verdict) -> tuple[Verdict, Any]:
    """Return the decision of the user's ``on_uncertain`` and its own answer."""
    on_uncertain: Any = call.settings.on_uncertain
    chosen = on_uncertain(call.assess(verdict.decision))
    if not isinstance(chosen, str):
        return verdict, chosen
    verdict = call.settings.policy.chosen(chosen)
    if verdict.delivery == "fallback" and call.settings.fallback is None:
        msg = 'on_uncertain returned "fallback", but the guard has none'
        raise ConfigurationError(msg)
    return verdict, None


def _is_covered(call: CallState, score: Score, calibration: Calibration) -> bool:
    """Hold the reply set against the calibration, and note what that says of it."""
    settings, answer, reply_set = call.settings, call.answer, call.reply_set
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it has a score
    failed = settings.self_check_used is not None and call.self_check is None
    try:
        calibration.check(call.request.answer_settings)
        alike = not failed and call.views == settings.sample_views
    except ConfigurationError:
        alike = False
    if not alike or not calibration.covers(
        n_used=score.n,
        method=score.method,
        similarity=score.similarity,
        models={one.model for one in (answer, *reply_set.own_samples)},
        others={str(one.other_model): one.model for one in reply_set.others},
        temperature_set=call.temperature_set,
    ):
        call.note("uncalibrated")
        return False
    u = score.uncertainty
    if settings.policy.is_grounded(call.grounded) and u is not None:
        certified = calibration.threshold.certified
        call.guarantees = {"certified": certified, "p_wrong": calibration.p_wrong(u)}
    return True


def _error(call: CallState, assessment: Assessment) -> Exception:
    """Return the error for an answer that is withheld by ``"raise"``."""
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
    u = assessment.uncertainty
    if "ungrounded" in assessment.reasons:
        why = "is not grounded in its documents"
    elif u is None:
        why = "could not be scored"
    elif "uncalibrated" in assessment.reasons:
        why = "is not covered by the calibration"
    elif assessment.threshold is not None and u <= assessment.threshold:
        why = "has a field that is too uncertain, or could not be compared"
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
