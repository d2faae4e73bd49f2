"""Shifting Attention to Relevance: entropies that weigh what carries the meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import (
    Ragged,
    as_matrix,
    as_ragged,
    as_token_logprobs,
    check_at_least,
    given,
)
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.small import max_of, min_of
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["SAR", "SENT_SAR", "TOKEN_SAR", "sar", "sent_sar", "token_sar"]

_ROUNDING = 1e-6


def token_sar(
    token_logprobs: Sequence[ArrayLike],
    token_importance: Sequence[ArrayLike],
    *,
    authors_bug: bool = False,
) -> float:
    r"""Return the mean entropy of the answers, each token weighed by its relevance.

    .. math:: E_i = \sum_t \frac{R_t}{\sum_s R_s} (-\log p_t), \quad
        tokenSAR = \frac1n \sum_i E_i

    Args:
        token_logprobs: For each of n answers the ``(t,)`` natural log-probabilities of
            its tokens, at least one.
        token_importance: For each answer ``(t,)`` how much the meaning changes without
            the token, R = 1 - similarity, in [0, 1]. Where all are 0 the tokens weigh
            the same.
        authors_bug: Whether similarities are taken for relevance, R = similarity, as
            in the code of SNNE's authors: there the least relevant token weighs most.

    Returns:
        A value of at least 0 nats, higher is more uncertain. No upper bound.

    Raises:
        InputError: The lengths differ anywhere, an answer has no tokens, a
            log-probability is above 0, or an importance is outside [0, 1].

    Source:
        Duan et al. 2024, "Shifting Attention to Relevance" (arXiv 2307.01379),
        tokenSAR.

    Example:
        >>> round(token_sar([[-0.1, -2.0]], [[0.25, 0.75]]), 4)
        1.525
        >>> round(token_sar([[-0.1, -2.0]], [[0.25, 0.75]], authors_bug=True), 4)
        0.575
    """
    entropies = _relevant_entropies(
        token_logprobs, token_importance, authors_bug=authors_bug
    )
    return _mean(entropies)


def sent_sar(
    token_logprobs: Sequence[ArrayLike],
    similarity: ArrayLike,
    *,
    t: float = 0.001,
) -> float:
    r"""Return the mean surprise of the answers, shared among those that are alike.

    .. math::
        sentSAR = \frac1n \sum_i -\log\Big(p_i + \frac1T \sum_{j \ne i} f_{ij} p_j\Big)

    with the answer's probability :math:`p_i = \exp(\sum_t \log p_t)`. It is computed
    in log space, so that a probability may be too small for a float.

    Args:
        token_logprobs: For each of n answers the natural log-probabilities of its
            tokens, at least one.
        similarity: ``(n, n)`` f of at least 0; the diagonal is not looked at.
        t: Temperature T, above 0.

    Returns:
        A value in nats, higher is more uncertain. It has a large offset of about
        ``log(T)`` and may be negative: only the order of questions means something.

    Raises:
        InputError: The lengths differ, an answer has no tokens, a log-probability is
            above 0, or a similarity is below 0.
        ConfigurationError: t is not a finite number above 0.

    Source:
        The paper named at ``token_sar``, sentSAR.

    Example:
        >>> round(sent_sar([[-0.1, -2.0], [-1.0]], [[1, 0.5], [0.5, 1]]), 4)
        -4.6679
    """
    tokens = as_token_logprobs(token_logprobs)
    entropies = -tokens.sums(tokens.flat)
    return _shared(entropies, similarity, t=t)


def sar(
    token_logprobs: Sequence[ArrayLike],
    token_importance: Sequence[ArrayLike],
    similarity: ArrayLike,
    *,
    t: float = 0.001,
    authors_bug: bool = False,
) -> float:
    """Return SAR: sentSAR with the probabilities ``exp(-E_i)`` of tokenSAR.

    Args:
        token_logprobs: As for ``token_sar``.
        token_importance: As for ``token_sar``.
        similarity: As for ``sent_sar``.
        t: Temperature, above 0.
        authors_bug: As for ``token_sar``.

    Returns:
        A value in nats as for ``sent_sar``.

    Raises:
        InputError: As for ``token_sar`` and ``sent_sar``.
        ConfigurationError: t is not a finite number above 0.

    Source:
        The paper named at ``token_sar``, SAR.

    Example:
        >>> logprobs, importance = [[-0.1, -2.0], [-1.0]], [[0.25, 0.75], [0.3]]
        >>> round(sar(logprobs, importance, [[1, 0.5], [0.5, 1]]), 4)
        -4.9544
    """
    entropies = _relevant_entropies(
        token_logprobs, token_importance, authors_bug=authors_bug
    )
    return _shared(entropies, similarity, t=t)


def _relevant_entropies(
    token_logprobs: Sequence[ArrayLike],
    token_importance: Sequence[ArrayLike],
    *,
    authors_bug: bool,
) -> FloatArray:
    tokens = as_token_logprobs(token_logprobs)
    weights = _weights(tokens, token_importance)
    if authors_bug:
        weights = 1 - weights
    # Where nothing weighs, everything weighs the same.
    nothing = np.repeat(tokens.sums(weights) <= 0, tokens.lengths)
    weights = np.where(nothing, 1.0, weights)
    # A weight of 0 takes its token out, also one that the model thinks impossible.
    weighed = np.zeros_like(weights)
    np.multiply(weights, -tokens.flat, out=weighed, where=weights > 0)
    return tokens.sums(weighed) / tokens.sums(weights)


def _weights(tokens: Ragged, token_importance: Sequence[ArrayLike]) -> FloatArray:
    importance = as_ragged(token_importance, what="token_importance")
    got, expected = importance.lengths, tokens.lengths
    if got != expected:
        msg = f"expected token_importance of {expected} tokens, got {got}"
        raise InputError(msg)
    least, most = min_of(importance.flat), max_of(importance.flat)
    if least < -_ROUNDING or most > 1 + _ROUNDING:
        wrong = least if least < -_ROUNDING else most
        msg = f"expected token_importance in [0, 1], got {wrong}"
        raise InputError(msg)
    return np.minimum(np.maximum(importance.flat, 0.0), 1.0)


def _shared(entropies: FloatArray, similarity: ArrayLike, *, t: float) -> float:
    check_at_least(t, 0, what="t", above=True)
    matrix = as_matrix(similarity, what="similarity")
    if len(matrix) != len(entropies):
        msg = f"expected a similarity of {len(entropies)} answers, got {len(matrix)}"
        raise InputError(msg)
    least = min_of(matrix)
    if least < 0:
        msg = f"expected similarities of at least 0, got {least}"
        raise InputError(msg)
    if math.isinf(max_of(matrix) / float(t)):
        msg = f"expected t that similarities can be divided by, got {t!r}"
        raise ConfigurationError(msg)
    shares = matrix / t
    shares.flat[:: len(shares) + 1] = 1.0
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(shares) - entropies
    # In sorted order the sums do not depend on the order of the answers.
    logs.sort(axis=1)
    top = logs[:, -1:].copy()
    if min_of(top) == -math.inf:
        return math.inf
    logs -= top
    sums = np.exp(logs, out=logs).sum(axis=1)
    return -_mean(np.log(sums) + top[:, 0])


def _mean(values: FloatArray) -> float:
    return math.fsum(values.tolist()) / len(values)


def _sar(inputs: MethodInputs) -> float:
    return sar(
        given(inputs.token_logprobs), given(inputs.token_importance), inputs.similarity
    )


def _token_sar(inputs: MethodInputs) -> float:
    return token_sar(given(inputs.token_logprobs), given(inputs.token_importance))


def _sent_sar(inputs: MethodInputs) -> float:
    return sent_sar(given(inputs.token_logprobs), inputs.similarity)


_DUAN = "Duan et al. 2024, Shifting Attention to Relevance"

SAR = FunctionMethod(
    name="sar",
    source=f"{_DUAN}, SAR",
    function=_sar,
    needs=frozenset({"token_logprobs", "token_importance", "similarity"}),
    default_similarity="cross_encoder",
    white_box=True,
)
"""SAR, the most relevant tokens weighing most, T = 0.001."""

TOKEN_SAR = FunctionMethod(
    name="token_sar",
    source=f"{_DUAN}, tokenSAR",
    function=_token_sar,
    needs=frozenset({"token_logprobs", "token_importance"}),
    white_box=True,
)
"""The part of SAR that weighs tokens."""

SENT_SAR = FunctionMethod(
    name="sent_sar",
    source=f"{_DUAN}, sentSAR",
    function=_sent_sar,
    needs=frozenset({"token_logprobs", "similarity"}),
    default_similarity="cross_encoder",
    white_box=True,
)
"""The part of SAR that shares among answers, T = 0.001."""
