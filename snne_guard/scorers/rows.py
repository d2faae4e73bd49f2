"""The logs of a similarity matrix's row sums, which SNNE is made of."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.small import max_of
from snne_guard.types import FloatArray

__all__ = [
    "LOGPROB_SLACK",
    "WeightsReading",
    "answer_weights",
    "as_floats",
    "as_square",
    "clipped_logprobs",
    "likelihoods",
    "printed_weights",
    "row_logsumexp",
    "softmax_weights",
]

WeightsReading = Literal["code", "printed"]

LOGPROB_SLACK = 1e-3
"""How far above 0 rounding at a provider may lift a log-probability."""

# Larger ones are summed up anew, so that what is kept stays small.
_KEPT_SIZE = 64


def row_logsumexp(
    similarity: ArrayLike, *, tau: float, include_self: bool = True
) -> FloatArray:
    """Return the ``(n,)`` logs of the rows' sums of ``exp(f / tau)``; read-only.

    Those of the last few small matrices are remembered: SNNE and WSNNE share them.
    """
    check_tau(tau)
    matrix = as_square(similarity)
    n = len(matrix)
    sums = _remembered if n <= _KEPT_SIZE else _row_logsumexp
    return sums(n, matrix.tobytes(), tau=float(tau), include_self=include_self)


def _row_logsumexp(
    n: int, data: bytes, /, *, tau: float, include_self: bool
) -> FloatArray:
    matrix = np.frombuffer(data, dtype=np.float64).reshape(n, n)
    with np.errstate(over="ignore"):
        scaled = matrix / tau
    if np.any(np.isinf(scaled) & np.isfinite(matrix)):
        msg = f"expected similarity / tau within the range of a float, got tau={tau}"
        raise InputError(msg)
    if not include_self:
        np.fill_diagonal(scaled, -np.inf)
    # In sorted order the sum does not depend on the order of the answers.
    scaled.sort(axis=1)
    top = scaled[:, -1:]
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore"):
        logs: FloatArray = np.log(np.exp(scaled - top).sum(axis=1)) + top[:, 0]
    logs.flags.writeable = False
    return logs


_remembered = lru_cache(maxsize=8)(_row_logsumexp)


def softmax_weights(mean_logprobs: ArrayLike, *, n: int) -> FloatArray:
    """Return the ``(n,)`` softmax of the log-probabilities, the largest weight 1.

    Raises:
        InputError: They are not n numbers, NaN or ``+inf`` is among them, or one is
            above 0 by more than rounding.
    """
    return likelihoods(_as_mean_logprobs(mean_logprobs, n=n))


def likelihoods(logprobs: FloatArray, /) -> FloatArray:
    """Return the same of log-probabilities that were checked already."""
    top = max_of(logprobs)
    if top == -math.inf:
        return np.ones_like(logprobs)
    # The difference, not the exponential, keeps exp(-800) from becoming 0 / 0.
    weights: FloatArray = np.exp(logprobs - top)
    return weights


def printed_weights(mean_logprobs: ArrayLike, *, n: int) -> FloatArray:
    """Return the ``(n,)`` ratios of the log-probabilities themselves, the largest 1.

    So the paper prints them. The numbers are negative, their ratios positive, and the
    least likely answer weighs most; where some are ``-inf``, these weigh alone.

    Raises:
        InputError: As for ``softmax_weights``, or all are 0, which is 0 / 0.
    """
    logprobs = _as_mean_logprobs(mean_logprobs, n=n)
    least = logprobs.min()
    if least == 0:
        msg = (
            "expected a mean log-probability below 0 for weights as the paper prints "
            f"them, got {n} that are 0"
        )
        raise InputError(msg)
    if np.isneginf(least):
        return np.isneginf(logprobs).astype(np.float64)
    weights: FloatArray = logprobs / least
    return weights


_WEIGHTS: Mapping[str, Callable[..., FloatArray]] = {
    "code": softmax_weights,
    "printed": printed_weights,
}


def answer_weights(
    mean_logprobs: ArrayLike, *, n: int, reading: WeightsReading
) -> FloatArray:
    """Return how much each of n answers weighs, the heaviest 1.

    Args:
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats.
        n: How many there must be.
        reading: ``"code"``: ``softmax_weights``; ``"printed"``: ``printed_weights``.

    Raises:
        InputError: As for these two.
        ConfigurationError: ``reading`` is another word.
    """
    if reading not in _WEIGHTS:
        msg = f"expected reading to be one of {[*_WEIGHTS]}, got {reading!r}"
        raise ConfigurationError(msg)
    return _WEIGHTS[reading](mean_logprobs, n=n)


def _as_mean_logprobs(mean_logprobs: ArrayLike, *, n: int) -> FloatArray:
    logprobs = as_floats(mean_logprobs, what="mean_logprobs")
    if logprobs.shape != (n,):
        msg = f"expected {n} mean log-probabilities, got shape {logprobs.shape}"
        raise InputError(msg)
    return clipped_logprobs(logprobs, what="mean_logprobs")


def clipped_logprobs(values: FloatArray, /, *, what: str) -> FloatArray:
    """Return log-probabilities of at most 0, or say which is above by more.

    Raises:
        InputError: One is above 0 by more than rounding.
    """
    most = max_of(values)
    if most > LOGPROB_SLACK:
        msg = f"expected {what} of at most 0, got {most}"
        raise InputError(msg)
    return np.minimum(values, 0.0) if most > 0 else values


def as_square(similarity: ArrayLike) -> FloatArray:
    """Return a matrix as an array of floats, or say what is wrong with it."""
    matrix = as_floats(similarity, what="similarity")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:  # noqa: PLR2004 - a matrix has two axes
        msg = f"expected an (n, n) similarity with n >= 1, got shape {matrix.shape}"
        raise InputError(msg)
    return matrix


def as_floats(values: ArrayLike, *, what: str) -> FloatArray:
    """Return values as an array of floats, or say what is wrong with them."""
    try:
        floats: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected {what} to be numbers, got {type(values).__name__}"
        raise InputError(msg) from error
    if not floats.size or max_of(floats) < math.inf:  # no NaN either: it is the largest
        return floats
    wrong = np.isnan(floats)
    name = "NaN" if wrong.any() else "+inf"
    first = np.argwhere(wrong if wrong.any() else np.isposinf(floats))[0].tolist()
    msg = f"expected {what} without NaN and +inf, got {name} at {tuple(first)}"
    raise InputError(msg)
