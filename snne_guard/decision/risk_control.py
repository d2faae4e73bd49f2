"""Which ``u`` may be accepted so that a promise about errors holds.

All functions take ``u`` that rise and tell which answers are wrong, as
``graded_answers`` returns them, and only count; ``Threshold`` puts it into words.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.decision.bounds import critical_counts, least_trials
from snne_guard.decision.graded import check_share, graded_answers
from snne_guard.types import FloatArray

__all__ = [
    "Accepted",
    "Exploration",
    "by_approximate_grid",
    "by_joint_error",
    "by_pilot",
    "by_ranks",
    "ends_of",
    "exploratory",
    "first_accepted",
    "score_of_share",
]

BoolArray = NDArray[np.bool_]

_CLOSE = 1e-9
"""Without it 0.29 * 100 would be less than 29, and 0.07 * 100 more than 7."""
_STARTS = 3
"""Times the least count of accepted answers at which the first threshold is tested."""
_GRID = 50
"""Quantiles that are tested, where it is quantiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What a threshold accepts of the answers that it was chosen on.

    Attributes:
        value: The largest accepted ``u``, -1.0 where nothing may be accepted.
        n: Answers that it accepts.
        wrong: Those of them that are wrong.
    """

    value: float = -1.0
    n: int = 0
    wrong: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exploration:
    """What an error rate would cost; all of them together carry one promise.

    Attributes:
        alpha: The error rate among accepted answers.
        value: The largest ``u`` that would be accepted, -1.0 where none would.
        acceptance: Share of the graded answers that would be accepted.
        n_accepted: How many that are.
        n_wrong: Those of them that are wrong.
    """

    alpha: float
    value: float
    acceptance: float
    n_accepted: int
    n_wrong: int


def first_accepted(n: int, *, alpha: float, delta: float) -> int:
    """Return how many accepted answers the first test should have.

    It depends on no score and on no label: three times the least count that can show
    anything, or two thirds of few answers.

    Args:
        n: Graded answers.
        alpha: The error rate that is to be shown.
        delta: Largest p-value at which it is.

    Example:
        >>> first_accepted(300, alpha=0.1, delta=0.1)
        66
    """
    least = least_trials(alpha, delta)
    return min(_STARTS * least, max(least, 2 * n // 3))


def by_ranks(
    u: FloatArray, wrong: BoolArray, *, alpha: float, delta: float
) -> Accepted:
    """Test upwards from the score of a rank that was fixed beforehand.

    The rank, ``first_accepted`` plus one, depends on neither scores nor labels. Given
    the score of that rank, the answers below are draws from all answers with a lower
    score: so the first test, on these alone, is exact. Where it passes, every larger
    score is tested, until one fails. The promise holds for any distribution of scores
    and errors: where the error among accepted passes alpha, it equals alpha (ties
    taken in random order), so below that point too the errors are binomial, however
    many answers lie there; ``docs/guarantees.md`` has the proof.

    Args:
        u: ``(n,)`` uncertainties, rising.
        wrong: ``(n,)`` whether the answer is wrong.
        alpha: Largest error among accepted answers, in (0, 1).
        delta: Probability that the promise fails, in (0, 1).

    Returns:
        What may be accepted.

    Example:
        >>> u = np.linspace(0, 1, 101)
        >>> by_ranks(u, u > 0.75, alpha=0.1, delta=0.1)
        Accepted(value=0.79, n=80, wrong=4)
    """
    n = len(u)
    first = first_accepted(n, alpha=alpha, delta=delta)
    if first >= n or np.isinf(u[first]):
        return Accepted()
    below = int(np.searchsorted(u, float(u[first]), side="left"))
    allowed = critical_counts(n, alpha, delta)
    if below and _drawn(u, wrong, below=below, n=first) > allowed[first]:
        return Accepted()
    return _upwards(u, wrong, allowed, least=first + 1)


def by_pilot(
    u: FloatArray, wrong: BoolArray, *, pilot: FloatArray, alpha: float, delta: float
) -> Accepted:
    """Test quantiles of scores that are not among the graded ones, upwards.

    The first is the one up to which ``first_accepted`` graded answers are expected.

    Args:
        u: ``(n,)`` uncertainties, rising.
        wrong: ``(n,)`` whether the answer is wrong.
        pilot: ``(m,)`` uncertainties of other answers, rising.
        alpha: Largest error among accepted answers, in (0, 1).
        delta: Probability that the promise fails, in (0, 1).

    Returns:
        What may be accepted; its value is one of the pilot's.

    Example:
        >>> u = np.linspace(0, 1, 101)
        >>> by_pilot(u, u > 0.75, pilot=u, alpha=0.1, delta=0.1)
        Accepted(value=0.78, n=79, wrong=3)
    """
    n, m = len(u), len(pilot)
    first = first_accepted(n, alpha=alpha, delta=delta)
    # Where some cannot be scored so many may not be expected: then it is all scores.
    scored = int(np.isfinite(pilot).sum())
    start = max(1, min(math.ceil(first / n * m - _CLOSE), scored))
    ranks = np.append(_grid_ranks(m), start)
    grid = np.unique(pilot[ranks[(ranks >= start) & (ranks <= scored)] - 1])
    counts = np.searchsorted(u, grid, side="right")
    errors = np.append(0, np.cumsum(wrong, dtype=np.intp))[counts]
    failed = np.flatnonzero(errors > critical_counts(n, alpha, delta)[counts])
    return _at(grid, counts, errors, int(failed[0]) if failed.size else len(grid))


def by_approximate_grid(
    u: FloatArray, wrong: BoolArray, *, alpha: float, delta: float
) -> Accepted:
    """Test quantiles of the graded answers' own scores.

    That is no sequence fixed beforehand, so the promise is approximate; with many
    labels it accepts a little more, since it tests fewer thresholds.

    Args:
        u: ``(n,)`` uncertainties, rising.
        wrong: ``(n,)`` whether the answer is wrong.
        alpha: Largest error among accepted answers, in (0, 1).
        delta: Probability that the promise fails, in (0, 1).

    Returns:
        What may be accepted.

    Example:
        >>> u = np.linspace(0, 1, 101)
        >>> by_approximate_grid(u, u > 0.75, alpha=0.1, delta=0.1)
        Accepted(value=0.78, n=79, wrong=3)
    """
    n = len(u)
    first = first_accepted(n, alpha=alpha, delta=delta)
    allowed = critical_counts(n, alpha, delta)
    return _upwards(u, wrong, allowed, least=first, ranks=_grid_ranks(n))


def by_joint_error(u: FloatArray, wrong: BoolArray, *, alpha: float) -> Accepted:
    """Accept as long as few of all answers are accepted and wrong.

    Conformal risk control (Angelopoulos and others 2022, arXiv 2208.02814, equation
    4): the largest score at which the accepted wrong answers and one more are at most
    alpha of the graded answers and one more.

    Args:
        u: ``(n,)`` uncertainties, rising.
        wrong: ``(n,)`` whether the answer is wrong.
        alpha: Largest expected share of answers that are accepted and wrong.

    Returns:
        What may be accepted.

    Example:
        >>> u = np.linspace(0, 1, 101)
        >>> by_joint_error(u, u > 0.75, alpha=0.1)
        Accepted(value=0.84, n=85, wrong=9)
    """
    spare = math.floor(alpha * (len(u) + 1) + _CLOSE) - 1
    if spare < 0:
        return Accepted()
    ends, counts, errors = ends_of(u, wrong)
    return _at(ends, counts, errors, int(np.searchsorted(errors, spare, side="right")))


def score_of_share(u: FloatArray, share: float) -> float:
    """Return the score that a new draw does not exceed with such a probability.

    Split conformal prediction: of one more draw like these, every rank is equally
    probable; ties only raise the probability.

    Args:
        u: ``(n,)`` scores, rising.
        share: The least probability, in (0, 1).

    Returns:
        The score; ``inf`` where there are too few scores for such a share.

    Example:
        >>> score_of_share(np.arange(1, 100) / 100, 0.9)
        0.9
    """
    rank = math.ceil((len(u) + 1) * share - _CLOSE)
    return float(u[rank - 1]) if rank <= len(u) else math.inf


def exploratory(
    uncertainty: ArrayLike,
    correct: ArrayLike,
    *,
    delta: float = 0.1,
    alphas: Sequence[float] = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3),
) -> tuple[Exploration, ...]:
    """Return what several error rates would cost, under one promise for all of them.

    Each is certified with a share of ``delta`` (Bonferroni): with probability at least
    1 - ``delta`` all of them hold at once, so any may be looked at, and even taken. A
    single error rate that was declared beforehand accepts more.

    Args:
        uncertainty: ``(n,)`` as for ``Threshold.for_error_rate``.
        correct: ``(n,)`` likewise.
        delta: Probability that one of them fails, in (0, 1).
        alphas: The error rates, each in (0, 1).

    Returns:
        One for each error rate, in the order given.

    Raises:
        InputError: As for ``Threshold.for_error_rate``, but that labels of one kind
            and few labels are taken.
        ConfigurationError: delta or an error rate is not in (0, 1).

    Example:
        >>> u = np.linspace(0, 1, 201)
        >>> for one in exploratory(u, u < 0.7, alphas=(0.05, 0.2)):
        ...     print(one.alpha, round(one.value, 3), round(one.acceptance, 2))
        0.05 0.705 0.71
        0.2 0.815 0.82
    """
    checked = [check_share("alpha", alpha) for alpha in alphas]
    share = check_share("delta", delta) / max(len(checked), 1)
    u, wrong = graded_answers(uncertainty, correct)
    found = [by_ranks(u, wrong, alpha=alpha, delta=share) for alpha in checked]
    return tuple(
        Exploration(
            alpha=alpha,
            value=one.value,
            acceptance=one.n / len(u),
            n_accepted=one.n,
            n_wrong=one.wrong,
        )
        for alpha, one in zip(checked, found, strict=True)
    )


def _upwards(
    u: FloatArray,
    wrong: BoolArray,
    allowed: NDArray[np.int64],
    *,
    least: int,
    ranks: NDArray[np.intp] | None = None,
) -> Accepted:
    """Return the last score of those that pass in a row.

    Args:
        u: Rising.
        wrong: Whether the answer is wrong.
        allowed: How many may be wrong for each count of accepted answers.
        least: Accepted answers of the first score that is tested.
        ranks: Ranks whose scores are tested; None tests all.
    """
    ends, counts, errors = ends_of(u, wrong)
    tested = np.flatnonzero(counts >= least)
    if ranks is not None:
        tested = np.intersect1d(tested, np.searchsorted(counts, ranks))
    failed = tested[errors[tested] > allowed[counts[tested]]]
    passed = tested[tested < failed[0]] if failed.size else tested
    return _at(ends, counts, errors, int(passed[-1]) + 1 if passed.size else 0)


def _grid_ranks(n: int) -> NDArray[np.intp]:
    """Return the ranks of evenly spread quantiles of ``n`` scores."""
    return np.unique(np.ceil(np.arange(1, _GRID + 1) * n / _GRID).astype(np.intp))


def _drawn(u: FloatArray, wrong: BoolArray, *, below: int, n: int) -> int:
    """Return how many of the first ``n`` answers are wrong, ties in random order.

    The draw depends on the scores alone, so that it can neither favour a label nor be
    repeated until it pleases.
    """
    end = int(np.searchsorted(u, float(u[below]), side="right"))
    tied = int(wrong[below:end].sum())
    rng = np.random.default_rng(zlib.crc32(u.tobytes()))
    drawn = rng.hypergeometric(tied, end - below - tied, n - below)
    return int(wrong[:below].sum()) + int(drawn)


def ends_of(
    u: FloatArray, wrong: BoolArray
) -> tuple[FloatArray, NDArray[np.intp], NDArray[np.intp]]:
    """Return the distinct finite scores, and how many they accept and wrongly so.

    Example:
        >>> u = np.array([0.1, 0.1, 0.3, np.inf])
        >>> ends_of(u, np.array([True, False, True, True]))
        (array([0.1, 0.3]), array([2, 3]), array([1, 2]))
    """
    last = np.append(u[1:] != u[:-1], [True]) & np.isfinite(u)
    places = np.flatnonzero(last)
    return u[places], places + 1, np.cumsum(wrong, dtype=np.intp)[places]


def _at(
    ends: FloatArray, counts: NDArray[np.intp], errors: NDArray[np.intp], passed: int
) -> Accepted:
    """Return what the last of so many scores accepts."""
    if not passed:
        return Accepted()
    last = passed - 1
    return Accepted(
        value=float(ends[last]), n=int(counts[last]), wrong=int(errors[last])
    )
