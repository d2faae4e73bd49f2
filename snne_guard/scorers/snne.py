"""Semantic Nearest Neighbor Entropy, plain and weighted, on a similarity matrix."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.scorers.bounds import bounds, check_anchor, uncertainty
from snne_guard.scorers.certificate import snne_limits, wsnne_limits
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import WeightsReading, answer_weights, row_logsumexp
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["SNNE", "WSNNE", "snne", "wsnne"]


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
        similarity: ``(n, n)`` matrix f, n >= 1. Any finite entries and ``-inf`` are
            allowed, on the diagonal too.
        tau: Temperature of the softmax, above 0. Values are comparable at equal n
            and tau only.
        include_self: Whether ``j = i`` is in the inner sum, as in the paper.
        anchor: Share in [0, 1] of the outer mean's weight that lies on the first
            answer before the rest is shared out among all; 0, as in the paper, for
            none. At 1 it ranks as ``anchored_snne``.

    Returns:
        The entropy in nats, higher is more uncertain. It is usually negative: with f in
        [0, 1] and diagonal 1 it lies between ``-(1/tau + ln n)`` (all alike) and
        ``-ln(exp(1/tau) + n - 1)`` (all different). ``inf`` where a row has nothing
        but ``-inf`` left, for example for n = 1 without the diagonal.

    Raises:
        InputError: The matrix is not square, empty, or holds NaN or ``+inf``; or
            similarity / tau leaves the range of a float.
        ConfigurationError: tau is not a finite number above 0, or the anchor is not in
            [0, 1].

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy: Boosting LLM
        Uncertainty Quantification with Pairwise Semantic Similarity"; the anchor is
        this library's.

    Example:
        >>> round(snne([[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]), 4)
        -1.6373
    """
    rows = row_logsumexp(similarity, tau=tau, include_self=include_self)
    return -_anchored_mean(rows, np.ones(len(rows)), anchor)


def wsnne(
    similarity: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    tau: float = 1.0,
    include_self: bool = True,
    reading: WeightsReading = "code",
    anchor: float = 0.0,
) -> float:
    r"""Return SNNE with each answer weighted by how likely the model finds it.

    .. math::
        WSNNE = -\sum_i w_i \log \sum_j \exp(f_{ij} / \tau), \quad
        w = \mathrm{softmax}(\ell)

    The paper prints the mean log-probability itself as the weight; its code takes the
    exponential, and so does this by default. With equal log-probabilities WSNNE is
    SNNE.

    Args:
        similarity: ``(n, n)`` matrix f as for ``snne``.
        mean_logprobs: ``(n,)`` mean token log-probabilities of the answers, in nats.
            ``-inf`` is weight 0, unless all are: then the weights are equal.
        tau: Temperature of the softmax, above 0.
        include_self: Whether ``j = i`` is in the inner sum.
        reading: ``"code"``: the weights above. ``"printed"``: ``l_i / sum_j l_j``, as
            the paper prints them, for comparison alone: the least likely answer weighs
            most, and ``-inf`` all there is.
        anchor: As for ``snne``.

    Returns:
        The entropy in nats, within the same bounds as SNNE.

    Raises:
        InputError: As for ``snne``, or the log-probabilities are not n numbers, or one
            is NaN, ``+inf`` or above 0; or all are 0 in the reading ``"printed"``, in
            which that is 0 / 0.
        ConfigurationError: As for ``snne``, or ``reading`` is another word.

    Source:
        The paper named at ``snne``, section on white-box use.

    Example:
        >>> f = [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]
        >>> round(wsnne(f, [-0.2, -0.7, -1.5]), 4)
        -1.6616
        >>> round(wsnne(f, [-0.2, -0.7, -1.5], reading="printed"), 4)
        -1.6
    """
    rows = row_logsumexp(similarity, tau=tau, include_self=include_self)
    weights = answer_weights(mean_logprobs, n=len(rows), reading=reading)
    return -_anchored_mean(rows, weights, anchor)


def _anchored_mean(rows: FloatArray, weights: FloatArray, anchor: float) -> float:
    check_anchor(anchor)
    if anchor:
        weights = (1 - anchor) / math.fsum(weights.tolist()) * weights
        weights[0] += anchor
    return _weighted_mean(rows, weights)


def _weighted_mean(rows: FloatArray, weights: FloatArray) -> float:
    # A weight of 0 takes its row out, also where the row is -inf.
    pairs = zip(rows.tolist(), weights.tolist(), strict=True)
    weighty: list[tuple[float, float]] = [pair for pair in pairs if pair[1] > 0]
    base = max(weighty)[0]
    if min(weighty)[0] == -math.inf:
        return -math.inf
    # Around a base and summed exactly: equal rows give exactly their value, so that
    # answers that are all alike get u = 0 and not 1e-16, in any order.
    total = math.fsum(weight for _, weight in weighty)
    return base + math.fsum(weight / total * (row - base) for row, weight in weighty)


def _snne(inputs: MethodInputs) -> float:
    return snne(inputs.similarity, tau=inputs.tau, anchor=inputs.anchor)


def _wsnne(inputs: MethodInputs) -> float:
    logprobs = inputs.mean_logprobs
    assert logprobs is not None  # noqa: S101 - FunctionMethod checked what it needs
    return wsnne(inputs.similarity, logprobs, tau=inputs.tau, anchor=inputs.anchor)


def _snne_partial(inputs: MethodInputs, missing: int) -> FloatArray:
    return snne_limits(
        inputs.similarity,
        missing,
        tau=inputs.tau,
        metric=inputs.metric,
        anchor=inputs.anchor,
    )


def _wsnne_partial(inputs: MethodInputs, missing: int) -> FloatArray:
    logprobs = inputs.mean_logprobs
    assert logprobs is not None  # noqa: S101 - FunctionMethod checked what it needs
    return wsnne_limits(
        inputs.similarity, logprobs, missing, tau=inputs.tau, anchor=inputs.anchor
    )


_PAPER = "Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy"

SNNE = FunctionMethod(
    name="snne",
    source=f"{_PAPER}, SNNE",
    function=_snne,
    limits=bounds,
    mapping=uncertainty,
    partial=_snne_partial,
    default_similarity="content_f1",
    anchors=True,
)
"""SNNE, the diagonal in, as the paper has it."""

WSNNE = FunctionMethod(
    name="wsnne",
    source=f"{_PAPER}, WSNNE",
    function=_wsnne,
    limits=bounds,
    mapping=uncertainty,
    partial=_wsnne_partial,
    needs=frozenset({"similarity", "mean_logprobs"}),
    white_box=True,
    default_similarity="content_f1",
    anchors=True,
)
"""WSNNE, weights as in the authors' code."""
