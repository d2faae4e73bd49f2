"""Two limits on ``u`` for each round: where a plan ends early, and what it accepts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.errors import ConfigurationError
from snne_guard.types import Score

__all__ = ["Limits", "check_rounds", "ends_early", "limit_or", "walk"]

Limits = tuple[float | None, ...]
"""A limit on ``u`` for each round, None where there is none."""


def limit_or(limit: float | None, otherwise: float) -> float:
    """Return a limit, or what stands for none: a number beyond every ``u``."""
    return otherwise if limit is None else limit


def check_rounds(rounds: Sequence[object], /) -> None:
    """Refuse what are no rounds of a plan.

    Args:
        rounds: Members of the response set after each round, the last n.

    Raises:
        ConfigurationError: They are fewer than two, or do not rise from at least 2.
    """
    counts = [count for count in rounds if isinstance(count, int)]
    rising = all(one < two for one, two in pairwise([1, *counts]))
    if not rising or len(counts) != len(rounds) or len(counts) < 2:  # noqa: PLR2004 - one is no plan
        msg = f"rounds must rise from at least 2, such as (3, 5, 10); got {rounds!r}"
        raise ConfigurationError(msg)


def ends_early(
    score: Score,
    missing: int,
    *,
    rounds: Sequence[int],
    accept_at_most: Limits,
    reject_at_least: Limits,
    method: str | None,
) -> bool:
    """Return whether the members so far are enough.

    They are not where one of them failed or left the set, or another method ran than
    in the questions that the limits are from: nothing was learnt of such a set.

    Args:
        score: Of the members so far.
        missing: Members that are still to be drawn.
        rounds: Members of the response set after each round, the last n.
        accept_at_most: For each round, the last may be left out, the largest ``u``
            that is accepted there.
        reject_at_least: For each round but the last the smallest ``u`` at which it is
            given up.
        method: Name of the method that the limits are for, None for any.

    Example:
        >>> from snne_guard import score
        >>> limits = {"accept_at_most": (0.1,), "reject_at_least": (0.9,)}
        >>> unlike = score(["Paris", "Lyon", "Nice"])
        >>> ends_early(unlike, 7, rounds=(3, 10), method=None, **limits)
        True
    """
    u = score.uncertainty
    whole = score.n + missing == rounds[-1]
    if u is None or not whole or method not in {None, score.method}:
        return False
    if score.n not in rounds[:-1]:
        return False
    place = rounds.index(score.n)
    accept, reject = accept_at_most[place], reject_at_least[place]
    return (accept is not None and u <= accept) or (reject is not None and u >= reject)


def walk(
    paths: ArrayLike, /, *, accept_at_most: Limits, reject_at_least: Limits
) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return where each question's rounds end, and whether its answer is accepted.

    Args:
        paths: ``(questions, rounds)`` ``u`` after each round, NaN or ``inf`` where the
            set was incomplete: there nothing is decided, and at the last one it is not
            accepted.
        accept_at_most: For each round the largest ``u`` that is accepted there.
        reject_at_least: For each round but the last the smallest ``u`` at which it is
            given up, above what is accepted there.

    Returns:
        ``(questions,)`` place of the last round that is drawn, and ``(questions,)``
        whether the answer is accepted.

    Example:
        >>> paths = [[0.0, 0.7], [0.5, 0.3], [1.0, 0.1]]
        >>> walk(paths, accept_at_most=(0.1, 0.4), reject_at_least=(0.9,))
        (array([0, 1, 0]), array([ True,  True, False]))
    """
    table = np.asarray(paths, dtype=np.float64)
    accept = np.array([limit_or(limit, -1.0) for limit in accept_at_most])
    reject = np.array([limit_or(limit, 2.0) for limit in reject_at_least])
    accepted = table <= accept
    stops = accepted.copy()
    stops[:, :-1] |= (table[:, :-1] >= reject) & np.isfinite(table[:, :-1])
    stops[:, -1] = True  # the last round ends it
    ends: NDArray[np.intp] = stops.argmax(axis=1)
    return ends, accepted[np.arange(len(table)), ends]
