"""Semantic Nearest Neighbor Entropy, plain (SNNE) and weighted (WSNNE)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_logprobs, as_numbers
from snne_guard.checks import check_number
from snne_guard.errors import InputError
from snne_guard.scorers.method import Method
from snne_guard.types import FloatArray

_ROUNDING = 1e-9


def snne(
    similarity: ArrayLike,
    *,
    tau: float = 1.0,
    include_self: bool = True,
    anchor: float = 0.0,
) -> float:
    r"""Return the Semantic Nearest Neighbor Entropy of a set of answers.

    .. math:: SNNE = -\frac1n \sum_i \log \sum_j \exp(f_{ij} / \tau)

    Args:
        similarity: ``(n, n)`` matrix f, n >= 1, finite or ``-inf``.
        tau: Temperature of the log-sum-exp, above 0. Compare values only at equal n and
            tau.
        include_self: Whether ``j = i`` is in the inner sum, as in the paper.
        anchor: Share in [0, 1] of the weight of the outer mean that the first answer
            gets before the rest is shared among all; 0 in the paper.

    Returns:
        The entropy in nats, usually negative; higher is more uncertain. For f in
        [0, 1] with diagonal 1 it lies within ``bounds(n, tau=tau)``. ``inf`` where a
        row of f is all ``-inf``, as for n = 1 without the diagonal.

    Source: Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy" (arXiv
    2506.00245). The anchor is this library's.

    Example:
        >>> round(snne([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]), 4)
        -1.6373
    """
    return _entropy(similarity, None, tau=tau, include_self=include_self, anchor=anchor)


def wsnne(
    similarity: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    tau: float = 1.0,
    include_self: bool = True,
    anchor: float = 0.0,
) -> float:
    r"""Return SNNE with each answer weighted by its length-normalised probability.

    .. math::
        WSNNE = -\sum_i w_i \log \sum_j \exp(f_{ij} / \tau), \quad
        w = \mathrm{softmax}(\ell)

    The paper prints the mean log-probability itself as the weight; its code, and this
    function, exponentiate it. With equal log-probabilities WSNNE is SNNE.

    ``mean_logprobs`` are the ``(n,)`` mean token log-probabilities of the answers in
    nats: ``-inf`` gives weight 0; if all are ``-inf`` the weights are equal. All else,
    and the bounds of the result, is as for ``snne``.

    Source: the paper named at ``snne``, white-box extension.

    Example:
        >>> f = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
        >>> round(wsnne(f, [-0.2, -0.7, -1.5]), 4)
        -1.6616
    """
    return _entropy(
        similarity, mean_logprobs, tau=tau, include_self=include_self, anchor=anchor
    )


def _entropy(
    similarity: ArrayLike,
    mean_logprobs: ArrayLike | None,
    *,
    tau: float,
    include_self: bool,
    anchor: float,
) -> float:
    tau = check_number(tau, what="tau", above=0)
    anchor = check_number(anchor, what="anchor", least=0, most=1)
    scaled = as_numbers(
        similarity, what="similarity", shape=("n", "n"), least=-math.inf
    )
    scaled /= tau
    if not include_self:
        np.fill_diagonal(scaled, -np.inf)
    logs = [log_sum(row) for row in scaled.tolist()]
    weights = [1.0] * len(logs)
    if mean_logprobs is not None:
        weights = softmax_weights(mean_logprobs, n=len(logs)).tolist()
    if anchor:
        share = (1 - anchor) / math.fsum(weights)
        first, *others = [weight * share for weight in weights]
        weights = [first + anchor, *others]
    # A weight of 0 takes its row out, even where that row is -inf.
    rows = [(log, weight) for log, weight in zip(logs, weights, strict=True) if weight]
    if any(log == -math.inf for log, _ in rows):
        return math.inf
    # Around a base and summed exactly, equal rows give exactly their value: answers
    # that are all alike get u = 0 and not 1e-16, in any order.
    base, total = max(rows)[0], math.fsum(weight for _, weight in rows)
    return -base - math.fsum(weight / total * (log - base) for log, weight in rows)


def bounds(n: int, *, tau: float = 1.0) -> tuple[float, float]:
    """Return the smallest and largest SNNE of ``n`` answers.

    They are ``-(1/tau + ln n)`` for equal answers and ``-ln(exp(1/tau) + n - 1)`` for
    answers with nothing in common, in nats, and hold for similarities in [0, 1] with
    diagonal 1, the diagonal in the sum.

    Example:
        >>> low, high = bounds(10)
        >>> round(low, 4), round(high, 4)
        (-3.3026, -2.4612)
    """
    if n < 1:
        msg = f"expected n of at least 1, got {n}"
        raise InputError(msg)
    scale = 1 / check_number(tau, what="tau", above=0)
    return -(scale + math.log(n)), -(scale + math.log1p((n - 1) * math.exp(-scale)))


def uncertainty(snne: float, n: int, *, tau: float = 1.0) -> float | None:
    """Map an SNNE or WSNNE value to [0, 1].

    With ``b = exp(1/tau)`` it is ``u = (b - v) / (b - 1)`` for the mean contribution of
    a neighbour, ``v = (exp(-SNNE) - b) / (n - 1)``. It rises strictly with SNNE at
    fixed n and tau, and hardly depends on n.

    Args:
        snne: Value of SNNE or WSNNE in nats, the diagonal in the sum.
        n: Answers that were scored.
        tau: Temperature that the value was computed with.

    Returns:
        0 for equal answers, 1 for answers with nothing in common; None for n < 2. With
        a tau below about 1e-12 or above about 1e12 it is noise.

    Raises:
        InputError: The value is NaN or outside the bounds for n and tau.

    Example:
        >>> value = snne([[1, 0.5], [0.5, 1]])
        >>> round(uncertainty(value, 2), 4)
        0.6225
    """
    low, high = bounds(n, tau=tau)
    if n < 2:  # noqa: PLR2004 - one answer has nothing to differ from
        return None
    slack = _ROUNDING * max(1.0, abs(low))
    if not low - slack <= snne <= high + slack:
        msg = f"expected SNNE in [{low}, {high}] for n={n}, tau={tau}, got {snne}"
        raise InputError(msg)
    # exp(-SNNE) = n b exp(-excess): b cancels, and expm1 keeps small differences.
    excess = max(snne - low, 0.0)
    u = n * math.expm1(-excess) / ((n - 1) * math.expm1(-1 / tau))
    return min(max(u, 0.0), 1.0)


def softmax_weights(mean_logprobs: ArrayLike, /, *, n: int | str = "n") -> FloatArray:
    """Return ``(n,)`` weights ``exp(l_i - max l)``: the softmax up to a factor."""
    logprobs = as_logprobs(mean_logprobs, what="mean_logprobs", n=n)
    top = logprobs.max()
    if top == -math.inf:
        return np.ones_like(logprobs)
    # Without subtracting the maximum, exp(-800) would make the weights 0 / 0.
    weights: FloatArray = np.exp(logprobs - top)
    return weights


def log_sum(row: Sequence[float], /) -> float:
    """Return the log of the sum of ``exp(value)``, the same in any order."""
    top = max(row)
    if top == -math.inf:
        return top
    return math.log(math.fsum([math.exp(value - top) for value in row])) + top


_PAPER = "Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy"

_method = partial(
    Method,
    options=("tau", "anchor"),
    limits=bounds,
    mapping=uncertainty,
    default_similarity="content_f1",
)
_SNNE = _method("snne", f"{_PAPER}, SNNE", snne)

METHODS = (
    _SNNE,
    _method(
        "wsnne",
        f"{_PAPER}, WSNNE",
        wsnne,
        ("similarity", "mean_logprobs"),
        without_logprobs=_SNNE,
    ),
)
