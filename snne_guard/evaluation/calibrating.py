"""Makes a calibration from graded recordings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from snne_guard.checks import check_number
from snne_guard.decision import Calibration, ErrorProbability, Threshold
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.grade import HOW_TO_GRADE, Grade, Grader, graded
from snne_guard.evaluation.recordings import Recording
from snne_guard.evaluation.replaying import score_recordings
from snne_guard.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationResult:
    """A calibration and what it was made of.

    Attributes:
        calibration: For ``SNNEGuard.from_calibration``.
        uncertainty: ``(n,)`` ``u`` of its answers; ``inf`` where one is never accepted.
        correct: ``(n,)`` their grades, 1 right and 0 wrong; empty for a coverage.
        unscored: Why answers can never be accepted, as reason codes with their counts.
        n_ungraded: Recordings that were left out since they have no grade.
        warnings: What a reader of the guarantee should know, in sentences.
    """

    calibration: Calibration
    uncertainty: FloatArray
    correct: IntArray
    unscored: Counter[str]
    n_ungraded: int
    warnings: tuple[str, ...]


def calibrate(
    recordings: Iterable[Recording],
    /,
    *,
    error_rate: float | None = None,
    coverage: float | None = None,
    delta: float = 0.1,
    refuse: float | None = None,
    grader: Grader | None = None,
    **scoring: Any,  # noqa: ANN401 - of score_recordings
) -> CalibrationResult:
    """Make a calibration of recordings.

    Declare the error rate before you look at the labels: trying several and keeping the
    best voids the guarantee.

    Args:
        recordings: All drawn in one way, of questions like those to come. They are
            read one by one, and only numbers are kept.
        error_rate: Largest share of wrong answers among the accepted ones, in (0, 1).
        coverage: The share of answers to accept, in (0, 1), instead of an error rate.
            It needs no grades and guarantees nothing about errors.
        delta: Probability that the error rate is higher nonetheless, in (0, 1).
        refuse: ``u`` above which the guard always refuses, None for no such limit.
        grader: Grades answers without a label; None leaves them out.
        **scoring: Options of ``score_recordings``, as the guard will have them.

    Raises:
        ConfigurationError: An option makes no sense, or the recordings were not all
            drawn in one way.
        InputError: Too few samples were recorded, or the grades carry no guarantee.
        ScoringError: The similarity or the method failed.
        MissingExtraError: scipy or scikit-learn is not installed.

    Example:
        >>> row = {"question": "What?", "main_answer": "a"}
        >>> kinds = [
        ...     {"samples": ["b", "c"], "label": 0},
        ...     {"samples": ["a", "a"], "label": 1},
        ... ]
        >>> rows = [{**row, **kinds[i % 3 > 0], "id": i} for i in range(120)]
        >>> made = map(Recording.from_dict, rows)
        >>> threshold = calibrate(made, error_rate=0.1).calibration.threshold
        >>> threshold.status, threshold.n_accepted
        ('certified', 80)
    """
    if (error_rate is None) == (coverage is None):
        given = f"got {error_rate!r} and {coverage!r}"
        msg = f"expected either error_rate or coverage, {given}"
        raise ConfigurationError(msg)
    shares = {"error_rate": error_rate, "coverage": coverage, "delta": delta}
    for name, share in shares.items():
        if share is not None:
            check_number(share, what=name, above=0, below=1)
    grades: list[Grade] = []
    n_ungraded = 0

    def kept() -> Iterator[Recording]:
        nonlocal n_ungraded
        for row, grade in graded(recordings, grader if coverage is None else None):
            if coverage is None:
                if grade is None:
                    n_ungraded += 1
                    continue
                grades.append(_with_verdict(grade))
            yield row
        if n_ungraded and not grades:
            msg = f"none of the {n_ungraded} answers has a grade: {HOW_TO_GRADE}"
            raise InputError(msg)

    scores = score_recordings(kept(), **scoring)
    correct = np.array([grade.correct for grade in grades], dtype=np.intp)
    u = scores.uncertainty
    if coverage is not None:
        threshold = Threshold.for_coverage(u, coverage)
    else:
        alpha = 0.0 if error_rate is None else error_rate
        threshold = Threshold.for_error_rate(u, correct, alpha=alpha, delta=delta)
    calibration = Calibration(
        settings=scores.settings,
        threshold=threshold,
        refuse=refuse,
        probability=ErrorProbability.fit(u, correct) if len(correct) else None,
        reference=tuple(u[np.isfinite(u)].tolist()),
        reply_models=scores.reply_models,
        other_reply_models=scores.other_reply_models,
        temperature_set=scores.temperature_set,
        graders=Counter(grade.grader for grade in grades),
    )
    return CalibrationResult(
        calibration=calibration,
        uncertainty=u,
        correct=correct,
        unscored=scores.unscored,
        n_ungraded=n_ungraded,
        warnings=tuple(_warnings(calibration)),
    )


def _with_verdict(grade: Grade) -> Grade:
    if grade.correct is None:
        what = f"the grader {grade.grader!r} says how good answers are"
        msg = f"{what}, not which are right; choose another one"
        raise ConfigurationError(msg)
    return grade


def _warnings(calibration: Calibration) -> Iterator[str]:
    programs = [name for name in calibration.graders if name != "label"]
    if programs:
        yield (
            f"a program graded ({', '.join(programs)}): the guarantee is about how "
            "often it calls an answer wrong"
        )
    if calibration.settings.get("model") is None:
        yield (
            "the recordings do not name their model, so a guard whose model has a name "
            "refuses this calibration; name it with --model"
        )
    if len(calibration.reply_models) > 1:
        names = ", ".join(calibration.reply_models)
        yield f"several models replied ({names}); the guarantee is about that mixture"
