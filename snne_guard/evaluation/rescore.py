"""Recordings scored as a guard would have scored them."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from snne_guard.checks import check_whole
from snne_guard.decision.calibration import ANSWER_SETTINGS
from snne_guard.errors import (
    ConfigurationError,
    InputError,
    ScoringError,
    SnneGuardError,
)
from snne_guard.evaluation.jsonl import paired, rereadable
from snne_guard.evaluation.recordings import Question, Recording
from snne_guard.sampling.members import Members, agree_suspiciously, select_members
from snne_guard.sampling.reading import is_complete, is_refused
from snne_guard.scorers import Method, resolve_method, score_members
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.similarity import resolve_similarity
from snne_guard.similarity.tokens import is_visible
from snne_guard.types import FloatArray, Sample, Similarity

__all__ = [
    "PLAIN",
    "RecordedScores",
    "ScoringOptions",
    "Track",
    "in_views",
    "recorded_replies",
    "recorded_turns",
    "score_recordings",
]

PLAIN = "plain"
"""The view in which samples are drawn without views."""

_DRAWN_ALIKE = (
    *("model", "temperature", *ANSWER_SETTINGS),
    *("system", "completion", "views"),
)
"""Settings on which it depends how often an answer is wrong, or how far answers
differ."""

_DETAILS = ("finish_reasons", "kinds")
"""What ``record`` keeps of the answer and each sample."""

Track = Callable[[Sequence[int]], Iterable[int]]


class ScoringOptions(TypedDict, total=False):
    """The options of ``score_recordings``, which says what they mean."""

    method: str | Method
    similarity: str | Similarity | None
    tau: float
    n: int | None
    include_answer: bool
    self_check: SelfCheck | None
    bare_question: bool
    model: str | None
    track: Track


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedScores:
    """What a guard would have found, had it drawn what was recorded.

    Attributes:
        settings: How the recordings were drawn and scored, as of ``Calibration``.
        reply_models: Names of the model that the replies carried.
        temperature_set: Whether the provider took the sampling temperature.
        uncertainty: ``(n,)`` ``u`` of each answer; ``inf`` where the guard could never
            accept it, since a member of its set is missing or cannot be compared.
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
    tau: float = 1.0,
    n: int | None = None,
    include_answer: bool = True,
    self_check: SelfCheck | None = None,
    bare_question: bool = False,
    model: str | None = None,
    track: Track = iter,
) -> RecordedScores:
    """Score recordings as a guard with these options would have scored them.

    Args:
        recordings: At least one, all drawn in one way. They are gone over twice, and
            those of an iterator are kept in memory.
        method: As the guard has it. ``"auto"``: WSNNE where every recording has all
            log-probabilities, else SNNE.
        similarity: As the guard has it; None for the method's default.
        tau: As the guard has it.
        n: As the guard has it: members of the response set, and the self-check if there
            is one; None for all that were recorded.
        include_answer: Whether the delivered answer is one of them.
        self_check: As the guard has it; None for a guard without one.
        bare_question: Whether the guard is told the question without its context, by
            its option ``question``.
        model: Name of the model, where the recordings do not say it.
        track: Takes the places of the recordings and yields them, for a progress bar.

    Raises:
        ConfigurationError: If an option makes no sense.
        InputError: If the recordings were not all drawn in one way, too few samples
            were recorded, or none can be scored.
        ScoringError: If the similarity or the method failed.
    """
    recordings = rereadable(recordings)
    overview = _overview(recordings)
    settings = _common_settings(overview, model=model)
    chosen = resolve_method(method, logprobs=method != "auto" or overview.logprobs)
    name, compare = resolve_similarity(similarity or chosen.default_similarity)
    if n is not None:
        check_whole(n, what="n", least=3 if self_check else 2)
        n -= self_check is not None
    size = _set_size(overview, n=n, include_answer=include_answer)

    def scored(row: Recording) -> float | str:
        """Return ``u``, or the reason code that says why there is none."""
        members = _selected(row, chosen, n=size, include_answer=include_answer)
        why = _problem(members, chosen, n=size, hot=settings["temperature"] >= 1)
        if why is not None:
            return why
        try:
            score = score_members(
                members.texts,
                method=chosen,
                similarity=compare,
                similarity_name=name,
                tau=tau,
                include_answer=include_answer,
                question=row.question if bare_question else _prompt(row),
                token_logprobs=members.token_logprobs,
                p_correct=_self_check(row, self_check),
                self_check=self_check,
            )
        except SnneGuardError:
            raise
        except Exception as error:
            # Its message may hold a text that was compared.
            msg = f"scoring recording {row.id!r} failed with {type(error).__name__}"
            raise ScoringError(msg) from error
        return "scoring_failed" if score.uncertainty is None else score.uncertainty

    places = track(range(overview.sizes.total()))
    scores = [scored(row) for row, _ in paired(recordings, places)]
    unscored = Counter(each for each in scores if isinstance(each, str))
    if unscored.total() == len(scores):
        why = ", ".join(f"{code} {count}" for code, count in unscored.most_common())
        msg = f"no recording can be scored as a guard would score it: {why}"
        raise InputError(msg)
    return RecordedScores(
        settings=settings
        | {
            "n": size + (self_check is not None),
            **_check_settings(self_check),
            "include_answer": include_answer,
            "method": chosen.name,
            "similarity": name if chosen.compares_answers else None,
            "tau": float(tau),
            "anchor": chosen.anchor(name) if include_answer else 0.0,
        },
        reply_models=tuple(overview.models),
        temperature_set=_takes_temperature(overview.first),
        uncertainty=np.array(
            [math.inf if isinstance(each, str) else each for each in scores],
            dtype=np.float64,
        ),
        unscored=unscored,
    )


