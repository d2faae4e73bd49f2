"""Ranks methods by how well they find the wrong answers of recordings."""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from pydantic_core import to_json

from snne_guard.cost import Prices
from snne_guard.engine.reply_set import compared_text
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation.accepting import guard_u, why_never_accepted
from snne_guard.evaluation.documents import AND_GROUNDED, doubt, grounded_rows
from snne_guard.evaluation.fields import FieldSummary, FieldTable
from snne_guard.evaluation.grade import HOW_TO_GRADE, Grade, Grader, graded
from snne_guard.evaluation.metrics import Interval, bootstrap
from snne_guard.evaluation.recipes import RecipeComparison, RecipeTable
from snne_guard.evaluation.recorded_calls import PER_REPLY
from snne_guard.evaluation.recordings import Recording
from snne_guard.evaluation.replaying import RecordedCall
from snne_guard.evaluation.sentences import (
    SentenceRanking,
    labelled_sentences,
    ranked_sentences,
)
from snne_guard.evaluation.tables import frame_of
from snne_guard.scorers import METHODS, Inputs, Method, resolve_method
from snne_guard.similarity import SIMILARITIES, resolve_similarity
from snne_guard.text import is_visible
from snne_guard.types import FloatArray, IntArray, Reply, Similarity, Span

_ENOUGH = 0.95
_UNGRADED = "no label and nothing to grade by"

TITLES = {
    "auroc": "AUROC",
    "auarc": "AUARC",
    "prr": "PRR",
    "prr_normalised": "PRR, normalised",
}
"""Display names of the metrics of an evaluation."""

BASELINE = "answer_length"
"""The method in every table, so that nobody mistakes length for uncertainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """How well one method finds the wrong answers.

    Attributes:
        name: What ran, such as ``dse[exact]``.
        white_box: Whether it needs more than the texts of replies.
        metrics: ``auroc`` (where answers are right or wrong), ``auarc``, ``prr`` and
            ``prr_normalised`` with 90% intervals over resamples of the questions.
        differences: The same minus those of the first method; empty for the first.
    """

    name: str
    white_box: bool
    metrics: Mapping[str, Interval]
    differences: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was found on one set of recordings.

    Attributes:
        name: Name of the set.
        grader: Who says which answers are right.
        n_read: Number of recordings in the set.
        left_out: How many were not ranked, by reason.
        n_samples: Samples of each question that counted.
        include_answer: Whether the delivered answer was scored with them.
        tau: Temperature of SNNE's log-sum-exp.
        rows: The methods that were ranked, in the order in which they were asked for.
        skipped: Those that were not, with the reason.
        ids: Ids of the ``n`` ranked questions.
        quality: ``(n,)`` quality of their answers in [0, 1].
        correct: ``(n,)`` 1 right and 0 wrong, None where the grader draws no such line.
        uncertainties: For each ranked method ``(n,)`` raw values.
        u: ``(n,)`` ``u`` of the first method, if it has one; ``inf`` where a calibrated
            guard could never accept the answer.
        never_accepted: Why, as reason codes with their counts.
        recipes: What the recipes are worth, if there is something to compare: a
            self-check, other model or view, and right and wrong answers.
        sentences: How well sentences are ranked; None where none are labelled.
        fields: What is known of each field; empty where no answer is JSON.
    """

    name: str
    grader: str
    n_read: int
    left_out: Mapping[str, int]
    n_samples: int
    include_answer: bool
    tau: float
    rows: tuple[MethodResult, ...]
    skipped: Mapping[str, str]
    ids: tuple[str, ...] = field(repr=False)
    quality: FloatArray = field(repr=False)
    correct: FloatArray | None = field(repr=False)
    uncertainties: Mapping[str, FloatArray] = field(repr=False)
    u: FloatArray | None = field(repr=False)
    never_accepted: Mapping[str, int]
    recipes: RecipeComparison | None
    sentences: SentenceRanking | None
    fields: tuple[FieldSummary, ...]

    @property
    def accuracy(self) -> float | None:
        """The share of right answers, None where the grader draws no such line."""
        return None if self.correct is None else float(self.correct.mean())

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the methods were ranked by; the first decides the order."""
        return tuple(self.rows[0].metrics)

    @property
    def ranked(self) -> tuple[MethodResult, ...]:
        """The methods that were ranked, best first."""
        first, *_ = self.metrics

        def place(row: MethodResult) -> tuple[bool, float]:
            value = row.metrics[first].value
            return math.isnan(value), -value

        return tuple(sorted(self.rows, key=place))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, without texts of questions or answers.

        Of a JSON answer, it has the keys.
        """
        plain = to_json(
            self, inf_nan_mode="null", fallback=lambda array: array.tolist()
        )
        derived = {"n_ranked": len(self.ids), "accuracy": self.accuracy}
        return {**json.loads(plain), **derived}

    def to_frame(self, *, backend: str = "pandas") -> Any:  # noqa: ANN401 - of any library
        """Return a data frame with a row for each question and a column per method.

        The other columns are ``id``, ``quality``, ``correct`` and ``u``, where known.

        Args:
            backend: The library of the frame: ``"pandas"``, ``"polars"``, ...

        Raises:
            MissingExtraError: narwhals or that library is not installed.
        """
        known = {"correct": self.correct, "u": self.u, **self.uncertainties}
        columns = {"id": self.ids, "quality": self.quality.tolist()}
        given = {k: each.tolist() for k, each in known.items() if each is not None}
        return frame_of(columns | given, backend=backend)


