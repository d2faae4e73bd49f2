"""How far the recorded answers to a question differ."""

from __future__ import annotations

import math
from typing import Any

from snne_guard._version import __version__
from snne_guard.errors import InputError
from snne_guard.evaluation.recordings import Recording
from snne_guard.scorers import score
from snne_guard.types import Score


def score_recording(
    recording: Recording,
    /,
    *,
    include_answer: bool = True,
    **options: Any,  # noqa: ANN401 - of score
) -> Score:
    """Score how far the guarded model's recorded answers to a question differ.

    Args:
        recording: The question.
        include_answer: Whether the answer is scored together with its samples.
        **options: ``method``, ``similarity`` and ``tau`` of ``snne_guard.score``.

    Raises:
        InputError: It cannot be scored; the message names its id.
    """
    known = recording.token_logprobs or (None,) * len(recording.samples)
    answers = tuple(recording.samples[at] for at in recording.own_places)
    logprobs = tuple(known[at] for at in recording.own_places)
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


def score_record(score: Score, /) -> dict[str, Any]:
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
