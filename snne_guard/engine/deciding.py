"""The end of a guarded call: what becomes of an answer once it has a score, or none."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from snne_guard.decision import Calibration
from snne_guard.decision.policy import Verdict
from snne_guard.engine.parts import fields_of, grounding_of, spans_of
from snne_guard.engine.protocol import Draws, Failure, Outcome, Work
from snne_guard.engine.state import CallState
from snne_guard.errors import ConfigurationError, SamplingError, UncertainAnswerError
from snne_guard.types import Assessment, Score


def decide(call: CallState) -> Generator[Draws | Work, Any, Outcome]:
    """Return the decision on the answer."""
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
    covered = settings.calibration is None or _is_covered(call, score)
    u = _decisive(call, score)
    return policy.scored(u, grounded=call.grounded, covered=covered)


def _decisive(call: CallState, score: Score) -> float | None:
    """Return the uncertainty that decides: the answer's, or that of its worst field.

    A self-check is about all fields, so it can only make the worst one more uncertain.
    """
    if call.settings.decide_on == "answer" or call.fields is None:
        return score.uncertainty
    worst = max((each.uncertainty for each in call.fields), default=None)
    turn, p_correct = call.settings.self_check_used, score.self_check
    if worst is None or turn is None or p_correct is None:
        return worst
    return max(worst, turn.uncertainty(disagreement=worst, p_correct=p_correct))


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


def _is_covered(call: CallState, score: Score) -> bool:
    """Return whether the calibration was made for such a set, and note what it says."""
    settings, reply_set, u = call.settings, call.reply_set, score.uncertainty
    calibration, answer = settings.calibration, call.answer
    assert isinstance(calibration, Calibration)  # noqa: S101 - loaded, if it was a path
    assert answer is not None and reply_set is not None  # noqa: S101, PT018 - it has a score
    asked = settings.self_check_used is not None and call.self_check is None
    try:
        calibration.check(call.request.answer_settings)
        alike = not asked and call.views == settings.sample_views
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
