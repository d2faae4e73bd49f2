"""From recordings and grades to a calibration, with the evidence behind it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from snne_guard.assess.binding import TEMPERATURE_UNSET
from snne_guard.assess.calibrated import settings_of
from snne_guard.decision import Calibration, Cascade, exploratory, probability_maps
from snne_guard.errors import InputError
from snne_guard.evaluation.calibrating.cautions import cautions
from snne_guard.evaluation.calibrating.drawn_alike import DrawnAlike, drawn_alike, named
from snne_guard.evaluation.calibrating.graded import (
    Answers,
    Recordings,
    graded,
    read_answers,
)
from snne_guard.evaluation.calibrating.kept import halves, kept_answers
from snne_guard.evaluation.calibrating.options import CalibrationOptions
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.calibrating.results import CalibrationRun
from snne_guard.evaluation.calibrating.scoring import (
    OnProgress,
    Scoring,
    check_rounds,
    early_stages,
    settled_method,
)
from snne_guard.evaluation.grading.grade import Grader
from snne_guard.evaluation.grading.user_grader import GradeFunction
from snne_guard.evaluation.recording.recordings import Recording
from snne_guard.sampling import SamplingPlan
from snne_guard.types import FloatArray, IntArray, Method, Similarity

__all__ = ["calibrate", "counted", "run_calibration"]


def calibrate(
    recordings: Recordings | Sequence[str | os.PathLike[str]],
    /,
    *,
    error_rate: float | None = None,
    joint_error: float | None = None,
    false_refusal: float | None = None,
    coverage: float | None = None,
    delta: float = 0.1,
    **options: Unpack[CalibrationOptions],
) -> Calibration:
    """Make a calibration of recordings.

    Args:
        recordings: A file of recordings, several, or the recordings themselves; the
            labels that people gave are looked for beside each file.
        error_rate: Largest share of wrong answers among the accepted ones.
        joint_error: Largest share of all answers that is accepted and wrong.
        false_refusal: Largest share of the right answers that is not accepted; beside
            ``error_rate`` it makes a second threshold, above which is refused.
        coverage: Share of all answers that is to be accepted; needs no labels.
        delta: Probability that the error rate is higher all the same.
        options: Those of ``run_calibration``, which returns the evidence too; see
            ``CalibrationOptions``.

    Returns:
        The calibration: ``SNNEGuard.from_calibration(model, calibration)``.

    Raises:
        ConfigurationError: An option makes no sense.
        InputError: The recordings or their labels can promise nothing.
        OSError: A file cannot be read.

    Example:
        >>> rows = [
        ...     Recording(
        ...         id=str(n),
        ...         question=f"What is {n}?",
        ...         main_answer="a",
        ...         samples=("a", "a") if n % 3 else ("b", "c"),
        ...         label=1 if n % 3 else 0,
        ...     )
        ...     for n in range(120)
        ... ]
        >>> made = calibrate(rows, error_rate=0.1)
        >>> made.threshold.status, made.threshold.n_accepted, made.settings["n"]
        ('certified', 80, 3)
    """
    promise = Promise(
        error_rate=error_rate,
        joint_error=joint_error,
        false_refusal=false_refusal,
        coverage=coverage,
        delta=delta,
    )
    return run_calibration(recordings, promise, **options).calibration


def run_calibration(
    recordings: Recordings | Sequence[str | os.PathLike[str]],
    promise: Promise,
    /,
    *,
    pilot: Recordings | None = None,
    labels: str | os.PathLike[str] | None = None,
    grader: str | Grader | GradeFunction = "label",
    method: str | Method = "snne",
    similarity: str | Similarity | None = None,
    tau: float | None = None,
    n: int | None = None,
    rounds: Sequence[int] | None = None,
    include_answer: bool = True,
    bare_question: bool = False,
    model: str | None = None,
    prompt_version: str | None = None,
    on_progress: OnProgress | None = None,
) -> CalibrationRun:
    """Make a calibration of recordings, and return what it was made of too.

    ``u`` comes from the very code that a guard runs. An answer whose set lacks a
    member, or whose samples agree as independent draws would not, counts as one that is
    never accepted, which is what the guard does with it.

    Args:
        recordings: As for ``calibrate``.
        promise: What is asked for, declared before the labels are looked at.
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

    Raises:
        ConfigurationError: An option makes no sense.
        InputError: The recordings or their labels can promise nothing.
        OSError: A file cannot be read.
    """
    answers = graded(read_answers(_each(recordings), labels=labels), grader=grader)
    if not answers.recordings:
        msg = "expected recordings to make a calibration of, got none"
        raise InputError(msg)
    if rounds is not None:
        last = check_rounds(rounds)[-1]
        n = last if n is None else n
    wanted = None if n is None else max(n - int(include_answer), 1)
    alike = drawn_alike(answers.recordings, n_samples=wanted)
    kept, correct = kept_answers(answers, promise)
    alike = named(alike, model=model, prompt_version=prompt_version)
    learnt = method == "calibrated"
    scoring = Scoring.of(
        n=alike.n_samples + int(include_answer) if n is None else n,
        include_answer=include_answer,
        bare=bare_question,
        temperature=alike.temperature,
        method="snne" if learnt else settled_method(method, kept),
        similarity=similarity,
        tau=tau,
    )
    _settings(scoring, alike, rounds)  # an n that is none ends here
    material = _Material(answers=answers, alike=alike, kept=kept, correct=correct)
    if learnt:
        scoring, material = _combined(scoring, material)
    started = None if pilot is None else _pilot(pilot, scoring, answers)
    return _run(
        promise,
        scoring,
        material,
        rounds=rounds,
        pilot=started,
        on_progress=on_progress,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Material:
    """What a calibration is made of.

    Attributes:
        answers: All that were read.
        alike: How they were drawn.
        kept: Those that the promise is made by.
        correct: Their grades, empty where it needs none.
        n_fitted: How many more a combination was learnt from.
    """

    answers: Answers
    alike: DrawnAlike
    kept: Sequence[Recording]
    correct: IntArray
    n_fitted: int = 0


def _combined(scoring: Scoring, material: _Material) -> tuple[Scoring, _Material]:
    """Return a method learnt from one half, and the other half."""
    fitting, kept, correct = halves(material.kept, material.correct)
    rest = replace(material, kept=kept, correct=correct, n_fitted=len(fitting[0]))
    return scoring.combined(*fitting), rest


def _run(
    promise: Promise,
    scoring: Scoring,
    material: _Material,
    *,
    rounds: Sequence[int] | None,
    pilot: FloatArray | None,
    on_progress: OnProgress | None,
) -> CalibrationRun:
    """Return the calibration of scored answers, with what it was made of."""
    answers, kept, correct = material.answers, material.kept, material.correct
    graders = answers.graders if len(correct) else Counter[str]()
    settings = _settings(scoring, material.alike, rounds)
    u, why = scoring.uncertainties(kept, on_progress)
    stages = {**early_stages(scoring, kept, rounds or ()), scoring.n: u}
    decided = _decided(promise, stages, correct, method=settings["method"], pilot=pilot)
    calibration = Calibration(
        settings=settings,
        **decided,
        combination=scoring.combination,
        labels=answers.digest if graders else None,
        graders=graders,
    )
    both = 0 < int(correct.sum()) < len(correct)
    return CalibrationRun(
        calibration=calibration,
        ids=tuple(row.id for row in kept),
        uncertainty=u,
        correct=correct,
        n_read=len(answers.recordings),
        n_fitted=material.n_fitted,
        ungraded=sum(one is None for one in answers.correct),
        skipped=answers.skipped,
        n_pilot=0 if pilot is None else len(pilot),
        graders=graders,
        unacceptable=why,
        exploration=exploratory(u, correct, delta=promise.delta) if both else (),
        warnings=cautions(answers, material.alike, kept, labelled=bool(graders)),
    )


def _decided(
    promise: Promise,
    stages: Mapping[int, FloatArray],
    correct: IntArray,
    *,
    method: str,
    pilot: FloatArray | None,
) -> dict[str, Any]:
    """Return what a calibration decides by, and what it reads P(wrong) from."""
    if len(stages) > 1:
        plan = promise.cascade(stages, correct, method=method, pilot=pilot)
        return {"threshold": plan.promise, **_in_use(plan, stages, correct)}
    [(n, u)] = stages.items()
    maps = probability_maps({n: (u, correct)}) if len(correct) else {}
    accept, refuse = promise.thresholds(u, correct, method=method, pilot=pilot)
    if refuse is not None and not refuse.certified:
        refuse = None
    return {
        "threshold": accept,
        "refuse": refuse,
        "probability": maps,
        "reference": tuple(u[np.isfinite(u)].tolist()),
    }


def _in_use(
    plan: Cascade, stages: Mapping[int, FloatArray], correct: IntArray
) -> dict[str, Any]:
    """Return what a guard meets that goes by a plan.

    What a later round says of answers that an earlier one has settled is never read,
    and what such a guard sees of ``u`` is where each answer ends.
    """
    paths = np.column_stack([*stages.values()])
    ends, _ = plan.replay(paths)
    reaching = {
        members: (u[ends >= place], correct[ends >= place])
        for place, (members, u) in enumerate(stages.items())
        if (ends >= place).any()
    }
    seen = paths[np.arange(len(paths)), ends]
    return {
        "cascade": plan,
        "probability": probability_maps(reaching),
        "reference": tuple(seen[np.isfinite(seen)].tolist()),
    }


def counted(made: Calibration, previous: Calibration | None, /) -> Calibration:
    """Return a calibration that says how often the same labels were used so far.

    Args:
        made: The new one.
        previous: The one in whose place it comes. Made in the same way it is the same
            one; made of the same labels in another way, this is one try more.
    """
    if previous is None or made.labels is None or previous.labels != made.labels:
        return made
    same = _told(made) == _told(previous)
    return replace(made, tries=previous.tries + (not same))


def _told(calibration: Calibration) -> dict[str, Any]:
    content = calibration.to_dict()
    for name in ("tries", "created", "version"):
        del content[name]
    return content


def _each(
    recordings: Recordings | Sequence[str | os.PathLike[str]],
) -> list[Recordings]:
    if isinstance(recordings, str | os.PathLike):
        return [recordings]
    listed = list(recordings)
    if all(isinstance(one, Recording) for one in listed):
        return [[one for one in listed if isinstance(one, Recording)]]
    return [one for one in listed if not isinstance(one, Recording)]


def _settings(
    scoring: Scoring, alike: DrawnAlike, rounds: Sequence[int] | None
) -> dict[str, Any]:
    plan = SamplingPlan(
        n=scoring.n,
        rounds=rounds,
        include_answer=scoring.include_answer,
        temperature=alike.temperature,
    )
    settings = settings_of(
        plan,
        scoring.judge,
        model=alike.model,
        answer_settings=alike.answer_settings,
        prompt_version=alike.prompt_version,
    )
    unset = {TEMPERATURE_UNSET: True} if alike.temperature_unset else {}
    return {**settings, **unset, "reply_models": list(alike.reply_models)}


def _pilot(pilot: Recordings, scoring: Scoring, answers: Answers) -> FloatArray:
    """Return ``u`` of other answers than those that are graded.

    Raises:
        InputError: They are the same ones, or drawn in another way.
    """
    rows = [row for found, _ in read_answers([pilot]) for row in found]
    if not rows:
        msg = "expected recordings in the pilot, got none"
        raise InputError(msg)
    known = {row.id for row in answers.recordings}
    same = [row.id for row in rows if row.id in known]
    if same:
        msg = (
            f"expected a pilot of other questions; {len(same)} of its ids are among "
            f"the recordings too, such as {same[0]!r}"
        )
        raise InputError(msg)
    wanted = scoring.n - int(scoring.include_answer)
    drawn_alike([answers.recordings[0], *rows], n_samples=wanted)
    return scoring.uncertainties(rows)[0]
