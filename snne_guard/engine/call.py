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
from functools import partial
from typing import Any

from snne_guard.engine.deciding import decide
from snne_guard.engine.protocol import Call, Draws, Failure, Outcome, Work
from snne_guard.engine.reply_set import ReplySet, compared_text, reply_set_of
from snne_guard.engine.request import Request
from snne_guard.engine.retrying import is_transient
from snne_guard.engine.state import CallState
from snne_guard.errors import GuardTimeoutError
from snne_guard.scorers import Method, score_replies
from snne_guard.self_check import UNKNOWN
from snne_guard.similarity import SIMILARITIES
from snne_guard.types import Reply, Score, Similarity

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
        return (yield from decide(call))
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
    if call.request.capabilities.n and "n" not in call.rejected:
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
    """Return the score of the reply set, None where they cannot be scored."""
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
    if call.settings.temperature >= 1 and reply_set.improbable:
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
