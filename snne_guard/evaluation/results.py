"""What an evaluation found, and how it is written to JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from snne_guard.evaluation.bootstrap import Interval
from snne_guard.types import Cost, FloatArray

__all__ = [
    "BASELINE",
    "TITLES",
    "BestRecipe",
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
"""What readers call the metrics of an evaluation."""

BASELINE = "answer_length"
"""The method that is in every table, so that nobody takes length for uncertainty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodResult:
    """How well one method finds the wrong answers.

    Attributes:
        name: What ran, as ``dse[exact]``.
        white_box: Whether it needs what only the model's owner can see.
        skipped: Why it was not ranked, None where it was.
        metrics: ``auroc`` (where answers are right or wrong), ``auarc``, ``prr`` and
            ``prr_normalised`` with 90 % intervals over draws of the questions.
        differences: The same less those of the first ranked method, on the same draws.
    """

    name: str
    white_box: bool
    skipped: str | None = None
    metrics: Mapping[str, Interval] = field(default_factory=dict[str, Interval])
    differences: Mapping[str, Interval] = field(default_factory=dict[str, Interval])


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One way to spend the calls of a guard: what it finds, and what it costs.

    Attributes:
        name: ``"plain"``, the name of a view, or ``"views"`` for all views in turn;
            with ``" + check"`` where the last call is a self-check.
        calls: The answer, its samples, and the self-check if there is one.
        auroc: How well it ranks wrong answers above right ones.
        rounds: Requests that wait for one another: 2 with a self-check, else 1.
        cost: Of all questions together; None where the recordings do not tell it. Of a
            request for several samples the prompt counts in full, as it was recorded,
            and the written tokens by the share of its samples that the recipe uses.
    """

    name: str
    calls: int
    auroc: Interval
    rounds: int
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BestRecipe:
    """The recipe that ranks best on the first third of the questions.

    Attributes:
        name: Of the recipe.
        calls: Of the recipe.
        auroc: On the second third.
        gain: By how much it exceeds the plain recipe there, draw by draw.
    """

    name: str
    calls: int
    auroc: Interval
    gain: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeComparison:
    """What the recipes of one set of recordings are worth.

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
    at_equal_calls: BestRecipe | None = None
    at_equal_money: BestRecipe | None = None


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

    def __str__(self) -> str:
        """Return the figures in one sentence."""
        return (
            f"{self.sentences} sentences of {self.answers} answers, "
            f"{self.accuracy:.1%} right; AUROC {self.auroc:.3f} of all, "
            f"{self.within:.3f} as the mean within answers"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What was found on one set of recordings.

    Attributes:
        name: Of the set.
        grader: Who says which answers are right.
        n_read: Recordings of the set.
        left_out: How many were not ranked, by the reason.
        n_samples: Samples of each question that counted.
        include_answer: Whether the delivered answer was scored with them.
        tau: Temperature of the similarity's softmax.
        rows: The methods, in the order in which they were asked for.
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
    ids: tuple[str, ...] = field(repr=False)
    quality: FloatArray = field(repr=False)
    correct: FloatArray | None = field(repr=False)
    uncertainties: Mapping[str, FloatArray] = field(repr=False)
    recipes: RecipeComparison | None = None
    sentences: SentenceRanking | None = None

    @property
    def accuracy(self) -> float | None:
        """The share of right answers, None where the grader draws no such line."""
        return None if self.correct is None else float(self.correct.mean())

    @property
    def ranked(self) -> tuple[MethodResult, ...]:
        """The methods that were ranked, best first."""

        def value(row: MethodResult) -> float:
            figure = row.metrics[self.metrics[0]].value
            return -math.inf if math.isnan(figure) else figure

        rows = (row for row in self.rows if row.skipped is None)
        return tuple(sorted(rows, key=value, reverse=True))

    @property
    def metrics(self) -> tuple[str, ...]:
        """What the methods were ranked by; the first decides the order."""
        return tuple(TITLES) if self.correct is not None else tuple(TITLES)[1:]

    @property
    def skipped(self) -> dict[str, list[str]]:
        """The methods that were not ranked, by the reason."""
        names: dict[str, list[str]] = {}
        for row in self.rows:
            if row.skipped is not None:
                names.setdefault(row.skipped, []).append(row.name)
        return names

    @property
    def first(self) -> str:
        """The ranked method that was asked for first; others are compared with it."""
        return next(iter(self.uncertainties))

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON can hold it; no text of a question or answer."""
        derived = {"n_ranked": len(self.ids), "accuracy": self.accuracy}
        plain: dict[str, Any] = _plain(asdict(self) | derived)
        return plain


def _plain(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a value as JSON has it, None for what it has no word for."""
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):  # numpy's is one
        return float(value) if math.isfinite(value) else None
    return value
