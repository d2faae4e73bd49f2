"""Recordings as a guard would have met them: their replies go through its engine."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, islice
from typing import Any, get_args

import numpy as np

from snne_guard.checks import check_choice
from snne_guard.decision.calibration import ANSWER_SETTINGS
from snne_guard.engine import (
    Draw,
    Failure,
    GuardState,
    Request,
    Response,
    replay_call,
)
from snne_guard.engine.protocol import Draws
from snne_guard.errors import (
    ConfigurationError,
    InputError,
    ScoringError,
    SnneGuardError,
)
from snne_guard.evaluation.accepting import in_words
from snne_guard.evaluation.recorded_calls import (
    PLAIN,
    check_same_settings,
    how_drawn,
    recorded_replies,
)
from snne_guard.evaluation.recordings import Recording
from snne_guard.scorers import Method, resolve_method
from snne_guard.self_check import SelfCheck
from snne_guard.settings import GuardSettings
from snne_guard.similarity import resolve_similarity
from snne_guard.types import (
    Assessment,
    ContextFrom,
    FloatArray,
    Grounding,
    Reply,
    Similarity,
)
from snne_guard.views import View

_SHARED_SETTINGS = (
    *("model", "temperature", *ANSWER_SETTINGS),
    *("system", "completion", "views", "other_models"),
)
"""Settings that affect how often an answer is wrong, or how far answers differ, and so
must be the same in all recordings."""

_HARMLESS = frozenset(
    {"answer_truncated", "no_threshold", "self_check_unknown", "temperature_unset"}
)
"""Reasons that keep no answer from being accepted."""

_TAKES = frozenset({"n", "logprobs"})


@cache
def view_named(name: str) -> View:
    """Return a view whose replies were read when they were recorded."""
    return View(name, list)


class RecordedCall:
    """The recorded replies to a question, for guards with any options to draw from.

    Attributes:
        recording: The question.
        answer: The delivered answer.
        own: The samples of the guarded model.
        views: The view of each of them; ``"plain"`` without views.
    """

    def __init__(self, recording: Recording, /) -> None:
        self.recording = recording
        self.answer, samples = recorded_replies(recording)
        self.own = [sample for sample in samples if sample.other_model is None]
        self.views = tuple(sample.view or PLAIN for sample in self.own)
        self._samples: defaultdict[str, list[Reply]] = defaultdict(list)
        for sample in self.own:
            # A guard without views knows nothing of one that is called plain.
            kept = replace(sample, view=None) if sample.view == PLAIN else sample
            self._samples[sample.view or PLAIN].append(kept)
        # Of several, the first: a guard asks each other model once.
        self._others = {s.other_model: s for s in reversed(samples) if s.other_model}
        self._state = GuardState()

    @property
    def has_logprobs(self) -> bool:
        """Whether those of each reply of the guarded model are known."""
        return all(reply.token_logprobs for reply in (self.answer, *self.own))

    def assessed(
        self,
        settings: GuardSettings,
        *,
        question: str | None,
        errors_end_it: bool = False,
    ) -> Assessment:
        """Return the assessment that a guard with these settings would have made.

        Its views are those of ``view_named``. With ``errors_end_it``, what scoring
        raises is raised; InputError if there are too few samples.
        """
        left = {view: iter(replies) for view, replies in self._samples.items()}

        def brought(draw: Draw) -> Response | Failure:
            if draw.role == "self_check":
                p_correct = self.recording.self_check
                return Response(replies=(self.answer,), p_correct=p_correct)
            if draw.other_model is not None:
                other = self._others.get(draw.other_model)
                missing = InputError(f"no sample of {draw.other_model!r} was recorded")
                return Response(replies=(other,)) if other else Failure(error=missing)
            replies = [self.answer]
            if draw.role != "answer":
                view = PLAIN if draw.view is None else draw.view.name
                replies = [*islice(left.get(view, ()), draw.n)]
                if len(replies) < draw.n:
                    raise self._too_few(settings)
            if not draw.logprobs:  # a guard that does not ask for them cannot use them
                replies = [replace(reply, token_logprobs=None) for reply in replies]
            return Response(replies=tuple(replies))

        def respond(draws: Draws) -> list[Response | Failure | None]:
            return [brought(draw) for draw in draws]

        request = Request(
            settings=settings,
            state=self._state,
            parameters=_TAKES,
            question=question,
            context=self.recording.context,
            tools_bound=self.answer.tool_calls is not None
            and settings.tool_calls == "skip",
            replayed=True,
        )
        return replay_call(request, respond, errors_end_it=errors_end_it).assessment

    def _too_few(self, settings: GuardSettings) -> InputError:
        views = {PLAIN if v is None else v.name for v in settings.sample_views}
        there = sum(map(self.views.count, views))
        return InputError(
            f"expected at least {settings.n_samples} samples of each question, "
            f"recording {self.recording.id!r} has {there}. Give a smaller n"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScores:
    """What a guard would have found, had it drawn what was recorded.

    Attributes:
        settings: How the recordings were drawn and scored, as of ``Calibration``.
        reply_models: Names of the model that the replies carried.
        other_reply_models: The same for each other model.
        temperature_set: Whether the provider took the sampling temperature.
        uncertainty: ``(n,)`` ``u``; ``inf`` where the guard could never accept the
            answer, since a reply of its set is missing or cannot be compared.
        unscored: Why, as reason codes with their counts.
    """

    settings: Mapping[str, Any]
    reply_models: tuple[str, ...]
    other_reply_models: Mapping[str, tuple[str, ...]]
    temperature_set: bool
    uncertainty: FloatArray
    unscored: Counter[str]


def score_recordings(
    recordings: Iterable[Recording],
    /,
    *,
    method: str | Method = "snne",
    similarity: str | Similarity | None = None,
    n: int | None = None,
    include_answer: bool = True,
    self_check: SelfCheck | None = None,
    views: Sequence[str] | None = None,
    other_models: Sequence[str] | None = None,
    bare_question: bool = False,
    model: str | None = None,
    min_grounded: float | None = None,
    grounding: str | Grounding = "words",
    context_from: ContextFrom = "function",
) -> RecordedScores:
    """Score recordings as a guard with these options would have scored them.

    Args:
        recordings: At least one, all drawn as the first was. They are read one by one,
            and only numbers are kept.
        method: As the guard has it. ``"auto"``: WSNNE where the first recording has all
            log-probabilities, else SNNE.
        similarity: As the guard has it; None for the method's default.
        n: As the guard has it; None for all that the first recording has.
        include_answer: Whether the delivered answer is scored with its samples.
        self_check: As the guard has it; None for a guard without one.
        views: The views of the guard, some of those that were recorded; None for all.
        other_models: Likewise. An answer for which one of them has no sample is never
            accepted.
        bare_question: Whether the guard is told the question without its context, by
            its option ``question``.
        model: Name of the model, where the recordings do not say it.
        min_grounded: As the guard has it; an answer that its ``context`` supports less
            is never accepted.
        grounding: As the guard has it, but for the judge.
        context_from: Where the guard's documents come from, by its option ``context``.

    Raises:
        ConfigurationError: An option makes no sense, or the recordings were not all
            drawn in one way.
        InputError: There are no recordings, one has too few samples, or none can be
            scored.
        ScoringError: The similarity or the method failed.
    """
    rows = iter(recordings)
    first = next(rows, None)
    if first is None:
        msg = "expected at least one recording, got none"
        raise InputError(msg)
    taken = _taken(views, how_drawn(first).views or (PLAIN,), what="views")
    others = _taken(other_models, first.other_models, what="other models")
    call = RecordedCall(first)
    chosen = resolve_method(method, logprobs=not others and call.has_logprobs)
    name, function = resolve_similarity(similarity or chosen.default_similarity)
    if n is None:
        samples = sum(view in taken for view in call.views)
        n = 1 + samples + len(others) + (self_check is not None)
    settings = GuardSettings(
        n=n,
        method=chosen,
        similarity=function,
        temperature=how_drawn(first).temperature,
        self_check=self_check or False,
        views=[] if taken == [PLAIN] else [*map(view_named, taken)],
        other_models=others,
        include_answer=include_answer,
        min_grounded=min_grounded,
        grounding=grounding,
    )
    grounds = _how_grounded(settings, context_from)
    # Nothing stands in for such a method where log-probabilities are missing.
    alone = chosen.needs_logprobs and chosen.without_logprobs is None
    uncertainty: list[float] = []
    unscored: Counter[str] = Counter()
    models: dict[str, None] = {}
    names: dict[str, dict[str, None]] = {other: {} for other in others}
    shared = _shared_settings(first)
    for row in chain([first], rows):
        check_same_settings(shared, _shared_settings(row), name=f"recording {row.id!r}")
        drawn = how_drawn(row)
        models |= dict.fromkeys(drawn.models)
        for other in others:
            names[other] |= dict.fromkeys(drawn.other_models.get(other, ()))
        if self_check is not None:
            _require_self_check(row, self_check)
        why: str | None = "logprobs_missing"
        u: float | None = None
        call = RecordedCall(row)
        if call.has_logprobs or not alone:
            told = row.question if bare_question else row.prompt
            found = _found(call, settings, told)
            why, u = _why_never_accepted(found, settings, chosen), found.uncertainty
        unscored.update([] if why is None else [why])
        uncertainty.append(math.inf if why is not None or u is None else u)
    if unscored.total() == len(uncertainty):
        whys = (f"{n} for {in_words(code)}" for code, n in unscored.most_common())
        msg = f"no recording can be scored as a guard would score it: {', '.join(whys)}"
        raise InputError(msg)
    drawn_with = first.settings or {}
    made: dict[str, Any] = {
        "model": drawn_with.get("model") or model,
        "temperature": settings.temperature,
        **{name: drawn_with[name] for name in ANSWER_SETTINGS if name in drawn_with},
        **({} if taken == [PLAIN] else {"views": taken}),
        **({"other_models": sorted(others)} if others else {}),
        "n": n,
        "include_answer": include_answer,
        "method": chosen.name,
        "similarity": name if chosen.compares_answers else None,
        "anchor": chosen.anchor(name) if include_answer else 0.0,
        **grounds,
    }
    if self_check is not None:
        made["self_check"] = self_check.prompt
        made["self_check_weight"] = self_check.weight
    return RecordedScores(
        settings=made,
        reply_models=tuple(models),
        other_reply_models={other: (*names[other],) for other in others},
        temperature_set=shared["temperature_set"],
        uncertainty=np.array(uncertainty, dtype=np.float64),
        unscored=unscored,
    )


def _how_grounded(settings: GuardSettings, context_from: str) -> dict[str, Any]:
    """Return the settings of grounding that a calibration keeps."""
    check_choice(context_from, get_args(ContextFrom), what="context_from")
    name = settings.grounding_name
    if name == "judge":
        msg = 'grounding="judge" asks the model, which a recording cannot; give another'
        raise ConfigurationError(msg)
    if settings.min_grounded is None:
        return {}
    how = {"grounding": name, "context_from": context_from}
    return {"min_grounded": settings.min_grounded, **how}


def _found(
    call: RecordedCall, settings: GuardSettings, question: str | None
) -> Assessment:
    try:
        return call.assessed(settings, question=question, errors_end_it=True)
    except SnneGuardError:
        raise
    except Exception as error:
        # Its type alone: the message may hold an answer.
        kind = type(error).__name__
        msg = f"scoring recording {call.recording.id!r} failed with {kind}"
        raise ScoringError(msg) from error


def _why_never_accepted(
    found: Assessment, settings: GuardSettings, method: Method
) -> str | None:
    """Return the reason why a calibrated guard would not accept the answer, or None."""
    whole = found.n_used == settings.reply_set_size and found.method == method.name
    if "ungrounded" in found.reasons:
        return "ungrounded"
    if found.uncertainty is not None and whole:
        return None
    reasons: Iterator[str] = (why for why in found.reasons if why not in _HARMLESS)
    return next(reasons, "too_few_samples")


def _shared_settings(recording: Recording) -> dict[str, Any]:
    """Return the settings of this recording that all must share."""
    settings = recording.settings or {}
    known = {name: settings.get(name) for name in _SHARED_SETTINGS}
    # Some providers ignore a temperature.
    ignored = "temperature_unset" in how_drawn(recording).reasons
    return known | {"temperature_set": not ignored}


def _taken(
    wanted: Sequence[str] | None, recorded: Sequence[str], *, what: str
) -> list[str]:
    if unknown := sorted({*(wanted or ())} - {*recorded}):
        names = ", ".join(recorded) or "none"
        msg = f"expected {what} among {names}, got {', '.join(unknown)}"
        raise InputError(msg)
    return [name for name in recorded if wanted is None or name in wanted]


def _require_self_check(recording: Recording, wanted: SelfCheck) -> None:
    asked = (recording.settings or {}).get("self_check")
    if asked != wanted.prompt:
        msg = (
            f"expected recording {recording.id!r} to have a self-check by the prompt "
            f"{wanted.prompt!r}, got {asked!r}; draw it with record --self-check"
        )
        raise InputError(msg)
