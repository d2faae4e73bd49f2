"""From recordings to a stopping rule, without labels."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.decision import CalibratedStop, fit_stop
from snne_guard.errors import InputError
from snne_guard.evaluation.recording.recordings import Recording, read_recordings
from snne_guard.scorers import resolve_method
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.needs import check_relation
from snne_guard.scorers.registry import default_similarity
from snne_guard.scorers.relation import Relation
from snne_guard.types import FloatArray, Method, Similarity

__all__ = ["learn_stop", "uncertainty_paths"]

Recordings = str | os.PathLike[str] | Iterable[Recording]


def learn_stop(
    recordings: Recordings,
    /,
    *,
    rounds: Sequence[int],
    threshold: float,
    epsilon: float = 0.05,
    confidence: float = 0.9,
    seed: int = 0,
    method: str | Method = "snne",
    similarity: str | Similarity | None = None,
    tau: float = 1.0,
    include_answer: bool = True,
    temperature: float = 1.0,
) -> CalibratedStop:
    """Learn from recordings when to stop; no labels are needed.

    Record ordinary questions of the application with as many samples as the guard is
    to draw at most. ``snne_guard.decision.fit_stop`` says how the rule is learnt.

    Args:
        recordings: A file of recordings, or the recordings.
        rounds: Members of the response set after each round, the last n.
        threshold: Largest accepted ``u``, as the guard will have it.
        epsilon: Share of questions that may get another decision than with all n.
        confidence: Probability, over the recordings, that they are no more.
        seed: Fixes which half of the recordings is learnt from.
        method: As the guard will have it, but not ``"auto"``.
        similarity: As the guard will have it.
        tau: As the guard will have it.
        include_answer: As the guard will have it.
        temperature: Temperature of the samples, as the guard will have it.

    Returns:
        The rule: ``SNNEGuard(model, n=..., threshold=..., stopping=rule)``.

    Raises:
        InputError: There are too few recordings, or one has too few samples, was drawn
            at another temperature or lacks what the method needs.
        ConfigurationError: An option makes no sense.
        OSError: The file cannot be read.
    """
    known = _known(recordings)
    for recording in known:
        drawn_at = (recording.settings or {}).get("temperature", temperature)
        if drawn_at != temperature:
            msg = (
                f"expected samples drawn at temperature {temperature}; those of "
                f"recording {recording.id!r} were drawn at {drawn_at}"
            )
            raise InputError(msg)
    chosen = resolve_method(method, logprobs=True)
    relation = Relation.of(similarity, default=default_similarity(chosen))
    paths = uncertainty_paths(
        known,
        rounds=rounds,
        method=method,
        similarity=similarity,
        tau=tau,
        include_answer=include_answer,
    )
    return fit_stop(
        paths,
        rounds=rounds,
        threshold=threshold,
        epsilon=epsilon,
        confidence=confidence,
        seed=seed,
        method=chosen.name,
        similarity=relation.name,
        anchor=relation.anchor_for(chosen, member=include_answer),
        tau=tau,
        include_answer=include_answer,
        temperature=temperature,
    )


def uncertainty_paths(
    recordings: Recordings,
    /,
    *,
    rounds: Sequence[int],
    method: str | Method = "snne",
    similarity: str | Similarity | None = None,
    tau: float = 1.0,
    include_answer: bool = True,
) -> FloatArray:
    """Return the ``u`` that recorded questions have after each round of samples.

    Samples are taken in the order of the recording, as many as the last round has.
    Those without text leave the set, as they do in a guard.

    Args:
        recordings: A file of recordings, or the recordings.
        rounds: Members of the response set after each round, the last n.
        method: A name in ``METHODS`` or a method of your own.
        similarity: A name in ``SIMILARITIES``, a callable, None for the default.
        tau: Temperature of the similarity's softmax.
        include_answer: Whether ``main_answer`` is the first member.

    Returns:
        ``(recordings, rounds)`` values in [0, 1]. NaN where a member is missing, in
        the last round where fewer than half of them are there.

    Raises:
        InputError: A recording has too few samples, or lacks log-probabilities that
            the method needs.
        ConfigurationError: The method or the similarity is unknown.
        OSError: The file cannot be read.

    Example:
        >>> recording = Recording(
        ...     id="1",
        ...     question="Capital of France?",
        ...     main_answer="Paris",
        ...     samples=("Paris", "Lyon", "Paris"),
        ... )
        >>> uncertainty_paths([recording], rounds=(2, 4)).round(2)
        array([[0.  , 0.39]])
    """
    chosen = resolve_method(method, logprobs=True)
    relation = Relation.of(similarity, default=default_similarity(chosen))
    check_relation(chosen, relation)
    rows: list[list[float]] = []
    for recording in _known(recordings):
        drawn = _drawn(recording, rounds[-1], include_answer=include_answer)
        members = [member for member in drawn if member.text.strip()]
        if include_answer and not drawn[0].text.strip():
            members = []  # there is nothing to be certain of
        materials = _materials(recording, members, include_answer=include_answer)
        after = [sum(member.place < m for member in members) for m in rounds]
        least = max(2, math.ceil(rounds[-1] / 2))
        needed = [*rounds[:-1], least]
        try:
            row = [
                _uncertainty(materials, count, chosen, relation, tau)
                if count >= enough
                else math.nan
                for count, enough in zip(after, needed, strict=True)
            ]
        except InputError as error:
            msg = f"recording {recording.id!r}: {error}"
            raise InputError(msg) from error
        rows.append(row)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(rounds))


def _known(recordings: Recordings) -> list[Recording]:
    if not isinstance(recordings, str | os.PathLike):
        return list(recordings)
    rows = (row for _, row in read_recordings(recordings, strict=True))
    return [row for row in rows if isinstance(row, Recording)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draw:
    place: int
    text: str
    logprobs: tuple[float, ...] | None


def _drawn(recording: Recording, n: int, *, include_answer: bool) -> list[_Draw]:
    """Return the first n members of the response set, as they were drawn."""
    samples = recording.samples[: n - int(include_answer)]
    texts = [recording.main_answer, *samples] if include_answer else [*samples]
    if len(texts) < n:
        msg = (
            f"expected {n - int(include_answer)} samples in recording "
            f"{recording.id!r}, got {len(samples)}"
        )
        raise InputError(msg)
    logprobs = list(recording.token_logprobs or [None] * len(recording.samples))
    if include_answer:
        logprobs = [recording.main_logprobs, *logprobs]
    return [
        _Draw(place=place, text=text, logprobs=tokens)
        for place, (text, tokens) in enumerate(zip(texts, logprobs, strict=False))
    ]


def _materials(
    recording: Recording, members: Sequence[_Draw], *, include_answer: bool
) -> Materials:
    return Materials(
        [member.text for member in members],
        token_logprobs=[member.logprobs for member in members],
        question=recording.question,
        delivered=include_answer,
    )


def _uncertainty(
    materials: Materials, count: int, method: Method, relation: Relation, tau: float
) -> float:
    """Return the ``u`` of the first members, NaN where it is not defined."""
    inputs = materials.first(count).inputs(method, relation, tau=tau)
    u = method.uncertainty(method.compute(inputs), count, tau=tau)
    return math.nan if u is None else u