def evaluate(
    recordings: Iterable[Recording],
    *,
    methods: str | Sequence[str | Method] = "all",
    similarity: str | Similarity | None = None,
    include_answer: bool = True,
    samples: int | None = None,
    tau: float = 1.0,
    grader: Grader | None = None,
    resamples: int = 1000,
    name: str = "recordings",
    calls: int = 5,
    prices: Prices | None = None,
    other_prices: Mapping[str, Prices] | None = None,
) -> Evaluation:
    """Rank uncertainty methods by how well they find the wrong answers.

    Every ranked method ranks the same questions. A method that cannot score nearly all
    of them is skipped and says why; questions that a ranked method could not score are
    left out for all, and counted. The length of the answer is always among the methods:
    one that does not beat it is not worth its samples. Methods leave the samples of
    other models out. If recordings have these, self-checks or views, recipes, which are
    ways to spend a guard's calls, are compared as well. If they have
    ``sentence_labels``, as ``calibrate_spans`` describes them, sentences are ranked
    too. Fields of JSON answers are summed up, with ``field_labels`` as
    ``calibrate_fields`` describes them. If all have a ``context``, how far it supports
    the answers (``grounded``) is ranked, and the pair of that and the first method.

    Args:
        recordings: Of one set; figures of different sets should not be pooled. They are
            read one by one, and only ids and numbers are kept. Methods that need them
            find ``hidden_states``, ``token_importance`` and ``p_true_logprob`` in
            fields of these names.
        methods: ``"all"``, or names of ``METHODS`` and methods of your own. A name may
            be followed by a similarity, as in ``"dse[exact]"``.
        similarity: What compares answers for the other methods, a name or a callable;
            None: each method's default. A method is skipped if that needs a model.
        include_answer: Whether the delivered answer is scored with the samples.
        samples: Samples of each question that count; None: as many as the first graded
            question has. Questions with fewer that are not blank are left out.
        tau: Temperature of SNNE's log-sum-exp.
        grader: Grades the answers without a label; None leaves them out.
        resamples: Bootstrap resamples behind the 90% intervals.
        name: What the set is called.
        calls: Number of calls of the plain recipe that the others are compared with.
        prices: Token prices of the guarded model, for the cost of the recipes.
        other_prices: Those of other models, by name.

    Raises:
        ConfigurationError: An unknown method or similarity, or options that do not fit.
        InputError: No question can be ranked, or a recording contradicts itself.

    Example:
        >>> rows = [
        ...     {"id": 1, "main_answer": "Paris", "samples": ["Paris"], "label": 1},
        ...     {"id": 2, "main_answer": "1912", "samples": ["In 1912"], "label": 1},
        ...     {"id": 3, "main_answer": "Lyon", "samples": ["Nice"], "label": 0},
        ... ]
        >>> recordings = [
        ...     Recording.from_dict({"question": None, **row}) for row in rows
        ... ]
        >>> evaluation = evaluate(recordings, methods=["snne[rouge_l]"], resamples=10)
        >>> [(row.name, row.metrics["auroc"].value) for row in evaluation.rows]
        [('snne[rouge_l]', 1.0), ('answer_length', 0.5)]
    """
    rows, skipped = _planned(methods, similarity)
    recipes = RecipeTable(calls=calls, prices=prices, other_prices=other_prices)
    sentences: list[tuple[list[Span], Sequence[int]]] = []
    fields = FieldTable()
    left_out: Counter[str] = Counter()
    problems: dict[str, str] = {}
    columns = [array("d") for _ in rows]
    kept: list[tuple[str, Grade, str | None, float]] = []
    n_read = 0
    for recording, grade in graded(recordings, grader):
        n_read += 1
        sentences.extend(labelled_sentences(recording))
        fields.add(recording)
        if grade is None:
            left_out[_UNGRADED] += 1
            continue
        call = RecordedCall(recording)
        answer = compared_text(call.answer)
        if not is_visible(answer):
            left_out["an empty answer"] += 1
            continue
        recipes.add(call, grade.correct)
        samples = len(call.own) if samples is None else samples
        visible = _visible(call)[:samples]
        if len(visible) < samples:
            left_out[f"fewer than {samples} samples with text"] += 1
            continue
        asked = _inputs(call, visible, tau=tau, with_answer=include_answer)
        for column, value in zip(columns, _scores(rows, asked, problems), strict=True):
            column.append(value)
        why = why_never_accepted(call.answer, call.own[:samples])
        kept.append((recording.id, grade, why, doubt(answer, recording.context)))
    if not kept:
        told = "; ".join(f"{why}: {count}" for why, count in left_out.items())
        msg = f"{name}: expected questions to rank, got none ({told or 'no lines'})"
        if left_out[_UNGRADED]:
            msg = f"{msg}: {HOW_TO_GRADE}"
        raise InputError(msg)
    scores: FloatArray = np.array(columns)
    places, complete = _comparable(scores)
    left_out["not scored by every ranked method"] = len(kept) - len(complete)
    complete_rows = [*zip(*(kept[at] for at in complete), strict=True)]
    ids, grades, never, doubts = complete_rows or [()] * 4
    quality: FloatArray = np.array([grade.quality for grade in grades])
    verdicts = [grade.correct for grade in grades]
    correct = None if None in verdicts else np.array(verdicts, dtype=np.float64)
    uncertainties = {rows[at].name: scores[at, complete] for at in places}
    skipped |= {
        row.name: problems.get(row.name, "it gave no number")
        for row in rows
        if row.name not in uncertainties
    }
    first, n = places[0], (samples or 0) + include_answer
    u = guard_u(rows[first].method, scores[first, complete], n, tau=tau, never=never)
    uncertainties |= grounded_rows(uncertainties, np.array(doubts))
    return Evaluation(
        name=name,
        grader=", ".join(dict.fromkeys(grade.grader for grade in grades)),
        n_read=n_read,
        left_out={why: count for why, count in left_out.items() if count},
        n_samples=samples or 0,
        include_answer=include_answer,
        tau=tau,
        rows=tuple(
            _results(
                uncertainties,
                quality if correct is None else correct,
                metrics=tuple(TITLES)[correct is None :],
                white_box={row.name for row in rows if row.method.white_box},
                resamples=resamples,
            )
        ),
        skipped=skipped,
        ids=ids,
        quality=quality,
        correct=correct,
        uncertainties=uncertainties,
        u=u,
        never_accepted=Counter(filter(None, never)),
        recipes=recipes.compared(resamples=resamples),
        sentences=ranked_sentences(sentences),
        fields=fields.summaries(),
    )


