"""Recordings and methods to a table: which method finds the wrong answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.bootstrap import Bootstrap, bootstrap
from snne_guard.evaluation.grade import Grade, Grader, Grades, grade_all
from snne_guard.evaluation.jsonl import paired, rereadable
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
    grader: Grader | Grades | None = None,
    draws: int = 1000,
    name: str = "recordings",
    track: Track = iter,
) -> Evaluation:
    """Rank uncertainty methods by how well they find the wrong answers.

    Every ranked method ranks the same questions. A method that cannot score nearly all
    of them is skipped and says why; questions that a ranked method could not score are
    left out for all, and counted. The length of the answer is always among the methods:
    one that does not beat it has not earned its samples. Recordings are gone over three
    times and only numbers are kept of them; those of an iterator are kept in memory.

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
            out. Grades that are known already, one a recording, do as well.
        draws: Bootstrap draws behind the 90 % intervals.
        name: What the set is called.
        track: Takes the places of the questions and yields them, for a progress bar.

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
    read = rereadable(recordings)
    grades = grade_all(read, grader)
    left_out: Counter[str] = Counter()
    kept, n = _kept(read, grades, samples=samples, left_out=left_out)
    seen = _Seen()
    questions = (
        seen.add(_question(recording, n))
        for recording, keep in paired(read, kept)
        if keep
    )
    scores, problems = _scores(
        rows,
        paired(questions, track(range(int(kept.sum())))),
        shape=(len(rows), int(kept.sum())),
        include_answer=include_answer,
        tau=tau,
    )
    ranked_rows, complete = _comparable(scores)
    left_out["not scored by every ranked method"] += int((~complete).sum())
    places = np.flatnonzero(kept)[complete]
    ranked = [grade for at in places if (grade := grades[at]) is not None]
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
        grader=", ".join(dict.fromkeys(grade.grader for grade in ranked)),
        n_read=len(grades),
        left_out={why: count for why, count in left_out.items() if count},
        n_samples=n,
        include_answer=include_answer,
        tau=tau,
        rows=tuple(_results(rows, figures, problems=problems)),
        warnings=tuple(seen.warnings()),
        ids=tuple(seen.ids[at] for at in np.flatnonzero(complete)),
        quality=quality,
        correct=correct,
        uncertainties=uncertainties,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """A question with the texts that count, the delivered answer first."""

    recording: Recording
    texts: list[str]
    logprobs: list[tuple[float, ...] | None]
    known: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _kept(
    recordings: Iterable[Recording],
    grades: Grades,
    *,
    samples: int | None,
    left_out: Counter[str],
) -> tuple[BoolArray, int]:
    """Return which have an answer, a grade and enough samples; count the rest.

    Without ``samples``, enough is the number that most questions have; it comes second.
    """
    sizes = np.full(len(grades), -1)
    for at, (recording, grade) in enumerate(paired(recordings, grades)):
        if grade is None:
            left_out["no label and nothing to grade by"] += 1
        elif not recording.main_answer.strip():
            left_out["an empty answer"] += 1
        else:
            sizes[at] = len(_visible(recording))
    counts = Counter(sizes[sizes >= 0].tolist())
    n = samples or max(counts, key=lambda size: (counts[size], size), default=0)
    kept: BoolArray = sizes >= n
    left_out[f"fewer than {n} samples"] += counts.total() - int(kept.sum())
    if not kept.any():
        whys = [f"{why}: {count}" for why, count in left_out.items() if count]
        msg = f"expected questions to rank, got none ({'; '.join(whys) or 'no lines'})"
        raise InputError(msg)
    return kept, n


def _visible(recording: Recording) -> list[int]:
    return [at for at, text in enumerate(recording.samples) if text.strip()]


def _question(recording: Recording, n: int) -> _Question:
    """Return a recording with the first ``n`` of its samples that are not empty."""
    places = _visible(recording)[:n]
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    known = {"p_true_logprob": recording.extra.get("p_true_logprob")}
    for need in ("hidden_states", "token_importance"):
        values = recording.extra.get(need)
        if isinstance(values, list) and len(values) == 1 + len(recording.samples):
            known[need] = [values[0], *(values[1 + at] for at in places)]
    return _Question(
        recording=recording,
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
    questions: Iterable[tuple[_Question, int]],
    *,
    shape: tuple[int, int],
    include_answer: bool,
    tau: float,
) -> tuple[FloatArray, dict[str, str]]:
    """Return ``(rows, questions)`` raw values, NaN for none, and why there is none."""
    scores = np.full(shape, np.nan)
    problems: dict[str, str] = {}
    for asked, at in questions:
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


def _truth(ranked: Sequence[Grade]) -> tuple[FloatArray, FloatArray | None]:
    """Return the qualities, and right and wrong if every grade draws that line."""
    quality = np.array([grade.quality for grade in ranked], dtype=np.float64)
    correct = [grade.correct for grade in ranked]
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


class _Seen:
    """What is kept of the questions that are scored: no text of an answer."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._sets: set[str] = set()
        self._differing = 0
        self._repeated: set[int] | None = None

    def add(self, asked: _Question) -> _Question:
        self.ids.append(asked.recording.id)
        self._sets.add(str(asked.recording.extra.get("dataset")))
        answer, *samples = asked.texts
        if len(set(samples)) > 1:
            self._differing += 1
            same = {at for at, text in enumerate(samples) if text == answer}
            self._repeated = same if self._repeated is None else self._repeated & same
        return asked

    def warnings(self) -> Iterator[str]:
        """Yield what a reader of the figures must know."""
        if len(self._sets) > 1:
            yield (
                f"the questions have {len(self._sets)} values of 'dataset'; figures "
                "over all of them partly measure which one a question is from"
            )
        if self._differing >= _FEWEST_TO_WARN:
            for place in sorted(self._repeated or ()):
                yield (
                    f"main_answer is samples[{place}] in every question, so it counts "
                    "twice and agrees with itself"
                )
