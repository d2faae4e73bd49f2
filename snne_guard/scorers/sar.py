"""Shifting Attention to Relevance: entropies that weigh what carries the meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import check_number
from snne_guard.errors import InputError
from snne_guard.scorers.checks import as_matrix, as_shares, as_token_logprobs
from snne_guard.scorers.method import Method
from snne_guard.types import FloatArray

__all__ = ["METHODS", "sar", "sent_sar", "token_sar"]


def token_sar(
    token_logprobs: Sequence[ArrayLike], token_importance: Sequence[ArrayLike]
) -> float:
    r"""Return the mean entropy of the answers, each token weighted by its relevance.

    .. math:: E_i = \sum_t \frac{R_t}{\sum_s R_s} (-\log p_t), \quad
        tokenSAR = \frac1n \sum_i E_i

    Args:
        token_logprobs: For each of n answers the ``(t,)`` natural log-probabilities of
            its tokens, at least one.
        token_importance: For each answer ``(t,)`` how much the meaning changes without
            the token, R = 1 - similarity, in [0, 1]. If all are 0 the tokens weigh the
            same.

    Returns:
        A value of at least 0 nats, higher is more uncertain; unbounded.

    Source:
        Duan et al. 2024, "Shifting Attention to Relevance" (arXiv 2307.01379),
        tokenSAR. The code of the SNNE paper inverts the weights.

    Example:
        >>> round(token_sar([[-0.1, -2.0]], [[0.25, 0.75]]), 4)
        1.525
    """
    return _mean(_relevant_entropies(token_logprobs, token_importance))


def sent_sar(
    token_logprobs: Sequence[ArrayLike], similarity: ArrayLike, *, t: float = 0.001
) -> float:
    r"""Return the mean surprise of the answers, shared among those that are alike.

    .. math::
        sentSAR = \frac1n \sum_i -\log\Big(p_i + \frac1T \sum_{j \ne i} f_{ij} p_j\Big)

    with the answer's probability :math:`p_i = \exp(\sum_t \log p_t)`, computed in log
    space, so that a probability may be too small for a float.

    Args:
        token_logprobs: For each of n answers the natural log-probabilities of its
            tokens, at least one.
        similarity: ``(n, n)`` f of at least 0; the diagonal is not looked at.
        t: Temperature T, above 0.

    Returns:
        A value in nats, higher is more uncertain. It has a large offset of about
        ``log(T)`` and may be negative: only the ranking of questions means something.

    Source:
        The paper named at ``token_sar``, sentSAR.

    Example:
        >>> round(sent_sar([[-0.1, -2.0], [-1.0]], [[1, 0.5], [0.5, 1]]), 4)
        -4.6679
    """
    tokens = as_token_logprobs(token_logprobs)
    entropies = np.array([-math.fsum(answer.tolist()) for answer in tokens])
    return _shared(entropies, similarity, t=t)


def sar(
    token_logprobs: Sequence[ArrayLike],
    token_importance: Sequence[ArrayLike],
    similarity: ArrayLike,
    *,
    t: float = 0.001,
) -> float:
    """Return SAR: sentSAR with the probabilities ``exp(-E_i)`` of tokenSAR.

    The arguments and the range are those of ``token_sar`` and ``sent_sar``.

    Source:
        The paper named at ``token_sar``, SAR.

    Example:
        >>> logprobs, importance = [[-0.1, -2.0], [-1.0]], [[0.25, 0.75], [0.3]]
        >>> round(sar(logprobs, importance, [[1, 0.5], [0.5, 1]]), 4)
        -4.9544
    """
    entropies = _relevant_entropies(token_logprobs, token_importance)
    return _shared(entropies, similarity, t=t)


def _relevant_entropies(
    token_logprobs: Sequence[ArrayLike], token_importance: Sequence[ArrayLike]
) -> FloatArray:
    tokens = as_token_logprobs(token_logprobs)
    pairs = zip(tokens, token_importance, strict=True)
    return np.array([_entropy(*pair) for pair in pairs])


def _entropy(logprobs: FloatArray, importance: ArrayLike) -> float:
    weights = as_shares(importance, what="token_importance")
    if weights.shape != logprobs.shape:
        msg = f"expected token_importance for each of {len(logprobs)} tokens"
        raise InputError(msg)
    if not weights.any():
        weights = np.ones_like(weights)
    # A weight of 0 takes its token out, even one of probability 0.
    heavy = weights > 0
    return float(-(weights[heavy] @ logprobs[heavy]) / weights.sum())


def _shared(entropies: FloatArray, similarity: ArrayLike, *, t: float) -> float:
    t = check_number(t, what="t", above=0)
    shares = as_matrix(similarity, least=0) / t
    np.fill_diagonal(shares, 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(shares) - entropies
    logs.sort(axis=1)  # so that the sums do not depend on the order of the answers
    top = logs[:, -1]
    if np.isneginf(top).any():
        return math.inf
    return -_mean(np.log(np.exp(logs - top[:, None]).sum(axis=1)) + top)


def _mean(values: FloatArray) -> float:
    return math.fsum(values.tolist()) / len(values)


_DUAN = "Duan et al. 2024, Shifting Attention to Relevance"

METHODS = (
    Method(
        name="sar",
        source=f"{_DUAN}, SAR, T = 0.001",
        function=sar,
        arguments=("token_logprobs", "token_importance", "similarity"),
        default_similarity="cross_encoder",
    ),
    Method(
        name="token_sar",
        source=f"{_DUAN}, tokenSAR",
        function=token_sar,
        arguments=("token_logprobs", "token_importance"),
    ),
    Method(
        name="sent_sar",
        source=f"{_DUAN}, sentSAR, T = 0.001",
        function=sent_sar,
        arguments=("token_logprobs", "similarity"),
        default_similarity="cross_encoder",
    ),
)
