"""What the uncertainties of a set are worth: each method's metrics with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from snne_guard.evaluation.metrics.intervals import Bootstrap, Interval, interval
from snne_guard.evaluation.metrics.order import spearman
from snne_guard.evaluation.metrics.resampling import bootstrap, resamples
from snne_guard.evaluation.results import Metric
from snne_guard.types import BoolArray, FloatArray, IntArray

__all__ = ["Draws", "Figures", "figures", "length_thirds", "rank_correlation"]

_BINARY = ("auroc", "auarc", "prr", "prr_normalised", "aupr", "e_aurc")
_FEWEST_OF_A_KIND = 2  # one question is in a draw or not; that is no interval
_GRADED = ("auarc", "prr", "prr_normalised")


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """How intervals are made.

    Attributes:
        draws: Bootstrap draws.
        level: Share of them within an interval.
        seed: Of the draws.

    Raises:
        ConfigurationError: One of them makes no sense.
    """

    draws: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        # It knows what it takes.
        bootstrap({}, (), metrics=(), **asdict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Metrics of one method.

    Attributes:
        metrics: By the name of the field of ``MethodResult``.
        by_length: AUROC within thirds of answer length.
        against_first: AUROC, or PRR without one, less that of the first method.
    """

    metrics: Mapping[str, Metric]
    by_length: tuple[Metric, ...] = ()
    against_first: Metric | None = None


def figures(
    uncertainties: Mapping[str, FloatArray],
    *,
    quality: FloatArray,
    correct: IntArray | None,
    answer_length: IntArray,
    options: Draws,
) -> dict[str, Figures]:
    """Return the metrics of each method, all on the same draws of the questions.

    Args:
        uncertainties: ``(N,)`` for each method, the first of them the one that others
            are compared with.
        quality: ``(N,)`` in [0, 1], for PRR where nothing says right or wrong.
        correct: ``(N,)`` 0 and 1, None where the grader draws no such line.
        answer_length: ``(N,)`` tokens of the delivered answer.
        options: How intervals are made. There are none where fewer than two answers
            are right, or wrong.
    """
    target = quality if correct is None else correct.astype(np.float64)
    told = correct is None or _enough_of_both(correct)
    names = _GRADED if correct is None else _BINARY
    found = _bootstrap(uncertainties, target, names, options)
    thirds: list[tuple[Bootstrap, bool]] = []
    if correct is not None:
        for within in length_thirds(answer_length):
            part = {name: one[within] for name, one in uncertainties.items()}
            third = _bootstrap(part, target[within], ("auroc",), options)
            thirds.append((third, _enough_of_both(correct[within])))
    first = next(iter(uncertainties), None)
    return {
        name: Figures(
            metrics={
                metric: _metric(found.interval(name, metric), told=told)
                for metric in names
            },
            by_length=tuple(
                _metric(third.interval(name, "auroc"), told=enough)
                for third, enough in thirds
            ),
            against_first=_difference(found, name, first, told=told),
        )
        for name in uncertainties
    }


def length_thirds(lengths: IntArray, /) -> tuple[BoolArray, BoolArray, BoolArray]:
    """Return which questions have short, middling and long answers.

    Answers of equal length are in one third, so that thirds may differ in size, and
    be empty where most lengths are equal.

    Example:
        >>> [int(third.sum()) for third in length_thirds(np.array([1, 1, 1, 1, 2, 9]))]
        [4, 0, 2]
    """
    if not len(lengths):
        nobody = np.zeros(0, dtype=np.bool_)
        return nobody, nobody, nobody
    low, high = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
    return lengths <= low, (lengths > low) & (lengths <= high), lengths > high


def rank_correlation(
    first: FloatArray | IntArray,
    second: FloatArray | IntArray,
    options: Draws,
) -> Metric:
    """Return Spearman's correlation with its interval over questions."""
    one, two = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    drawn = (
        [
            spearman(one[rows], two[rows])
            for block in resamples(len(one), draws=options.draws, seed=options.seed)
            for rows in block
        ]
        if len(one)
        else []
    )
    found = interval(spearman(one, two), drawn, level=options.level)
    return Metric(
        value=number(found.value), low=number(found.low), high=number(found.high)
    )


def number(value: float) -> float | None:
    """Return a number, None in place of NaN."""
    return None if math.isnan(value) else float(value)


def _bootstrap(
    uncertainties: Mapping[str, FloatArray],
    target: FloatArray,
    metrics: Sequence[str],
    options: Draws,
) -> Bootstrap:
    return bootstrap(uncertainties, target, metrics=metrics, **asdict(options))


def _enough_of_both(correct: IntArray) -> bool:
    """Return whether right and wrong answers both can vary from draw to draw."""
    right = int(correct.sum())
    return min(right, len(correct) - right) >= _FEWEST_OF_A_KIND


def _metric(one: Interval, *, told: bool) -> Metric:
    if not told:
        return Metric(value=number(one.value))
    return Metric(value=number(one.value), low=number(one.low), high=number(one.high))


def _difference(
    found: Bootstrap, name: str, first: str | None, *, told: bool
) -> Metric | None:
    if first is None or name == first:
        return None
    one = found.compare(name, first, "auroc" if "auroc" in found.metrics else "prr")
    value = number(one.difference)
    if not told:
        return Metric(value=value)
    return Metric(value=value, low=number(one.low), high=number(one.high))
