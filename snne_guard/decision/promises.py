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
    by_pilot,
    by_ranks,
    ends_of,
)
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

__all__ = ["error_rate", "labels_for_error_rate"]

Fields = dict[str, Any]
"""Keyword arguments of a ``Threshold``."""
Search = Callable[..., Accepted]

_LEAST = 10
"""Graded answers below which nothing is promised."""
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
