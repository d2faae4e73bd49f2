"""How many samples of each question count, and which texts those are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers.materials import Materials

__all__ = [
    "ENOUGH",
    "WHOLE",
    "common_size",
    "first_samples",
    "malformed",
    "materials_of",
    "recorded_of",
]

ENOUGH = 0.95
"""Share of the questions that a method must score: one that is missing more often is
left out whole, and not question by question."""

_EACH = ("hidden_states", "token_importance")  # one for each text
WHOLE = frozenset({"p_true_logprob"})
"""Needs that are met for all samples together, and not again for fewer."""


def common_size(sizes: Iterable[int], /) -> int:
    """Return the number of samples that keeps most: questions that have it, times it.

    Never one that less than half of the questions have; of two that keep as much, that
    of more questions.

    Example:
        >>> common_size([10] * 90 + [1] * 10), common_size([10] * 40 + [2] * 60)
        (10, 2)
    """
    descending = sorted(sizes, reverse=True)
    most, best = 0, 0
    # At place ``have`` stands what so many questions have at least.
    for have, size in enumerate(descending, start=1):
        if 2 * have >= len(descending) and size * have >= most:
            most, best = size * have, size
    return best


def materials_of(
    recording: Recording,
    n_samples: int,
    *,
    include_answer: bool = True,
    known: Mapping[str, Any] | None = None,
) -> Materials:
    """Return what methods may look at: the delivered answer and its first samples.

    Empty samples are passed over, as a guard leaves them out.

    Args:
        recording: A recording of at least so many samples that are not empty.
        n_samples: How many of them count.
        include_answer: Whether the delivered answer is a member.
        known: What else is known of these texts; it goes before what is recorded.
    """
    places = _places(recording, n_samples)
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    rows = [0, *(place + 1 for place in places)]
    found = recorded_of(recording)
    wrong = malformed(recording, found)
    for need in found.keys() & {*_EACH}:
        one = found.pop(need)
        if need not in wrong:
            found[need] = [one[row] for row in rows]
    return Materials(
        [recording.main_answer, *(recording.samples[place] for place in places)],
        token_logprobs=[recording.main_logprobs, *(logprobs[at] for at in places)],
        question=recording.question,
        include_answer=include_answer,
        known={**found, **(known or {})},
    )


def first_samples(recording: Recording, n: int, /) -> Recording:
    """Return a recording with no more than its first samples that are not empty.

    Fields that have one for each sample, or for each answer, are cut likewise.
    """
    places = _places(recording, n)
    logprobs = recording.token_logprobs
    extra = dict(recording.extra)
    for name, before in (*((need, 1) for need in _EACH), ("tokens", 0)):
        found: Any = extra.get(name)
        each = cast("Sequence[Any]", found if isinstance(found, list) else ())
        if len(each) == before + len(recording.samples):
            extra[name] = [*each[:before], *(each[before + at] for at in places)]
    return replace(
        recording,
        samples=tuple(recording.samples[at] for at in places),
        token_logprobs=None
        if logprobs is None
        else tuple(logprobs[at] for at in places),
        extra=extra,
    )


def _places(recording: Recording, n: int) -> list[int]:
    return [at for at, one in enumerate(recording.samples) if one.strip()][:n]


def recorded_of(recording: Recording, /) -> dict[str, Any]:
    """Return what is recorded beside the texts; a field that is null is not there."""
    recorded = {need: recording.extra.get(need) for need in (*_EACH, *WHOLE)}
    return {need: one for need, one in recorded.items() if one is not None}


def malformed(
    recording: Recording, known: Mapping[str, Any], /
) -> dict[str, InputError]:
    """Return what is wrong with needs that want one for each answer, and have not."""
    answers = 1 + len(recording.samples)
    wrong: dict[str, InputError] = {}
    for need in _EACH:
        if need not in known:
            continue
        try:
            got = str(len(known[need]))
        except TypeError:
            got = type(known[need]).__name__
        if got != str(answers):
            msg = (
                f"expected {need} of the delivered answer and of {answers - 1} "
                f"samples, got {got}"
            )
            wrong[need] = InputError(msg)
    return wrong