def _results(
    uncertainties: Mapping[str, FloatArray],
    quality: FloatArray,
    *,
    metrics: Sequence[str],
    white_box: Collection[str],
    resamples: int,
) -> Iterator[MethodResult]:
    """Yield the figures of each row for finding wrong answers."""
    figures = bootstrap(uncertainties, quality, metrics=metrics, resamples=resamples)
    first, *_ = uncertainties
    for name in uncertainties:
        yield MethodResult(
            name=name,
            white_box=name.removesuffix(AND_GROUNDED) in white_box,
            metrics={one: figures.interval(name, one) for one in metrics},
            differences={
                one: figures.difference(name, first, one)
                for one in metrics
                if name != first
            },
        )


class _Row(NamedTuple):
    """What runs, as ``dse[exact]``: a method and what compares answers for it."""

    name: str
    method: Method
    similarity: Similarity
    similarity_name: str


def _planned(
    methods: str | Sequence[str | Method], similarity: str | Similarity | None
) -> tuple[list[_Row], dict[str, str]]:
    """Return the methods to run, each once, the baseline last, and those left out."""
    if isinstance(methods, str):
        methods = list(METHODS) if methods == "all" else methods.split(",")
    rows: dict[str, _Row] = {}
    skipped: dict[str, str] = {}
    for asked in (*methods, BASELINE):
        given, wanted = asked, similarity
        if isinstance(given, str):
            given, _, bracket = given.strip().partition("[")
            wanted = bracket.removesuffix("]") or similarity
        method = resolve_method(given, logprobs=True)
        default = method.default_similarity
        if not method.compares_answers:
            wanted = None
        elif wanted is None and default not in SIMILARITIES:
            why = f"needs a similarity such as {default}:MODEL"
            skipped[f"{method.name}[{default}]"] = why
            continue
        on, compare = resolve_similarity(wanted or default)
        name = f"{method.name}[{on}]" if method.compares_answers else method.name
        try:
            method.check_similarity(compare, name=on)
        except ConfigurationError as error:
            skipped[name] = str(error).removeprefix(f"method {method.name!r} ")
            continue
        rows[name] = _Row(name, method, compare, on)
    rows[BASELINE] = rows.pop(BASELINE)  # it stands last, wherever it was named
    return [*rows.values()], skipped


