"""Recordings scored: each by itself, or all as a guard would have scored them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from snne_guard._version import __version__
from snne_guard.checks import check_whole
from snne_guard.decision.calibration import ANSWER_SETTINGS
from snne_guard.engine.reply_set import ReplySet, agree_suspiciously, reply_set_of
from snne_guard.errors import InputError, ScoringError, SnneGuardError
from snne_guard.evaluation.recorded_calls import (
    PLAIN,
    check_same_settings,
    how_drawn,
    recorded_replies,
)
from snne_guard.evaluation.recordings import Recording
from snne_guard.scorers import Method, resolve_method, score
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.similarity import resolve_similarity
from snne_guard.types import FloatArray, Score, Similarity

__all__ = [
    "RecordedScores",
    "score_fields",
    "score_recording",
    "score_recordings",
]

_SHARED_SETTINGS = (
    *("model", "temperature", *ANSWER_SETTINGS),
    *("system", "completion", "views"),
)
"""Settings that affect how often an answer is wrong, or how far answers differ, and so
must be the same in all recordings."""


def score_recording(
    recording: Recording,
    /,
    *,
    include_answer: bool = True,
    **options: Any,  # noqa: ANN401 - of score
) -> Score:
    """Score how far the recorded answers to a question differ.

    Args:
        recording: The question.
        include_answer: Whether the answer is scored together with its samples.
        **options: ``method``, ``similarity`` and ``tau`` of ``snne_guard.score``.

    Raises:
        InputError: It cannot be scored; the message names its id.

    Example:
        >>> row = {"id": "1", "question": "2+2?", "main_answer": "4", "samples": ["4"]}
        >>> score_recording(Recording.from_dict(row)).uncertainty
        0.0
    """
    answers = recording.samples
    logprobs = recording.token_logprobs or (None,) * len(answers)
    if include_answer:
        answers = (recording.main_answer, *answers)
        logprobs = (recording.main_logprobs, *logprobs)
    try:
        return score(
            answers,
            token_logprobs=logprobs,
            question=recording.question,
            include_answer=include_answer,
            **options,
        )
    except InputError as error:
        msg = f"recording {recording.id!r}: {error}"
        raise InputError(msg) from error


def score_fields(score: Score, /) -> dict[str, Any]:
    """Return the field ``snne_guard`` of a recording for a score."""
    return {
        "method": score.method,
        "similarity": score.similarity,
        "tau": score.tau,
        # JSON has no word for infinity.
        "score": score.value if math.isfinite(score.value) else None,
        "uncertainty": score.uncertainty,
        "n": score.n,
        "reasons": list(score.reasons),
        "version": __version__,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScores:
    """What a guard would have found, had it drawn what was recorded.

    Attributes:
        settings: How the recordings were drawn and scored, as of ``Calibration``.
        reply_models: Names of the model that the replies carried.
        temperature_set: Whether the provider took the sampling temperature.
        uncertainty: ``(n,)`` ``u`` of each answer; ``inf`` where the guard could never
            accept it, since a reply of its set is missing or cannot be compared.
        unscored: Why, as reason codes with their counts.
    """

    settings: Mapping[str, Any]
    reply_models: tuple[str, ...]
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
    bare_question: bool = False,
    model: str | None = None,
) -> RecordedScores:
    """Score recordings as a guard with these options would have scored them.

    Args:
        recordings: At least one, all drawn as the first was. They are read one by one,
            and only numbers are kept.
        method: As the guard has it. ``"auto"``: WSNNE where the first recording has all
            log-probabilities, else SNNE.
        similarity: As the guard has it; None for the method's default.
        n: As the guard has it: replies of the reply set, and the self-check if there
            is one; None for all that the first recording has.
        include_answer: Whether the delivered answer is one of them.
        self_check: As the guard has it; None for a guard without one.
        views: The views of the guard, some of those that were recorded; None for all.
        bare_question: Whether the guard is told the question without its context, by
            its option ``question``.
        model: Name of the model, where the recordings do not say it.

    Raises:
        ConfigurationError: If an option makes no sense, or the recordings were not all
            drawn in one way.
        InputError: If there are no recordings, one has too few samples, or none can be
            scored.
        ScoringError: If the similarity or the method failed.
    """
    rows = iter(recordings)
    first = next(rows, None)
    if first is None:
        msg = "expected at least one recording, got none"
        raise InputError(msg)
    settings = _settings(first, model=model, views=views)
    logprobs = (first.main_logprobs, *(first.token_logprobs or [None]))
    chosen = resolve_method(method, logprobs=all(logprobs))
    name, function = resolve_similarity(similarity or chosen.default_similarity)
    if n is None:
        n = include_answer + len(recorded_replies(first, views)[1])
        n += self_check is not None
    least = 3 if self_check else 2
    check_whole(n, what="n, the answer included,", least=least)
    size = n - (self_check is not None)
    uncertainty: list[float] = []
    unscored: Counter[str] = Counter()
    models: dict[str, None] = {}
    shared = _shared_settings(first)
    for row in chain([first], rows):
        check_same_settings(shared, _shared_settings(row), name=f"recording {row.id!r}")
        models |= dict.fromkeys(how_drawn(row).models)
        reply_set = _reply_set(
            row, chosen, views, n=size, include_answer=include_answer
        )
        u = None
        why = _problem(reply_set, chosen, n=size, temperature=settings["temperature"])
        if why is None:
            try:
                found = score(
                    reply_set.texts,
                    token_logprobs=reply_set.token_logprobs,
                    question=row.question if bare_question else row.prompt,
                    method=chosen,
                    similarity=function,
                    include_answer=include_answer,
                )
                u = _with_check(found, row, self_check).uncertainty
            except SnneGuardError:
                raise
            except Exception as error:
                # Its message may hold a text that was compared.
                kind = type(error).__name__
                msg = f"scoring recording {row.id!r} failed with {kind}"
                raise ScoringError(msg) from error
        uncertainty.append(math.inf if u is None else u)
        if u is None:
            unscored[why or "scoring_failed"] += 1
    if unscored.total() == len(uncertainty):
        reasons = ", ".join(f"{code} {n}" for code, n in unscored.most_common())
        msg = f"no recording can be scored as a guard would score it: {reasons}"
        raise InputError(msg)
    settings |= {
        "n": n,
        "include_answer": include_answer,
        "method": chosen.name,
        "similarity": name if chosen.compares_answers else None,
        "anchor": chosen.anchor(name) if include_answer else 0.0,
    }
    if self_check is not None:
        settings |= {
            "self_check": self_check.prompt,
            "self_check_weight": self_check.weight,
        }
    return RecordedScores(
        settings=settings,
        reply_models=tuple(models),
        temperature_set=shared["temperature_set"],
        uncertainty=np.array(uncertainty, dtype=np.float64),
        unscored=unscored,
    )


def _shared_settings(recording: Recording) -> dict[str, Any]:
    """Return what all recordings must share, as far as this one says."""
    settings = recording.settings or {}
    known = {name: settings.get(name) for name in _SHARED_SETTINGS}
    # Some providers ignore a temperature.
    ignored = "temperature_unset" in how_drawn(recording).reasons
    return known | {"temperature_set": not ignored}


def _settings(
    recording: Recording, *, model: str | None, views: Sequence[str] | None
) -> dict[str, Any]:
    """Return the settings of a guard that draws like this."""
    settings, drawn = recording.settings or {}, how_drawn(recording)
    known = {name: settings[name] for name in ANSWER_SETTINGS if name in settings}
    recorded_views = drawn.views or (PLAIN,)
    if unknown := sorted({*(views or ())} - {*recorded_views}):
        names = ", ".join(recorded_views)
        msg = f"expected views among {names}, got {', '.join(unknown)}"
        raise InputError(msg)
    taken = [v for v in recorded_views if views is None or v in views]
    if taken != [PLAIN]:
        known["views"] = taken
    name = settings.get("model") or model
    return {"model": name, "temperature": drawn.temperature, **known}


def _with_check(score: Score, recording: Recording, check: SelfCheck | None) -> Score:
    """Return a score with the recorded self-check in it, if the guard has one."""
    if check is None:
        return score
    asked = (recording.settings or {}).get("self_check")
    if asked != check.prompt:
        msg = (
            f"expected recording {recording.id!r} to have a self-check by the prompt "
            f"{check.prompt!r}, got {asked!r}; draw it with record --self-check"
        )
        raise InputError(msg)
    p_correct = UNKNOWN if recording.self_check is None else recording.self_check
    return check.applied(score, p_correct)


def _reply_set(
    recording: Recording,
    method: Method,
    views: Sequence[str] | None,
    *,
    n: int,
    include_answer: bool,
) -> ReplySet:
    """Return what a guard would have compared."""
    answer, samples = recorded_replies(recording, views)
    needed = n - include_answer
    if len(samples) < needed:
        msg = (
            f"expected at least {needed} samples of each question, recording "
            f"{recording.id!r} has {len(samples)}. Give a smaller n"
        )
        raise InputError(msg)
    samples = samples[:needed]
    if not method.needs_logprobs:
        # A guard does not ask for them then, so it cannot use them either.
        samples = [replace(each, token_logprobs=None) for each in samples]
    return reply_set_of(answer, samples, include_answer=include_answer)


def _problem(
    reply_set: ReplySet, method: Method, *, n: int, temperature: float
) -> str | None:
    """Return why a guard could not accept the answer, as a reason code."""
    if not reply_set.answer_readable or len(reply_set.texts) < n:
        return next(iter(reply_set.reasons), "too_few_samples")
    if temperature >= 1 and agree_suspiciously(reply_set.samples):
        return "suspect_agreement"
    if reply_set.has_tool_calls:
        return "tool_calls"
    complete = None not in reply_set.token_logprobs
    return "logprobs_missing" if method.needs_logprobs and not complete else None
