"""Intervals over questions, and two methods compared on the same draws of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.metrics.checks import (
    checked_correct,
    checked_pair,
    checked_quality,
    checked_uncertainty,
)
from snne_guard.evaluation.metrics.intervals import Bootstrap, check_level
from snne_guard.evaluation.metrics.ranked import RANK_METRICS, Views
from snne_guard.evaluation.metrics.risk_coverage import check_max_rejection
from snne_guard.evaluation.metrics.ties import IntArray

__all__ = ["bootstrap", "resamples"]

_BLOCK = 2**16
"""Draws of questions held at a time, so that they stay in a cache of the processor."""


def bootstrap(
    uncertainties: Mapping[str, ArrayLike],
    quality: ArrayLike,
    *,
    metrics: Sequence[str] = ("auroc", "auarc", "prr"),
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    max_rejection: float = 1.0,
) -> Bootstrap:
    """Draw the questions again and again, and give every metric of every method.

    A draw is n of the n questions, with replacement, and the same for all methods and
    metrics, so that two methods can be compared on it. Each method is sorted once; a
    draw is then so many counts, and its metrics are those of the drawn questions up to
    the rounding of floats.

    Args:
        uncertainties: ``(n,)`` for each method, under its name; higher is less certain.
        quality: ``(n,)``, 0 and 1, or any finite measure where only ``auarc``, ``prr``
            and ``prr_normalised`` are asked for.
        metrics: Of ``auroc``, ``aupr`` (wrong answers positive), ``auarc``, ``prr``
            (raw, as in the paper), ``prr_normalised``, ``aurc``, ``e_aurc``.
        draws: How many.
        seed: Of the draws: equal seeds, n and draws are equal draws, also in another
            call with other methods or another quality.
        level: Share of the draws within an interval.
        max_rejection: As for ``prr``.

    Returns:
        The metrics on the questions themselves and on the draws.

    Raises:
        InputError: As for the metrics.
        ConfigurationError: An unknown metric; less than one draw; a level outside
            (0, 1); a seed below 0.

    Example:
        >>> correct = [1, 1, 1, 0, 1, 0, 0, 0]
        >>> found = bootstrap({"a": range(8), "b": [0] * 8}, correct, draws=200)
        >>> found.interval("a", "auroc").value, found.interval("b", "auroc").value
        (0.9375, 0.5)
        >>> found.compare("a", "b", "auroc").difference
        0.4375
    """
    _check_names(metrics)
    check_level(level)
    check_max_rejection(max_rejection)
    binary = any(RANK_METRICS[name].binary for name in metrics)
    values = (checked_correct if binary else checked_quality)(quality)
    blocks = resamples(len(values), draws=draws, seed=seed)
    views: dict[str, Views] = {}
    for name, scores in uncertainties.items():
        uncertainty = checked_uncertainty(scores, what=f"uncertainty of {name}")
        checked_pair(uncertainty, values)
        views[name] = Views(uncertainty, values, max_rejection=max_rejection)
    names = tuple(metrics)
    point = {name: view.values(names) for name, view in views.items()}
    drawn = {name: np.empty((len(names), draws)) for name in views}
    first = 0
    for block in blocks:
        last = first + len(block)
        for name, view in views.items():
            drawn[name][:, first:last] = view.values(names, block)
        first = last
    return Bootstrap(
        level=level,
        metrics=names,
        point={name: found[:, 0] for name, found in point.items()},
        draws=drawn,
    )


def resamples(n: int, *, draws: int = 1000, seed: int = 0) -> Iterator[IntArray]:
    """Return the draws that ``bootstrap`` makes, block by block.

    For a statistic that is not among its metrics.

    Args:
        n: Questions.
        draws: How many draws.
        seed: Of the draws.

    Returns:
        An iterator over ``(b, n)`` indices of the drawn questions, b draws each.

    Raises:
        ConfigurationError: Less than one draw, or a seed or n below 0.

    Example:
        >>> from snne_guard.evaluation import interval, spearman
        >>> length, clusters = np.arange(20), np.arange(20) // 3
        >>> drawn = [
        ...     spearman(length[one], clusters[one])
        ...     for block in resamples(20, draws=100)
        ...     for one in block
        ... ]
        >>> found = interval(spearman(length, clusters), drawn)
        >>> round(found.low, 2), round(found.value, 2), round(found.high, 2)
        (0.97, 0.99, 0.99)
    """
    if draws < 1 or seed < 0 or n < 0:
        msg = f"expected draws >= 1, a seed >= 0 and n >= 0, got {draws}, {seed}, {n}"
        raise ConfigurationError(msg)
    return _blocks(n, draws=draws, seed=seed)


def _blocks(n: int, *, draws: int, seed: int) -> Iterator[IntArray]:
    generator = np.random.default_rng(seed)
    rows = max(1, _BLOCK // max(1, n))
    for first in range(0, draws, rows):
        size = (min(rows, draws - first), n)
        yield generator.integers(max(1, n), size=size, dtype=np.int64)


def _check_names(metrics: Sequence[str]) -> None:
    for name in metrics:
        if name not in RANK_METRICS:
            known = ", ".join(sorted(RANK_METRICS))
            msg = f"expected metrics among {known}, got {name!r}"
            raise ConfigurationError(msg)