def _visible(call: RecordedCall) -> list[tuple[int, Reply]]:
    """Return the guarded model's samples that have text, each with its place."""
    samples = zip(call.recording.own_places, call.own, strict=True)
    return [(at, one) for at, one in samples if is_visible(compared_text(one))]


def _inputs(
    call: RecordedCall,
    samples: Sequence[tuple[int, Reply]],
    *,
    tau: float,
    with_answer: bool,
) -> Callable[..., Inputs]:
    """Return the maker of reply sets of answer and samples for a similarity."""
    recording, replies = call.recording, [call.answer, *(one for _, one in samples)]
    known = {"p_true_logprob": recording.extra.get("p_true_logprob")}
    for need in PER_REPLY:
        values = recording.extra.get(need)
        if isinstance(values, list) and len(values) == 1 + len(recording.samples):
            known[need] = [values[0], *(values[1 + at] for at, _ in samples)]
    return partial(
        Inputs,
        [*map(compared_text, replies)],
        question=recording.question,
        token_logprobs=[reply.token_logprobs for reply in replies],
        tau=tau,
        answer="included" if with_answer else "apart",
        **{need: value for need, value in known.items() if value is not None},
    )


def _scores(
    rows: Sequence[_Row], inputs: Callable[..., Inputs], problems: dict[str, str]
) -> Iterator[float]:
    """Yield each raw value, NaN where there is none; the first reason is kept."""
    sets: dict[str, Inputs] = {}
    for row in rows:
        name = row.similarity_name
        if name not in sets:
            sets[name] = inputs(similarity=row.similarity, name=name)
        try:
            yield row.method.compute(sets[name])
        except ConfigurationError:
            raise
        except (ValueError, ArithmeticError) as error:
            why = str(error).replace(f" for method {row.method.name!r}", "")
            problems.setdefault(row.name, why)
            yield math.nan


def _comparable(scores: FloatArray) -> tuple[IntArray, IntArray]:
    """Return the rows to rank, and the questions that all of them scored."""
    missing = np.isnan(scores)
    ranked = np.flatnonzero(missing.mean(axis=1) <= 1 - _ENOUGH)
    return ranked, np.flatnonzero(~missing[ranked].any(axis=0))
