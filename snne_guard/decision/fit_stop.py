"""Learning when to stop from the uncertainties of recorded questions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.decision.isotonic import binomial_cdf, decreasing
from snne_guard.decision.stopping import CalibratedStop
from snne_guard.errors import InputError
from snne_guard.types import FloatArray

__all__ = ["fit_stop"]

_DOUBTS = tuple(step / 100 for step in range(50))
"""Values of eta that are tried, in this order: from none to a toss of a coin."""

Curve = tuple[FloatArray, FloatArray]
"""Values of ``u`` after one round, and how probable acceptance by all n is there."""


def fit_stop(
    paths: ArrayLike,
    /,
    *,
    rounds: Sequence[int],
    threshold: float,
    epsilon: float = 0.05,
    confidence: float = 0.9,
    seed: int = 0,
    method: str = "snne",
    similarity: str = "content_f1",
    anchor: float = 0.0,
    tau: float = 1.0,
    include_answer: bool = True,
    temperature: float = 1.0,
) -> CalibratedStop:
    """Learn a stopping rule from the ``u`` that questions had after each round.

    A random half of the questions tells how probable acceptance by all n is at each
    ``u``: an isotonic regression for each round. Sampling stops where that is at least
    1 - eta, or at most eta. On the other half eta rises step by step from 0, for as
    long as so few other decisions would have a probability of 1 - ``confidence`` at
    most if the share of them were ``epsilon`` (fixed-sequence testing with the exact
    binomial test: Angelopoulos and others 2021, "Learn then Test",
    arXiv 2110.01052, section 2).

    Args:
        paths: ``(questions, rounds)`` ``u`` after each round, NaN where the set was
            incomplete. Questions without a last one are left out.
        rounds: Members of the response set after each round, the last n.
        threshold: Largest accepted ``u``, in [0, 1].
        epsilon: Share of questions that may get another decision, in (0, 1).
        confidence: Probability of the promise, in (0, 1).
        seed: Fixes the split into halves.
        method: Name of the method that gave the ``u``.
        similarity: Name of the similarity.
        anchor: ``Score.anchor`` of the scores that gave the ``u``; 0.7 where all of
            their settings were the defaults, and a guard with these takes no other.
        tau: Temperature of the similarity's softmax.
        include_answer: Whether the answer is a member of the set.
        temperature: Sampling temperature of the samples.

    Returns:
        The rule. Where even the first step failed it never stops; its ``eta`` is None.

    Raises:
        InputError: There are too few questions for such a promise; or the paths are
            no table with a column for each round and values in [0, 1] or NaN.
        ConfigurationError: An option makes no sense.

    Example:
        >>> clear = [[0.0, 0.0]] * 60 + [[1.0, 1.0]] * 60
        >>> rule = fit_stop(clear, rounds=(3, 10), threshold=0.4)
        >>> rule.mean_members, rule.disagreements, rule.n_certified
        (3.0, 0, 60)
    """
    never: tuple[None, ...] = (None,) * (len(rounds) - 1)
    rule = CalibratedStop(
        rounds=tuple(rounds),
        threshold=float(threshold),
        accept_at_most=never,
        reject_at_least=never,
        method=method,
        similarity=similarity,
        anchor=float(anchor),
        tau=float(tau),
        include_answer=include_answer,
        temperature=float(temperature),
        epsilon=epsilon,
        confidence=confidence,
    )
    table = _table(paths, columns=len(rounds))
    learn, test = _halves(table, rule, seed=seed)
    final = learn[:, -1] <= threshold
    curves = [_curve(column, final) for column in learn[:, :-1].T]
    rule = _seen(rule, test)
    for eta in _DOUBTS:
        bolder = _seen(_at(rule, curves, eta), test)
        if binomial_cdf(bolder.disagreements, len(test), epsilon) > 1 - confidence:
            break
        rule = bolder
    return replace(rule, n_records=len(learn) + len(test))


def _curve(u: FloatArray, accepted: ArrayLike) -> Curve:
    seen = ~np.isnan(u)
    return decreasing(u[seen], np.asarray(accepted, dtype=np.float64)[seen])


def _at(rule: CalibratedStop, curves: Sequence[Curve], eta: float) -> CalibratedStop:
    """Return the rule that stops where the doubt is at most eta."""
    t = rule.threshold
    accept = [u[(p >= 1 - eta) & (u <= t)] for u, p in curves]
    reject = [u[(p <= eta) & (u > t)] for u, p in curves]
    return replace(
        rule,
        eta=eta,
        accept_at_most=tuple(float(u.max()) if u.size else None for u in accept),
        reject_at_least=tuple(float(u.min()) if u.size else None for u in reject),
    )


def _seen(rule: CalibratedStop, test: FloatArray) -> CalibratedStop:
    """Return the rule with what it did on the questions that it is tested on."""
    ends, accepted = rule.replay(test)
    wrong = accepted != (test[:, -1] <= rule.threshold)
    return replace(
        rule,
        n_certified=len(test),
        disagreements=int(wrong.sum()),
        mean_members=float(np.asarray(rule.rounds)[ends].mean()),
        mean_rounds=float((ends + 1).mean()),
    )


def _halves(
    table: FloatArray, rule: CalibratedStop, *, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Return one half to learn from and one to test on, if there are enough."""
    epsilon, confidence = rule.epsilon, rule.confidence
    needed = math.ceil(math.log1p(-confidence) / math.log1p(-epsilon))
    if len(table) < 2 * needed:
        msg = (
            f"expected at least {2 * needed} recorded questions for epsilon={epsilon} "
            f"at confidence={confidence}: {needed} to learn from, and {needed} to test "
            f"on if none of them gets another decision; got {len(table)}"
        )
        raise InputError(msg)
    order = np.random.default_rng(seed).permutation(len(table))
    half = len(table) // 2
    return table[order[:half]], table[order[half:]]


def _table(paths: ArrayLike, *, columns: int) -> FloatArray:
    try:
        table: FloatArray = np.asarray(paths, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = "expected paths to be a table of numbers"
        raise InputError(msg) from error
    if table.ndim != 2 or table.shape[1] != columns:  # noqa: PLR2004 - a table
        msg = f"expected paths of shape (questions, {columns}), got {table.shape}"
        raise InputError(msg)
    outside = table[(table < 0) | (table > 1)]
    if outside.size:
        msg = f"expected every u in [0, 1] or NaN, got {float(outside[0])}"
        raise InputError(msg)
    return table[~np.isnan(table[:, -1])]
