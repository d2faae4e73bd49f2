"""Recordings and methods to a table: which method finds the wrong answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.bootstrap import Bootstrap, bootstrap
from snne_guard.evaluation.grade import Grade, Grader, grade_all
from snne_guard.evaluation.plan import Row, plan_rows
from snne_guard.evaluation.recordings import Recording
from snne_guard.evaluation.results import TITLES, Evaluation, MethodResult
from snne_guard.scorers import Method, ResponseSet
from snne_guard.similarity import CrossEncoder
from snne_guard.types import BoolArray, FloatArray, IntArray, Similarity

__all__ = ["evaluate", "with_token_importance"]

_ENOUGH = 0.95
_FEWEST_TO_WARN = 20

Track = Callable[[Sequence[Any]], Iterable[Any]]


def evaluate(
    recordings: Iterable[Recording],
    *,
    methods: str | Sequence[str | Method] = "all",
    similarity: Sequence[str | Similarity] | None = None,
    include_answer: bool = True,
    samples: int | None = None,
    tau: float = 1.0,
    grader: Grader | None = None,
    draws: int = 1000,
    name: str = "recordings",
    track: Track = iter,
) -> Evaluation:
    """Rank uncertainty methods by how well they find the wrong answers.

    Every ranked method ranks the same questions. A method that cannot score nearly all
    of them is skipped and says why; questions that a ranked method could not score are
    left out for all, and counted. The length of the answer is always among the methods:
    one that does not beat it has not earned its samples.

    Args:
        recordings: Of one set; figures of different sets should not be pooled. Methods
            that need them find ``hidden_states`` and ``token_importance`` of the
            delivered answer and each sample, and ``p_true_logprob``, in fields of these
            names.
        methods: ``"all"``, or names of ``METHODS`` and methods of your own. A name may
            have a similarity behind it, as ``"dse[exact]"``.
        similarity: What compares answers: names, or callables of your own, each for
            every method that it fits. None: the method's default where that needs no
            model, ROUGE-L, and for methods on groups of equal meaning ``exact``.
        include_answer: Whether the delivered answer is scored with the samples.
        samples: Samples of each question that count; None: as many as most questions
            have. Questions with fewer are left out and counted.
        tau: Temperature of the similarity's softmax.
        grader: Says which of the answers without a label are right; None leaves them
            out.
        draws: Bootstrap draws behind the 90 % intervals.
        name: What the set is called.
        track: Takes the questions and yields them, for a progress bar.

    Raises:
        ConfigurationError: An unknown method or similarity, or options that do not fit.
        InputError: No question can be ranked.

    Example:
        >>> rows = [
        ...     {"main_answer": "Paris", "samples": ["Paris", "paris."], "label": 1},
        ...     {"main_answer": "1912", "samples": ["In 1912", "1912"], "label": 1},
        ...     {"main_answer": "Lyon", "samples": ["Nice", "Paris"], "label": 0},
        ... ]
        >>> recordings = [
        ...     Recording.from_dict({"id": str(n), "question": None, **row})
        ...     for n, row in enumerate(rows)
        ... ]
        >>> evaluation = evaluate(recordings, methods=["snne[rouge_l]"], draws=10)
        >>> [(row.name, row.metrics["auroc"].value) for row in evaluation.rows]
        [('snne[rouge_l]', 1.0), ('answer_length', 0.5)]
    """
    rows = plan_rows(methods, similarity=similarity)
    read = list(recordings)
    left_out: Counter[str] = Counter()
    questions = _graded_questions(
        read, grade_all(read, grader), samples=samples, left_out=left_out
    )
    scores, problems = _scores(
        rows, questions, include_answer=include_answer, tau=tau, track=track
    )
    ranked_rows, complete = _comparable(scores)
    left_out["not scored by every ranked method"] += int((~complete).sum())
    ranked = [each for each, keep in zip(questions, complete, strict=True) if keep]
    quality, correct = _truth(ranked)
    uncertainties = {rows[at].name: scores[at, complete] for at in ranked_rows}
    metrics = tuple(TITLES)
    figures = bootstrap(
        uncertainties,
        quality if correct is None else correct,
        metrics=metrics if correct is not None else metrics[1:],
        draws=draws,
    )
    return Evaluation(
        name=name,
        grader=", ".join(dict.fromkeys(each.grade.grader for each in ranked)),
        n_read=len(read),
        left_out={why: count for why, count in left_out.items() if count},
        n_samples=len(questions[0].texts) - 1,
        include_answer=include_answer,
        tau=tau,
        rows=tuple(_results(rows, figures, problems=problems)),
        warnings=tuple(_warnings(ranked)),
        ids=tuple(each.recording.id for each in ranked),
        quality=quality,
        correct=correct,
        uncertainties=uncertainties,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Graded:
    """A graded question with the texts that count, the delivered answer first."""

    recording: Recording
    grade: Grade
    texts: list[str]
    logprobs: list[tuple[float, ...] | None]
    known: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _graded_questions(
    recordings: Sequence[Recording],
    grades: Sequence[Grade | None],
    *,
    samples: int | None,
    left_out: Counter[str],
) -> list[_Graded]:
    """Return the questions with an answer, a grade and enough samples; count the rest.

    Without ``samples``, enough is the number that most questions have.
    """
    graded: list[tuple[Recording, Grade, list[int]]] = []
    for recording, grade in zip(recordings, grades, strict=True):
        if grade is None:
            left_out["no label and nothing to grade by"] += 1
        elif not recording.main_answer.strip():
            left_out["an empty answer"] += 1
        else:
            visible = [at for at, text in enumerate(recording.samples) if text.strip()]
            graded.append((recording, grade, visible))
    sizes = Counter(len(visible) for *_, visible in graded)
    n = samples or max(sizes, key=lambda size: (sizes[size], size), default=0)
    questions = [
        _graded_question(recording, grade, visible[:n])
        for recording, grade, visible in graded
        if len(visible) >= n
    ]
    left_out[f"fewer than {n} samples"] += len(graded) - len(questions)
    if not questions:
        whys = [f"{why}: {count}" for why, count in left_out.items() if count]
        msg = f"expected questions to rank, got none ({'; '.join(whys) or 'no lines'})"
        raise InputError(msg)
    return questions


def _graded_question(
    recording: Recording, grade: Grade, places: Sequence[int]
) -> _Graded:
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    known = {"p_true_logprob": recording.extra.get("p_true_logprob")}
    for need in ("hidden_states", "token_importance"):
        values = recording.extra.get(need)
        if isinstance(values, list) and len(values) == 1 + len(recording.samples):
            known[need] = [values[0], *(values[1 + at] for at in places)]
    return _Graded(
        recording=recording,
        grade=grade,
        texts=[recording.main_answer, *(recording.samples[at] for at in places)],
        logprobs=[recording.main_logprobs, *(logprobs[at] for at in places)],
        known={need: value for need, value in known.items() if value is not None},
    )


def with_token_importance(
    recordings: Iterable[Recording], model: CrossEncoder
) -> Iterator[Recording]:
    """Yield recordings with the importance of their tokens, for TokenSAR and SAR.

    It takes the texts of the tokens, the fields ``main_tokens`` and ``tokens`` that
    ``record`` writes; a recording without them stays as it is.
    """
    for row in recordings:
        main, samples = row.extra.get("main_tokens"), row.extra.get("tokens")
        if not (isinstance(main, list) and isinstance(samples, list)):
            yield row
            continue
        texts = (main, *samples)
        weights = [one and model.token_importance(row.question, one) for one in texts]
        yield replace(row, extra={**row.extra, "token_importance": weights})


def _scores(
    rows: Sequence[Row],
    questions: Sequence[_Graded],
    *,
    include_answer: bool,
    tau: float,
    track: Track,
) -> tuple[FloatArray, dict[str, str]]:
    """Return ``(rows, questions)`` raw values, NaN for none, and why there is none."""
    scores = np.full((len(rows), len(questions)), np.nan)
    problems: dict[str, str] = {}
    for at, asked in enumerate(track(questions)):
        sets: dict[str, ResponseSet] = {}
        for number, row in enumerate(rows):
            if row.skipped is not None:
                continue
            name, compare = row.similarity
            if name not in sets:
                sets[name] = ResponseSet(
                    asked.texts,
                    similarity=compare,
                    name=name,
                    question=asked.recording.question,
                    token_logprobs=asked.logprobs,
                    tau=tau,
                    answer="member" if include_answer else "apart",
                    **asked.known,
                )
            try:
                scores[number, at] = row.method.compute(sets[name])
            except ConfigurationError:
                raise
            except (ValueError, ArithmeticError) as error:
                why = str(error).replace(f" for method {row.method.name!r}", "")
                problems.setdefault(row.name, why)
    return scores, problems


def _comparable(scores: FloatArray) -> tuple[IntArray, BoolArray]:
    """Return the rows to rank, and which questions all of them scored."""
    missing = np.isnan(scores)
    ranked = np.flatnonzero(missing.mean(axis=1) <= 1 - _ENOUGH)
    complete: BoolArray = np.logical_not(missing[ranked].any(axis=0))
    if not complete.any():
        msg = "expected a question that every method scores, got none"
        raise InputError(msg)
    return ranked, complete


def _truth(ranked: Sequence[_Graded]) -> tuple[FloatArray, FloatArray | None]:
    """Return the qualities, and right and wrong if every grade draws that line."""
    quality = np.array([each.grade.quality for each in ranked], dtype=np.float64)
    correct = [each.grade.correct for each in ranked]
    if None in correct:
        return quality, None
    return quality, np.array(correct, dtype=np.float64)


def _results(
    rows: Sequence[Row], figures: Bootstrap, *, problems: Mapping[str, str]
) -> Iterator[MethodResult]:
    first, *_ = figures.points
    for row in rows:
        name, white_box = row.name, row.method.white_box
        if name not in figures.points:
            why = row.skipped or problems.get(name, "it gave no number")
            yield MethodResult(name=name, white_box=white_box, skipped=why)
            continue
        metrics = figures.points[name]
        compared = () if name == first else metrics
        yield MethodResult(
            name=name,
            white_box=white_box,
            metrics={one: figures.interval(name, one) for one in metrics},
            differences={one: figures.difference(name, first, one) for one in compared},
        )


def _warnings(ranked: Sequence[_Graded]) -> Iterator[str]:
    names = {str(each.recording.extra.get("dataset")) for each in ranked}
    if len(names) > 1:
        yield (
            f"the questions have {len(names)} values of 'dataset'; figures over all of "
            "them partly measure which one a question is from"
        )
    differing = [each.texts for each in ranked if len(set(each.texts[1:])) > 1]
    for place in range(1, len(ranked[0].texts)):
        if len(differing) < _FEWEST_TO_WARN:
            return
        if all(texts[place] == texts[0] for texts in differing):
            yield (
                f"main_answer is samples[{place - 1}] in every question, so it counts "
                "twice and agrees with itself"
            )
