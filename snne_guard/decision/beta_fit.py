"""Beta calibration: logistic regressions on functions of ``u``, many at once."""

from __future__ import annotations

import numpy as np

from snne_guard.types import FloatArray

__all__ = ["EDGE", "beta_features", "fit_beta", "probabilities"]

EDGE = 0.02
"""Where the logarithms are cut off: below it, and as close to 1, ``u`` counts as it."""

_RIDGE = np.array([1.0, 1.0, 1e-6])
"""Penalty on each coefficient. That on the last only keeps it finite where a draw of
the labels has one class."""
_FREE = ((0, 1, 2), (1, 2), (0, 2), (2,))
"""Coefficients that are not held at 0: where one would be negative, the best one on the
border is on a line or a point of it."""
_ENOUGH = 1e-8


def beta_features(u: FloatArray) -> FloatArray:
    """Return ``(n, 3)``: what the coefficients of ``n`` uncertainties stand before.

    Args:
        u: ``(n,)`` uncertainties in [0, 1].
    """
    inner = u.clip(EDGE, 1 - EDGE)
    return np.column_stack([np.log(inner), -np.log1p(-inner), np.ones(len(inner))])


def probabilities(log_odds: FloatArray) -> FloatArray:
    """Return probabilities in [0, 1] from log-odds of any size."""
    # The hyperbolic tangent does not overflow.
    found: FloatArray = 0.5 * (1 + np.tanh(0.5 * log_odds))
    return found


def fit_beta(
    features: FloatArray, *, wrong: FloatArray, right: FloatArray
) -> FloatArray:
    """Return the coefficients of several logistic regressions on the same features.

    Each is the least of the logistic loss plus half of the sum of the squares of the
    first two coefficients, over those that are 0 or more. The loss is strictly convex,
    so it is the best of the least values on the faces of that quadrant, each of which
    Newton's steps find.

    Args:
        features: ``(m, 3)``, as of ``beta_features``: the last column all ones.
        wrong: ``(regressions, m)`` how many with these features are wrong.
        right: ``(regressions, m)`` how many are right.

    Returns:
        ``(regressions, 3)``, the first two columns 0 or more.
    """
    best = np.zeros((len(wrong), 3))
    open_rows = np.arange(len(wrong))
    least = np.full(len(wrong), np.inf)
    for free in _FREE:
        columns = list(free)
        found = np.zeros((len(open_rows), 3))
        found[:, columns] = _newton(
            features[:, columns], wrong[open_rows], right[open_rows], _RIDGE[columns]
        )
        loss = _loss(features, wrong[open_rows], right[open_rows], _RIDGE, found)
        good = (found[:, :2] >= 0).all(axis=1)
        better = good & (loss < least[open_rows])
        best[open_rows[better]] = found[better]
        least[open_rows[better]] = loss[better]
        if len(free) == 3:  # noqa: PLR2004 - nothing held: it is the least of all
            open_rows = open_rows[~good]
    return best


def _newton(
    features: FloatArray, wrong: FloatArray, right: FloatArray, ridge: FloatArray
) -> FloatArray:
    """Return ``(regressions, columns)`` where each penalised loss is least."""
    total, size = wrong + right, features.shape[1]
    outer = (features[:, :, None] * features[:, None, :]).reshape(-1, size * size)
    found: FloatArray = np.zeros((len(wrong), size))
    loss = _loss(features, wrong, right, ridge, found)
    step: FloatArray = found + 1
    while np.abs(step).max(initial=0) > _ENOUGH:
        chances = probabilities(found @ features.T)
        slope = (total * chances - wrong) @ features + ridge * found
        weights = total * chances * (1 - chances)
        curve = (weights @ outer).reshape(-1, size, size) + np.diag(ridge)
        step = np.asarray(np.linalg.solve(curve, slope[..., None])[..., 0], np.float64)
        # Far from the least a whole step may go too far.
        there = _loss(features, wrong, right, ridge, found - step)
        while (worse := there > loss).any() and np.abs(step[worse]).max() > _ENOUGH:
            step[worse] /= 2
            there = _loss(features, wrong, right, ridge, found - step)
        found, loss = found - step, there
    return found


def _loss(
    features: FloatArray,
    wrong: FloatArray,
    right: FloatArray,
    ridge: FloatArray,
    found: FloatArray,
) -> FloatArray:
    odds = found @ features.T
    each = (wrong + right) * np.logaddexp(0, odds) - wrong * odds
    loss: FloatArray = each.sum(axis=1) + 0.5 * (found * found) @ ridge
    return loss
