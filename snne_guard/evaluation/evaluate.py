"""Recordings and methods to a table: which method finds the wrong answers."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.bootstrap import Bootstrap, bootstrap
from snne_guard.evaluation.grade import Grade, Grader, graded
from snne_guard.evaluation.plan import Row, plan_rows
from snne_guard.evaluation.recipes import RecipeTable
from snne_guard.evaluation.recordings import Recording
from snne_guard.evaluation.results import TITLES, Evaluation, MethodResult
from snne_guard.evaluation.sentences import SentenceTable
from snne_guard.scorers import Method, ResponseSet
from snne_guard.similarity import CrossEncoder
from snne_guard.types import BoolArray, FloatArray, IntArray, Prices, Similarity

__all__ = ["evaluate", "with_token_importance"]

_ENOUGH = 0.95


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
    calls: int = 5,
    prices: Prices | None = None,
) -> Evaluation:
    """Rank uncertainty methods by how well they find the wrong answers.

    Every ranked method ranks the same questions. A method that cannot score nearly all
    of them is skipped and says why; questions that a ranked method could not score are
    left out for all, and counted. The length of the answer is always among the methods:
    one that does not beat it has not earned its samples. Where recordings have
    self-checks or views, recipes are compared as well: ways to spend a guard's calls.
    Where they have ``sentence_labels``, sentences are ranked too.

    Args:
        recordings: Of one set; figures of different sets should not be pooled. They are
            read one by one, and only ids and numbers are kept. Methods that need them
            find ``hidden_states`` and ``token_importance`` of the delivered answer and
            each sample, and ``p_true_logprob``, in fields of these names.
        methods: ``"all"``, or names of ``METHODS`` and methods of your own. A name may
            have a similarity behind it, as ``"dse[exact]"``.
        similarity: What compares answers: names, or callables of your own, each for
            every method that it fits. None: the method's default where that needs no
            model, ROUGE-L, and for methods on groups of equal meaning ``exact``.
        include_answer: Whether the delivered answer is scored with the samples.
        samples: Samples of each question that count; None: as many as the first graded
            question has. Questions with fewer are left out and counted.
        tau: Temperature of the similarity's softmax.
        grader: Says which of the answers without a label are right; None leaves them
            out.
        draws: Bootstrap draws behind the 90 % intervals.
        name: What the set is called.
        calls: How many calls the plain recipe has that the others are compared with.
        prices: Of tokens, for what the recipes cost.

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
    recipes = RecipeTable(calls=calls, prices=prices)
    sentences = SentenceTable()
    left_out: Counter[str] = Counter()
    problems: dict[str, str] = {}
    columns = [array("d") for _ in rows]
    ids: list[str] = []
    grades: list[Grade] = []
    n_read = 0
    for recording, grade in graded(recordings, grader):
        n_read += 1
        sentences.add(recording)
        if grade is None:
            left_out["no label and nothing to grade by"] += 1
            continue
        if not recording.main_answer.strip():
            left_out["an empty answer"] += 1
            continue
        recipes.add(recording, grade.correct)
        samples = len(recording.samples) if samples is None else samples
        if len(_visible(recording)) < samples:
            left_out[f"fewer than {samples} samples"] += 1
            continue
        asked = _response_set(recording, samples, tau=tau, with_answer=include_answer)
        for column, value in zip(columns, _scores(rows, asked, problems), strict=True):
            column.append(value)
        ids.append(recording.id)
        grades.append(grade)
    if not ids:
        whys = "; ".join(f"{why}: {count}" for why, count in left_out.items())
        msg = f"{name}: expected questions to rank, got none ({whys or 'no lines'})"
        raise InputError(msg)
    scores: FloatArray = np.array(columns)
    ranked_rows, complete = _comparable(scores)
    left_out["not scored by every ranked method"] += int((~complete).sum())
    ranked = [grades[at] for at in np.flatnonzero(complete)]
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
        n_read=n_read,
        left_out={why: count for why, count in left_out.items() if count},
        n_samples=samples or 0,
        include_answer=include_answer,
        tau=tau,
        rows=tuple(_results(rows, figures, problems=problems)),
        ids=tuple(ids[at] for at in np.flatnonzero(complete)),
        quality=quality,
        correct=correct,
        uncertainties=uncertainties,
        recipes=recipes.compared(draws=draws),
        sentences=sentences.ranking(),
    )


def _visible(recording: Recording) -> list[int]:
    return [at for at, text in enumerate(recording.samples) if text.strip()]


def _response_set(
    recording: Recording, n: int, *, tau: float, with_answer: bool
) -> Callable[..., ResponseSet]:
    """Return what makes the set of the answer and ``n`` samples for a similarity."""
    places = _visible(recording)[:n]
    logprobs = recording.token_logprobs or (None,) * len(recording.samples)
    known = {"p_true_logprob": recording.extra.get("p_true_logprob")}
    for need in ("hidden_states", "token_importance"):
        values = recording.extra.get(need)
        if isinstance(values, list) and len(values) == 1 + len(recording.samples):
            known[need] = [values[0], *(values[1 + at] for at in places)]
    return partial(
        ResponseSet,
        [recording.main_answer, *(recording.samples[at] for at in places)],
        question=recording.question,
        token_logprobs=[recording.main_logprobs, *(logprobs[at] for at in places)],
        tau=tau,
        answer="member" if with_answer else "apart",
        **{need: value for need, value in known.items() if value is not None},
    )


def _scores(
    rows: Sequence[Row],
    response_set: Callable[..., ResponseSet],
    problems: dict[str, str],
) -> Iterator[float]:
    """Yield each raw value, NaN where there is none; the first reason is kept."""
    sets: dict[str, ResponseSet] = {}
    for row in rows:
        value = math.nan
        if row.skipped is None:
            name, compare = row.similarity
            if name not in sets:
                sets[name] = response_set(similarity=compare, name=name)
            try:
                value = row.method.compute(sets[name])
            except ConfigurationError:
                raise
            except (ValueError, ArithmeticError) as error:
                why = str(error).replace(f" for method {row.method.name!r}", "")
                problems.setdefault(row.name, why)
        yield value


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
