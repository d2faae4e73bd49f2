"""A test of whether accepted answers are wrong more often than was promised."""

from __future__ import annotations

import math

from snne_guard.errors import InputError

__all__ = ["audit_evidence"]

_ODDS = ((0.1, 1.25), (0.3, 1.6), (0.3, 2.25), (0.3, 4.0))
"""Weight of each bet, and how many times higher than promised it takes the odds of a
wrong answer to be."""


def audit_evidence(reported: int, wrong: int, *, alpha: float) -> float:
    """Return the evidence that more than a share ``alpha`` of answers is wrong.

    It is a mixture over ``lambda`` of the products of ``1 + lambda (W - alpha)`` over
    the answers, W = 1 for a wrong one. While each answer is wrong with probability at
    most ``alpha``, no bet can expect to gain, so the evidence ever reaches
    ``1 / level`` with probability at most ``level``, whenever one looks and whenever
    one stops (Ville's inequality). The order of the answers does not matter.

    Source: Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables
    by betting", with bets of fixed size.

    Args:
        reported: Accepted answers of which it is known whether they are wrong.
        wrong: How many of them are.
        alpha: The share that was promised, in (0, 1).

    Returns:
        The evidence: 1 says nothing, 20 is what chance brings once in twenty
        monitors at most; ``inf`` where a float cannot hold it.

    Raises:
        InputError: If the numbers make no sense.

    Example:
        >>> audit_evidence(0, 0, alpha=0.1), audit_evidence(60, 6, alpha=0.1) < 1
        (1.0, True)
        >>> audit_evidence(60, 15, alpha=0.1) > 20
        True
    """
    if not (0 <= wrong <= reported and 0.0 < alpha < 1.0):
        msg = (
            "expected 0 <= wrong <= reported and alpha in (0, 1); "
            f"got {wrong} of {reported} and alpha={alpha!r}"
        )
        raise InputError(msg)
    logs = [math.log(weight) for weight, _ in _ODDS]
    for place, (_, times) in enumerate(_ODDS):
        # lambda = (times - 1) / (1 + (times - 1) alpha): a likelihood ratio.
        right = -math.log1p((times - 1.0) * alpha)
        logs[place] += reported * right + wrong * math.log(times)
    top = max(logs)
    total = top + math.log(math.fsum(math.exp(log - top) for log in logs))
    return math.exp(total) if total < _MOST else math.inf


_MOST = 709.0
"""Largest logarithm of a float."""