def _self_check(recording: Recording, check: SelfCheck | None) -> float | None:
    """Return what a guard would have made of the recorded self-check."""
    if check is None:
        return None
    asked = (recording.settings or {}).get("self_check")
    if asked != check.prompt:
        msg = (
            f"expected recording {recording.id!r} to have a self-check by the prompt "
            f"{check.prompt!r}, got {asked!r}; draw it with record --self-check"
        )
        raise InputError(msg)
    return UNKNOWN if recording.self_check is None else recording.self_check


def _check_settings(check: SelfCheck | None) -> dict[str, Any]:
    if check is None:
        return {}
    return {"self_check": check.prompt, "self_check_weight": check.weight}


def _selected(
    recording: Recording, method: Method, *, n: int, include_answer: bool
) -> Members:
    """Return what a guard would have compared."""
    answer, *samples = recorded_replies(recording)
    samples = samples[: n - int(include_answer)]
    if not method.needs_logprobs:
        # A guard does not ask for them then, so it cannot use them either.
        samples = [replace(each, token_logprobs=None) for each in samples]
    return select_members(answer, samples, include_answer=include_answer)


def _problem(members: Members, method: Method, *, n: int, hot: bool) -> str | None:
    """Return why a guard could not accept the answer, as a reason code."""
    if not members.answer_readable or len(members.texts) < n:
        return next(iter(members.reasons), "too_few_samples")
    if hot and agree_suspiciously(members.samples):
        return "suspect_agreement"
    if members.calls:
        return "tool_calls"
    complete = None not in members.token_logprobs
    return "logprobs_missing" if method.needs_logprobs and not complete else None


def _prompt(recording: Recording) -> str | None:
    """Return what the model was asked, as a guard takes it for the question."""
    if recording.question is None:
        return None
    prompt = recording.extra.get("prompt")
    if isinstance(prompt, str):
        return prompt
    return Question(
        id=recording.id, question=recording.question, context=recording.context
    ).prompt


@dataclass(slots=True, kw_only=True)
class _Overview:
    """How recordings were drawn, as far as they say.

    Attributes:
        first: The first of them.
        settings: How often each setting has which value, as JSON.
        temperatures: Whether the temperature could be set, for some or for others.
        sizes: How many have how many samples.
        examples: The first id with so many samples.
        logprobs: Whether all log-probabilities of all replies are known.
        models: Names of the model that the replies carried.
    """

    first: Recording
    settings: dict[str, Counter[str]]
    temperatures: set[bool] = field(default_factory=set[bool])
    sizes: Counter[int] = field(default_factory=Counter[int])
    examples: dict[int, str] = field(default_factory=dict[int, str])
    logprobs: bool = True
    models: dict[str, None] = field(default_factory=dict[str, None])


def _overview(recordings: Iterable[Recording]) -> _Overview:
    first = next(iter(recordings), None)
    if first is None:
        msg = "expected recordings, got none"
        raise InputError(msg)
    settings = {name: Counter[str]() for name in _DRAWN_ALIKE}
    overview = _Overview(first=first, settings=settings)
    for row in recordings:
        for name, values in settings.items():
            values[json.dumps((row.settings or {}).get(name))] += 1
        overview.temperatures.add(_takes_temperature(row))
        overview.sizes[len(row.samples)] += 1
        overview.examples.setdefault(len(row.samples), row.id)
        overview.logprobs = overview.logprobs and bool(
            row.main_logprobs and row.token_logprobs and all(row.token_logprobs)
        )
        models = (each for each in _drawn(row, "models") if each)
        overview.models.update(dict.fromkeys(models))
    return overview


def _common_settings(overview: _Overview, *, model: str | None) -> dict[str, Any]:
    """Return the settings that all recordings were drawn with, as far as they say."""
    differ: list[str] = []
    for name, values in overview.settings.items():
        if len(values) > 1:
            counts = (f"{value} ({count})" for value, count in values.most_common())
            differ.append(f"{name}: {', '.join(counts)}")
    if len(overview.temperatures) > 1:
        differ.append("whether the temperature could be set")
    if differ:
        msg = (
            "expected recordings that were all drawn in one way; they differ in "
            f"{'; '.join(differ)}"
        )
        raise InputError(msg)
    common = overview.first.settings or {}
    recorded = common.get("model")
    if model is not None and recorded not in {None, model}:
        msg = f"expected the recorded model {recorded!r}, got {model!r}"
        raise ConfigurationError(msg)
    temperature = common.get("temperature", 1.0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float):
        msg = f"expected the recorded temperature to be a number, got {temperature!r}"
        raise InputError(msg)
    known = {name: common[name] for name in ANSWER_SETTINGS if name in common}
    if (views := _views(overview.first)) != [PLAIN]:
        known["views"] = views
    return {"model": recorded or model, "temperature": float(temperature), **known}


