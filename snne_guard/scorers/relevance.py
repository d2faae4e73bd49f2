"""Shifting Attention to Relevance: entropies that weigh what carries the meaning.

For each of n answers, ``token_logprobs`` are the ``(t,)`` natural log-probabilities of
its tokens, t >= 1, and ``token_importance`` says how much the meaning changes without
each token, R = 1 - similarity, in [0, 1]. ``similarity`` is the ``(n, n)`` matrix f of
numbers of at least 0; its diagonal is ignored.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers, as_token_logprobs
from snne_guard.scorers.method import Method
from snne_guard.scorers.nearest_neighbor import log_sum
from snne_guard.types import FloatArray

_TEMPERATURE = 0.001


def token_sar(
    token_logprobs: Sequence[ArrayLike], token_importance: Sequence[ArrayLike]
) -> float:
    r"""Return the mean entropy of the answers, each token weighted by its relevance.

    .. math:: E_i = \sum_t \frac{R_t}{\sum_s R_s} (-\log p_t), \quad
        tokenSAR = \frac1n \sum_i E_i

    If no token of an answer matters (all R are 0), all its tokens weigh the same.

    A value of at least 0 nats, higher is more uncertain; unbounded. Source: Duan et al.
    2024, "Shifting Attention to Relevance" (arXiv 2307.01379), tokenSAR. The code of
    the SNNE paper inverts the weights.

    Example:
        >>> round(token_sar([[-0.1, -2.0]], [[0.25, 0.75]]), 4)
        1.525
    """
    return _mean(_relevant_entropies(token_logprobs, token_importance).tolist())


def sent_sar(token_logprobs: Sequence[ArrayLike], similarity: ArrayLike) -> float:
    r"""Return the mean surprise of the answers, shared among those that are alike.

    .. math::
        sentSAR = \frac1n \sum_i -\log\Big(p_i + \frac1T \sum_{j \ne i} f_{ij} p_j\Big)

    with T = 0.001 and the answer's probability :math:`p_i = \exp(\sum_t \log p_t)`,
    computed in log space, so that it may be too small for a float.

    A value in nats, higher is more uncertain. It has a large offset of about ``log(T)``
    and may be negative: only the ranking of questions means something. Source: the
    paper named at ``token_sar``, sentSAR.

    Example:
        >>> round(sent_sar([[-0.1, -2.0], [-1.0]], [[1, 0.5], [0.5, 1]]), 4)
        -4.6679
    """
    tokens = as_token_logprobs(token_logprobs)
    entropies = np.array([-math.fsum(answer.tolist()) for answer in tokens])
    return _shared(entropies, similarity)


def sar(
    token_logprobs: Sequence[ArrayLike],
    token_importance: Sequence[ArrayLike],
    similarity: ArrayLike,
) -> float:
    """Return SAR: sentSAR with the probabilities ``exp(-E_i)`` of tokenSAR.

    The range is that of ``sent_sar``. Source: the paper named at ``token_sar``, SAR.

    Example:
        >>> logprobs, importance = [[-0.1, -2.0], [-1.0]], [[0.25, 0.75], [0.3]]
        >>> round(sar(logprobs, importance, [[1, 0.5], [0.5, 1]]), 4)
        -4.9544
    """
    entropies = _relevant_entropies(token_logprobs, token_importance)
    return _shared(entropies, similarity)


def _relevant_entropies(
    token_logprobs: Sequence[ArrayLike], token_importance: Sequence[ArrayLike]
) -> FloatArray:
    pairs = zip(as_token_logprobs(token_logprobs), token_importance, strict=True)
    return np.array([_entropy(*pair) for pair in pairs])


def _entropy(logprobs: FloatArray, importance: ArrayLike) -> float:
    weights = as_numbers(
        importance, what="token_importance", shape=logprobs.shape, least=0, most=1
    )
    if not weights.any():
        weights = np.ones_like(weights)
    # A weight of 0 takes its token out, even one of probability 0.
    heavy = weights > 0
    return float(-(weights[heavy] @ logprobs[heavy]) / weights.sum())


def _shared(entropies: FloatArray, similarity: ArrayLike) -> float:
    n = len(entropies)
    shares = as_numbers(similarity, what="similarity", shape=(n, n), least=0)
    shares /= _TEMPERATURE
    np.fill_diagonal(shares, 1.0)
    with np.errstate(divide="ignore"):
        logs = np.log(shares) - entropies
    return -_mean([log_sum(row) for row in logs.tolist()])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


_DUAN = "Duan et al. 2024, Shifting Attention to Relevance"
_TOKENS, _WEIGHTS = "token_logprobs", "token_importance"

METHODS = (
    Method(
        "sar",
        f"{_DUAN}, SAR, T = 0.001",
        sar,
        (_TOKENS, _WEIGHTS, "similarity"),
        default_similarity="cross_encoder",
    ),
    Method("token_sar", f"{_DUAN}, tokenSAR", token_sar, (_TOKENS, _WEIGHTS)),
    Method(
        "sent_sar",
        f"{_DUAN}, sentSAR, T = 0.001",
        sent_sar,
        (_TOKENS, "similarity"),
        default_similarity="cross_encoder",
    ),
)
