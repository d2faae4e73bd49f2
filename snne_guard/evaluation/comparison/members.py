"""How many samples of each question count, and which texts those are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from snne_guard.errors import InputError
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.scorers.materials import Materials

__all__ = ["ENOUGH", "common_size", "known_of", "malformed", "materials_of"]

ENOUGH = 0.95
"""Share of the questions that a method must score: one that is missing more often is
left out whole, and not question by question."""

_EACH = ("hidden_states", "token_importance")  # one for each text
_WHOLE = ("p_true_logprob",)


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
        known: What else is known, one for the delivered answer and each sample.
    """
    places = [place for place, one in enumerate(recording.samples) if one.strip()]
    places = places[:n_samples]
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    rows = [0, *(place + 1 for place in places)]
    found = known_of(recording, known or {})
    for need in malformed(recording, found):
        del found[need]
    for need in _EACH:
        if need in found:
            found[need] = [found[need][row] for row in rows]
    return Materials(
        [recording.main_answer, *(recording.samples[place] for place in places)],
        token_logprobs=[recording.main_logprobs, *(logprobs[at] for at in places)],
        question=recording.question,
        include_answer=include_answer,
        known=found,
    )


def known_of(recording: Recording, provided: Mapping[str, Any], /) -> dict[str, Any]:
    """Return what is known beside the texts: what is recorded, then what is provided.

    A field that is null is not there.
    """
    recorded = {need: recording.extra.get(need) for need in (*_EACH, *_WHOLE)}
    found = {need: one for need, one in recorded.items() if one is not None}
    return {**found, **provided}


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