def _views(recording: Recording) -> list[str]:
    views = (recording.settings or {}).get("views") or [PLAIN]
    if not isinstance(views, list) or not all(isinstance(v, str) for v in views):
        msg = f"expected the recorded views to be a list of names, got {views!r}"
        raise InputError(msg)
    return views


def recorded_turns(recording: Recording) -> tuple[str, ...]:
    """Return the view of each sample: they take the views in turn.

    Raises:
        InputError: The views are no names.
    """
    views = itertools.cycle(_views(recording))
    return tuple(itertools.islice(views, len(recording.samples)))


def in_views(recording: Recording, views: Sequence[str]) -> Recording:
    """Return a recording with the samples of some of its views alone.

    Raises:
        InputError: It has no such view.
    """
    known, turns = _views(recording), recorded_turns(recording)
    if unknown := sorted({*views} - {*known}):
        msg = f"expected views among {', '.join(known)}, got {', '.join(unknown)}"
        raise InputError(msg)
    taken = [at for at, view in enumerate(turns) if view in views]
    logprobs, drawn = recording.token_logprobs, recording.extra.get("drawn")
    if isinstance(drawn, dict):
        lists = {name: _drawn(recording, name) for name in _DETAILS}
        kept = {
            name: [each[0], *(each[1 + at] for at in taken)]
            for name, each in lists.items()
            if len(each) == 1 + len(turns)
        }
        drawn = {**drawn, **kept}
    return replace(
        recording,
        samples=tuple(recording.samples[at] for at in taken),
        token_logprobs=logprobs and tuple(logprobs[at] for at in taken),
        settings={
            **(recording.settings or {}),
            "views": [v for v in known if v in views],
        },
        extra={**recording.extra, "drawn": drawn},
    )


def _set_size(overview: _Overview, *, n: int | None, include_answer: bool) -> int:
    """Return how many members each set has; every recording must have as many."""
    needed = max(overview.sizes) if n is None else n - int(include_answer)
    few = [size for size in overview.examples if size < needed]
    if few:
        count = sum(overview.sizes[size] for size in few)
        msg = (
            f"expected at least {needed} samples of each question; {count} have fewer, "
            f"such as {overview.examples[few[0]]!r} with {few[0]}. Give a smaller n"
        )
        raise InputError(msg)
    if needed + int(include_answer) < 2:  # noqa: PLR2004 - a pair
        msg = "expected at least 2 members of each set, got 1"
        raise InputError(msg)
    return needed + int(include_answer)


def recorded_replies(recording: Recording) -> list[Sample]:
    """Return the recorded answer and samples as a guard would have received them.

    Raises:
        InputError: What the recording tells of them does not fit them.
    """
    texts = (recording.main_answer, *recording.samples)
    unknown = (None,) * len(texts)
    logprobs = (recording.main_logprobs, *(recording.token_logprobs or unknown[1:]))
    details = [_drawn(recording, name) or unknown for name in _DETAILS]
    if any(len(each) != len(texts) for each in details):
        msg = (
            f'expected "finish_reasons" and "kinds" of recording {recording.id!r} to '
            f"be lists of {len(texts)} texts or nulls"
        )
        raise InputError(msg)
    # The answer is drawn in no view, as samples are without views.
    named = bool((recording.settings or {}).get("views"))
    views = [None, *(view if named else None for view in recorded_turns(recording))]
    return [
        Sample(
            text="" if kind == "tool_calls" else text,
            token_logprobs=each or None,
            finish_reason=end,
            # Recordings of other programs do not say how a reply ended.
            truncated=end is not None and not (is_complete(end) or is_refused(end)),
            refused=kind == "refused" or is_refused(end),
            tool_calls=text if kind == "tool_calls" else None,
            unreadable=not is_visible(text) or kind == "unreadable",
            view=view,
        )
        for text, each, end, kind, view in zip(
            texts, logprobs, *details, views, strict=True
        )
    ]


def _drawn(recording: Recording, name: str) -> list[str | None]:
    """Return a list of what ``record`` keeps about the draws; empty if it is none."""
    drawn = recording.extra.get("drawn")
    values = drawn.get(name) if isinstance(drawn, dict) else None
    listed = values if isinstance(values, list) else []
    return [value if isinstance(value, str) else None for value in listed]


def _takes_temperature(recording: Recording) -> bool:
    return "temperature_unset" not in _drawn(recording, "reasons")
