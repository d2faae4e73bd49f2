"""What an evaluation found, and how it is written to JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json

from snne_guard.evaluation.metrics import Interval
from snne_guard.types import Cost, FloatArray

__all__ = [
    "BASELINE",
    "TITLES",
    "Evaluation",
    "MethodResult",
    "Recipe",
    "RecipeComparison",
    "SentenceRanking",
]

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
            ``prr_normalised`` with 90% intervals over draws of the questions.
        differences: The same minus those of the first method, on the same draws; empty
            for the first.
    """

    name: str
    white_box: bool
    metrics: Mapping[str, Interval]
    differences: Mapping[str, Interval]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to spend the calls of a guard: what it finds, and what it costs.

    Attributes:
        name: ``"plain"``, the name of a view, or ``"views"`` for all views in turn;
            with ``" + check"`` where the last call is a self-check.
        calls: The answer, its samples, and the self-check if there is one.
        rounds: Requests that wait for one another: 2 with a self-check, else 1.
        auroc: How well it ranks wrong answers above right ones.
        cost: Total over all questions; None if the recordings do not say. For a request
            for several samples, the prompt counts in full, as recorded, and the output
            tokens in proportion to the samples that the recipe uses.
        gain: For a best recipe, how far it exceeds the plain one, on the same draws.
    """

    name: str
    calls: int
    rounds: int
    auroc: Interval
    cost: Cost | None
    gain: Interval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeComparison:
    """How the recipes compare on one set of recordings.

    The best ones are chosen on the first third of the questions; their ``auroc`` and
    ``gain`` are those on the second third.

    Attributes:
        calls: Calls of the plain recipe that the best ones are compared with.
        thirds: Questions in each third, by ``shard_of`` their ids.
        recipes: By calls, the plain one first.
        at_equal_calls: The best of the recipes of as many calls. None where there are
            too few plain samples, or one of the first two thirds does not have both
            right and wrong answers.
        at_equal_money: The best of the recipes that cost no more than the plain one;
            None also where the money is unknown.
    """

    calls: int
    thirds: tuple[int, int, int]
    recipes: tuple[Recipe, ...]
    at_equal_calls: Recipe | None
    at_equal_money: Recipe | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceRanking:
    """How well the uncertainty of sentences finds the wrong ones.

    Attributes:
        answers: Answers that are labelled by sentence.
        sentences: Their sentences.
        accuracy: Share of right sentences.
        auroc: Of all sentences; NaN where all are right, or all wrong.
        within: Mean over the answers that have right and wrong ones; NaN without any.
    """

    answers: int
    sentences: int
    accuracy: float
    auroc: float
    within: float


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
        recipes: What the recipes are worth; None where there is nothing to compare: no
            self-check and no view but the plain one, or no right and wrong answers.
        sentences: How well sentences are ranked; None where none are labelled.
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
    recipes: RecipeComparison | None
    sentences: SentenceRanking | None

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

        def value(row: MethodResult) -> float:
            figure = row.metrics[first].value
            return -math.inf if math.isnan(figure) else figure

        return tuple(sorted(self.rows, key=value, reverse=True))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, without texts of questions or answers."""
        plain = to_json(
            self, inf_nan_mode="null", fallback=lambda array: array.tolist()
        )
        derived = {"n_ranked": len(self.ids), "accuracy": self.accuracy}
        return {**json.loads(plain), **derived}
