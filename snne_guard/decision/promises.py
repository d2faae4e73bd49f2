"""What a threshold with a promise holds, from the answers that it is learnt on."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.decision.bounds import interval, least_trials, upper_bound
from snne_guard.decision.graded import check_share, graded_answers, uncertainties
from snne_guard.decision.risk_control import (
    Accepted,
    by_approximate_grid,
    by_joint_error,
    by_pilot,
    by_ranks,
    ends_of,
    score_of_share,
)
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

__all__ = [
    "coverage",
    "error_rate",
    "false_refusal",
    "joint_error",
    "labels_for_error_rate",
]

Fields = dict[str, Any]
"""Keyword arguments of a ``Threshold``."""
Search = Callable[..., Accepted]

_LEAST = 10
"""Graded answers below which nothing is promised."""
_CLOSE = 1e-9
"""Without it 1 / 0.1 could be more than 10."""
_CONFIDENCE = 0.9
"""Of the interval around the share of accepted answers."""


def error_rate(
    uncertainty: ArrayLike,
    correct: ArrayLike,
    *,
    alpha: float,
    delta: float,
    pilot: ArrayLike | None,
    approximate: bool,
) -> Fields:
    """Return what ``Threshold.for_error_rate`` holds; its arguments are the same."""
    alpha, delta = check_share("alpha", alpha), check_share("delta", delta)
    if approximate and pilot is not None:
        msg = "expected a pilot, which is exact, or approximate=True; got both"
        raise ConfigurationError(msg)
    u, wrong = graded_answers(uncertainty, correct)
    sequence, search = _search(pilot, approximate=approximate)
    fields: Fields = {
        "kind": "error_rate",
        "level": alpha,
        "delta": delta,
        "sequence": sequence,
        "n_labels": len(u),
    }
    least = max(_LEAST, least_trials(alpha, delta) + 1)
    if len(u) < least:
        return fields | _nothing("too_few_labels", labels_needed=least)
    _check_classes(wrong)
    found = search(u, wrong, alpha=alpha, delta=delta)
    if not found.n:
        return fields | _nothing(
            "infeasible",
            labels_needed=labels_for_error_rate(u, wrong, alpha=alpha, delta=delta),
            best_level=_best_level(partial(search, u, wrong, delta=delta), alpha),
        )
    needed = labels_for_error_rate(
        u, wrong, alpha=alpha, delta=delta, value=found.value
    )
    return (
        fields
        | _certified(found, n=len(u))
        | {
            "upper_bound": upper_bound(found.wrong, found.n, delta),
            "labels_needed": None if needed is None else min(needed, len(u)),
        }
    )


def joint_error(uncertainty: ArrayLike, correct: ArrayLike, *, alpha: float) -> Fields:
    """Return what ``Threshold.for_joint_error`` holds; its arguments are the same."""
    alpha = check_share("alpha", alpha)
    u, wrong = graded_answers(uncertainty, correct)
    n = len(u)
    fields: Fields = {"kind": "joint_error", "level": alpha, "n_labels": n}
    least = max(_LEAST, math.ceil(1 / alpha - _CLOSE) - 1)
    if n < least:
        return fields | _nothing("too_few_labels", labels_needed=least)
    _check_classes(wrong)
    found = by_joint_error(u, wrong, alpha=alpha)
    if found.n:
        return fields | _certified(found, n=n) | {"labels_needed": least}
    _, _, errors = ends_of(u, wrong)
    first = int(errors[0]) if errors.size else n  # the wrong ones of the smallest u
    gap = alpha - first / n
    return fields | _nothing(
        "infeasible",
        best_level=(first + 1) / (n + 1) if first < n else None,
        labels_needed=math.ceil((1 - alpha) / gap) if gap > 0 else None,
    )


def false_refusal(uncertainty: ArrayLike, correct: ArrayLike, *, beta: float) -> Fields:
    """Return what ``Threshold.for_false_refusal`` holds; its arguments are the same."""
    beta = check_share("beta", beta)
    u, wrong = graded_answers(uncertainty, correct)
    n = len(u)
    fields: Fields = {"kind": "false_refusal", "level": beta, "n_labels": n}
    right = u[~wrong]
    least = math.ceil(1 / beta - _CLOSE) - 1  # correct answers
    needed = max(_LEAST, math.ceil(least * n / max(len(right), 1)))
    if n < _LEAST or 0 < len(right) < least:
        return fields | _nothing("too_few_labels", labels_needed=needed)
    _check_classes(wrong)
    value = score_of_share(right, 1 - beta)
    if math.isinf(value):
        finite = int(np.isfinite(right).sum())
        best = 1 - finite / (len(right) + 1)
        return fields | _nothing("infeasible", best_level=best)
    found = _accepted(u, wrong, value)
    return fields | _certified(found, n=n) | {"labels_needed": needed}


def coverage(uncertainty: ArrayLike, *, accept: float) -> Fields:
    """Return what ``Threshold.for_coverage`` holds; its arguments are the same."""
    accept = check_share("accept", accept)
    u = np.sort(uncertainties(uncertainty))
    n = len(u)
    fields: Fields = {"kind": "coverage", "level": accept, "n_labels": n}
    least = max(_LEAST, math.ceil(accept / (1 - accept) - _CLOSE))
    if n < least:
        return fields | _nothing("too_few_labels", labels_needed=least)
    value = score_of_share(u, accept)
    if math.isinf(value):
        best = int(np.isfinite(u).sum()) / (n + 1)
        return fields | _nothing("infeasible", best_level=best or None)
    found = _accepted(u, np.zeros(n, dtype=np.bool_), value)
    tail = (1 - _CONFIDENCE) / 2
    # The share below the score of a rank is Beta distributed; ties add to it.
    rank = math.ceil((n + 1) * accept - _CLOSE)
    low = 1 - upper_bound(n - rank, n, tail)
    high = 1 - upper_bound(n - found.n, n, 1 - tail)
    shares = {"acceptance_interval": (low, high), "labels_needed": least}
    return fields | _certified(found, n=n) | shares


def labels_for_error_rate(
    u: FloatArray,
    wrong: NDArray[np.bool_],
    *,
    alpha: float,
    delta: float,
    value: float | None = None,
) -> int | None:
    """Return about how many labels would show that errors are rarer than alpha.

    For each threshold it takes the error rate and the share accepted as they were
    seen, and asks how many graded answers make the test pass in one draw of two
    (normal approximation with continuity correction).

    Args:
        u: ``(n,)`` uncertainties, rising.
        wrong: ``(n,)`` whether the answer is wrong.
        alpha: Largest error among accepted answers.
        delta: Probability that the promise fails.
        value: The threshold in question; None takes the one with the fewest labels.

    Returns:
        Labels, rounded up to two digits; None where no threshold has a lower error
        rate than alpha: there no number of labels would do.

    Example:
        >>> u = np.arange(100) / 100
        >>> labels_for_error_rate(u, u > 0.8, alpha=0.1, delta=0.1)
        79
    """
    ends, counts, errors = ends_of(u, wrong)
    rates = (errors + 0.5) / (counts + 1)
    tested = rates < alpha
    if value is not None:
        tested &= ends == value
    if not tested.any():
        return None
    gap = alpha - rates[tested]
    spread = max(0.0, NormalDist().inv_cdf(1 - delta)) * math.sqrt(alpha * (1 - alpha))
    accepted = ((spread + np.sqrt(spread**2 + 2 * gap)) / (2 * gap)) ** 2
    accepted = np.maximum(accepted, 3 * least_trials(alpha, delta))
    return _rounded_up(float((accepted / counts[tested]).min()) * len(u))


def _search(pilot: ArrayLike | None, *, approximate: bool) -> tuple[str, Search]:
    """Return what the thresholds are fixed from, and the search for the last one."""
    if approximate:
        return "calibration", by_approximate_grid
    if pilot is None:
        return "ranks", by_ranks
    scores = np.sort(uncertainties(pilot, name="pilot"))
    return "pilot", partial(by_pilot, pilot=scores)


def _check_classes(wrong: NDArray[np.bool_]) -> None:
    """Refuse labels from which nothing can be learnt of who is right."""
    if wrong.all() or not wrong.any():
        kind = "wrong" if wrong.all() else "correct"
        msg = (
            "expected graded answers of both kinds, correct and wrong; all "
            f"{len(wrong)} are {kind}, which more often tells of the grading than of "
            "the answers"
        )
        raise InputError(msg)


def _accepted(u: FloatArray, wrong: NDArray[np.bool_], value: float) -> Accepted:
    n = int(np.searchsorted(u, value, side="right"))
    return Accepted(value=value, n=n, wrong=int(wrong[:n].sum()))


def _nothing(status: str, **fields: object) -> Fields:
    return {"value": -1.0, "status": status, "acceptance": 0.0, **fields}


def _certified(found: Accepted, *, n: int) -> Fields:
    return {
        "value": found.value,
        "status": "certified",
        "n_accepted": found.n,
        "n_wrong": found.wrong,
        "acceptance": found.n / n,
        "acceptance_interval": interval(found.n, n, _CONFIDENCE),
    }


def _best_level(search: Callable[..., Accepted], alpha: float) -> float | None:
    """Return the lowest level, in per cent, at which something would be accepted."""
    for percent in range(math.floor(100 * alpha) + 1, 100):
        if search(alpha=percent / 100).n:
            return percent / 100
    return None


def _rounded_up(count: float) -> int:
    step: int = 10 ** max(0, math.floor(math.log10(count)) - 1)
    return math.ceil(count / step) * step
