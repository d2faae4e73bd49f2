"""How a calibration is made, besides what it is to promise."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

from snne_guard.evaluation.calibrating.graded import Recordings
from snne_guard.evaluation.calibrating.scoring import OnProgress
from snne_guard.evaluation.grading.grade import Grader
from snne_guard.evaluation.grading.user_grader import GradeFunction
from snne_guard.types import Method, Similarity

__all__ = ["CalibrationOptions"]


class CalibrationOptions(TypedDict, total=False):
    """What may be said of how a calibration is made; all of it may be left out.

    Attributes:
        pilot: Recordings of other questions, whose scores fix where the tests of an
            error rate start; no labels are needed.
        labels: Where the labels of the only file are, None for beside it.
        grader: What grades an answer without a label: a name, a function, an object;
            ``"label"``: nothing, so that only answers with a label count.
        method: As the guard will have it; ``"auto"``: WSNNE where every recording has
            all log-probabilities, else SNNE; ``"calibrated"``: a combination of
            methods, learnt from one half of the graded answers and certified on the
            other.
        similarity: As the guard will have it.
        tau: As the guard will have it.
        n: Members of the response set; None for all that were recorded.
        rounds: Members of the set after each round, the last n: the whole plan of
            rounds, stops and thresholds is then certified end to end, for an error
            rate. None draws all at once.
        include_answer: Whether the delivered answer is one of them.
        bare_question: Whether the guard is told the question alone, by its option
            ``question``; else the whole message, with the context in front of it.
        model: Name of the model, where the recordings do not say it.
        prompt_version: The user's name for the prompt, where they do not say it.
        on_progress: Told how many recordings are scored, and of how many.
    """

    pilot: Recordings | None
    labels: str | os.PathLike[str] | None
    grader: str | Grader | GradeFunction
    method: str | Method
    similarity: str | Similarity | None
    tau: float | None
    n: int | None
    rounds: Sequence[int] | None
    include_answer: bool
    bare_question: bool
    model: str | None
    prompt_version: str | None
    on_progress: OnProgress | None
