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
    policy, score = call.settings.policy, call.score
    if not policy.decides:
        call.note("no_threshold")
    yield from grounding_of(call)
    if not policy.is_grounded(call.grounded):
        call.note("ungrounded")
    if score is None:
        verdict = policy.unscored(grounded=call.grounded)
    else:
        yield from fields_of(call)
        covered = _is_covered(call, score)
        if not covered:
            call.note("uncalibrated")
        elif policy.is_grounded(call.grounded):
            call.guarantees = _guarantees(call, score)
        verdict = policy.scored(
            _decisive(call, score), grounded=call.grounded, covered=covered
        )
    replacement: Any = None
    if verdict.delivery == "replacement":
        chosen: Any = yield Work(function=partial(_choose, call, verdict))
        if isinstance(chosen, Failure):
            return call.fail(chosen.error, verdict.decision)
        verdict, replacement = chosen
    if verdict.delivery == "refusal" and call.settings.refusal is None:
        verdict = replace(verdict, delivery="nothing")
    if score is not None and verdict.delivery == "answer":
        yield from spans_of(call)
    assessment = call.assess(verdict.decision)
    return Outcome(
        assessment=assessment,
        delivery=verdict.delivery,
        answer=call.answer_response,
        error=_error(call, assessment) if verdict.delivery == "nothing" else None,
        replacement=replacement,
    )


def _decisive(call: CallState, score: Score) -> float | None:
    """Return the uncertainty that decides: the answer's, or that of its worst field."""
    if call.settings.decide_on == "answer" or call.fields is None:
        return score.uncertainty
    return max((each.uncertainty for each in call.fields), default=None)


def _guarantees(call: CallState, score: Score) -> dict[str, Any]:
    """Return the verdict of a calibration on an answer that it covers."""
    calibration, u = call.settings.calibration, score.uncertainty
    if not isinstance(calibration, Calibration) or u is None:
        return {}
    certified = calibration.threshold.certified
    return {"certified": certified, "p_wrong": calibration.p_wrong(u)}


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
        models={one.model for one in (*answer, *reply_set.own_samples)},
        others={str(one.other_model): one.model for one in reply_set.others},
        temperature_set=call.temperature_set,
    )


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
    return uncertain_answer_error(assessment)


def uncertain_answer_error(assessment: Assessment, /) -> UncertainAnswerError:
    """Return the error that is raised in place of a withheld answer."""
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
