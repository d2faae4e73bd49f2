"""A sharper limit of SNNE for similarities that come from a distance, as ROUGE-L."""

from __future__ import annotations

import numpy as np

from snne_guard.types import FloatArray

__all__ = ["MOST_MEMBERS", "triangle_bounds"]

MOST_MEMBERS = 20
"""A larger set, the missing members counted, takes longer than the limit is worth."""

_ROUNDING = 1e-12


def triangle_bounds(
    similarity: FloatArray, missing: int, /, *, tau: float = 1.0
) -> FloatArray:
    r"""Return what SNNE is not below once so many members have joined.

    ROUGE-L is 1 less the indel distance over the sum of both lengths, so that
    :math:`D = 2 (1 - f) / (2 - f)` is that distance's Steinhaus transform and obeys
    the triangle inequality (Marczewski and Steinhaus 1958, "On a certain distance of
    sets and the corresponding distance of functions"). A missing member can't be like
    two members that are unlike each other.

    With :math:`g(D) = \exp(f(D) / \tau)`, concave for :math:`\tau \ge 1`, all r
    missing members may be taken alike, and

    .. math::
        -n \, SNNE \le \max_D \sum_i \ln(R_i + r g(D_i))
        + r \ln\Big(\sum_i g(D_i) + r b\Big), \quad D_i + D_k \ge D_{ik}

    The maximum of a concave function is at most that of any of its tangents, and the
    minimum of :math:`\sum c_i D_i` under those constraints is at least
    :math:`\sum y_{ik} D_{ik}` for any :math:`y \ge 0` with
    :math:`\sum_k y_{ik} \le c_i`. So every tangent and every y give a limit; the best
    of some tangents is taken, y by pairing off the farthest members first.

    Args:
        similarity: ``(m, m)`` ROUGE-L of the members that are there.
        missing: Members that join them, 0 or more.
        tau: Temperature of the softmax, at least 1.

    Returns:
        ``(missing,)`` lower limits for 1, 2, ... members that have joined, in nats.

    Example:
        >>> triangle_bounds(np.eye(4), 1).round(3)
        array([-2.1])
    """
    m = len(similarity)
    distance = 2 * (1 - similarity) / (2 - similarity)
    r = np.arange(1, missing + 1, dtype=np.float64)[:, None]
    sums = np.exp(similarity / tau).sum(axis=1)
    points = _points(distance)
    grown = np.exp(2 * (1 - points) / (2 - points) / tau)
    rows = sums + r[:, :, None] * grown
    joined = grown.sum(axis=1) + r * np.exp(1 / tau)
    slopes = 2 * grown / (tau * (2 - points) ** 2)
    costs = ((r / joined)[:, :, None] + r[:, :, None] / rows) * slopes
    limits = np.log(rows).sum(axis=2) + r * np.log(joined)
    limits += (costs * points).sum(axis=2) - _paired(costs, distance)
    n = m + r[:, 0]
    bounds: FloatArray = -limits.min(axis=1) / n - _ROUNDING
    return bounds


def _points(distance: FloatArray) -> FloatArray:
    """Return the distances at which tangents are taken, ``(points, m)``.

    A missing member may be a copy of one that is there, or lie between them all.
    """
    middle = distance.max(axis=1) / 2
    steps = np.array([0.0, 0.25, 0.5, 0.75])[:, None, None]
    between = (1 - steps) * distance + steps * middle
    mean = distance.mean(axis=1)
    points: FloatArray = np.vstack([*between, middle, mean])
    return np.unique(points, axis=0)


def _paired(costs: FloatArray, distance: FloatArray) -> FloatArray:
    """Return a lower limit of ``costs @ D`` for every D that distances can have."""
    left, total = costs.copy(), np.zeros(costs.shape[:2])
    one, other = np.triu_indices(len(distance), 1)
    apart = distance[one, other]
    for place in np.argsort(-apart, kind="stable"):
        if apart[place] <= 0:
            break
        i, k = one[place], other[place]
        share = np.minimum(left[:, :, i], left[:, :, k])
        left[:, :, i] -= share
        left[:, :, k] -= share
        total += share * apart[place]
    return total
