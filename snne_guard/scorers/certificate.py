"""What the samples that are still missing could make of a score, at most."""

from __future__ import annotations

import sys
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.bounds import check_anchor
from snne_guard.scorers.rows import as_floats, row_logsumexp, softmax_weights
from snne_guard.scorers.triangle import MOST_MEMBERS, triangle_bounds
from snne_guard.types import FloatArray, Method, MethodInputs

__all__ = [
    "PartlyBounded",
    "snne_limits",
    "snne_partial_bounds",
    "uncertainty_range",
    "wsnne_limits",
    "wsnne_partial_bounds",
]

_ULPS = 16 * sys.float_info.epsilon


@runtime_checkable
class PartlyBounded(Protocol):
    """A method that knows its limits for a set of which members are missing."""

    def partial_bounds(self, inputs: MethodInputs, missing: int, /) -> ArrayLike | None:
        """Return the limits of the value while the missing members join, one by one.

        Args:
            inputs: The ``m`` members that are there.
            missing: Members that join them, whatever they are.

        Returns:
            ``(missing + 1, 2)`` smallest and largest raw value of ``m``, ``m + 1``,
            ... ``m + missing`` members; None if unknown.
        """
        ...


def snne_partial_bounds(
    similarity: ArrayLike, missing: int, /, *, tau: float = 1.0
) -> tuple[float, float]:
    r"""Return between which values SNNE lies once the missing members have joined.

    With row sums :math:`R_i = \sum_{j \le m} \exp(f_{ij}/\tau)` of the m members,
    r missing ones, n = m + r and :math:`b = \exp(1/\tau)`:

    .. math::
        U &= -\frac1n \Big[ \sum_{i \le m} \ln(R_i + r) + r \ln(b + n - 1) \Big] \\
        L &= -\frac1n \Big[ \sum_{i \le m} \ln(R_i + r b) + r \ln(n b) \Big]

    U is SNNE where the missing members are unlike everything, L where they are like
    everything; each row sum can be no smaller and no larger for similarities in
    [0, 1], so both hold for every outcome, and both are attained.

    Args:
        similarity: ``(m, m)`` matrix of the members that are there, in [0, 1] with
            diagonal 1.
        missing: Members that join them, 0 or more.
        tau: Temperature of the softmax, above 0.

    Returns:
        The smallest and the largest SNNE of all n, in nats.

    Raises:
        InputError: The matrix is none for ``snne``, or ``missing`` is negative.
        ConfigurationError: tau is not a finite number above 0.

    Example:
        >>> low, high = snne_partial_bounds([[1, 1], [1, 1]], 1)
        >>> round(low, 4), round(high, 4)
        (-2.0986, -1.7585)
    """
    low, high = snne_limits(similarity, missing, tau=tau)[-1]
    return float(low), float(high)


def wsnne_partial_bounds(
    similarity: ArrayLike,
    mean_logprobs: ArrayLike,
    missing: int,
    /,
    *,
    tau: float = 1.0,
) -> tuple[float, float]:
    r"""Return between which values WSNNE lies once the missing members have joined.

    A missing member weighs between nothing and a certain one, :math:`\exp(0) = 1`, so
    the r missing ones together have at most the share r / (r + W) of the weight, where
    W is the sum of the known :math:`\exp(\ell_i)`. The rows are bounded as for SNNE.
    The missing rows have the smallest, or largest, value that any row can have, so
    the limits are where their share is largest.

    Args:
        similarity: ``(m, m)`` matrix as for ``snne_partial_bounds``.
        mean_logprobs: ``(m,)`` mean token log-probabilities, in nats. Those of the
            missing members are taken to be at most 0.
        missing: Members that join them, 0 or more.
        tau: Temperature of the softmax, above 0.

    Returns:
        The smallest and the largest WSNNE of all, in nats.

    Raises:
        InputError: As for ``snne_partial_bounds``, or the log-probabilities are not m
            numbers.
        ConfigurationError: tau is not a finite number above 0.

    Example:
        >>> low, high = wsnne_partial_bounds([[1, 1], [1, 1]], [-0.1, -0.1], 1)
        >>> round(low, 4), round(high, 4)
        (-2.0986, -1.7514)
    """
    low, high = wsnne_limits(similarity, mean_logprobs, missing, tau=tau)[-1]
    return float(low), float(high)


def snne_limits(
    similarity: ArrayLike,
    missing: int,
    /,
    *,
    tau: float,
    metric: bool = False,
    anchor: float = 0.0,
) -> FloatArray:
    """Return the limits for none, one, ... all of the missing members.

    Args:
        similarity: As for ``snne_partial_bounds``.
        missing: As for ``snne_partial_bounds``.
        tau: As for ``snne_partial_bounds``.
        metric: Whether the similarity comes from a distance: then the smaller limit
            may be sharper.
        anchor: As for ``snne``.

    Returns:
        ``(missing + 1, 2)`` smallest and largest SNNE, in nats.
    """
    logs = row_logsumexp(similarity, tau=tau)
    known, alone = _rows(logs, missing, tau=tau)
    r = np.arange(missing + 1)[:, None]
    limits: FloatArray = -(known.sum(axis=1) + r * alone) / (len(logs) + r)
    small = 1 < len(logs) <= MOST_MEMBERS - missing
    if metric and missing and tau >= 1 and small:
        sharper = triangle_bounds(np.asarray(similarity), missing, tau=tau)
        limits[1:, 0] = np.maximum(limits[1:, 0], sharper)
    return _anchored(limits, known, anchor)


def wsnne_limits(
    similarity: ArrayLike,
    mean_logprobs: ArrayLike,
    missing: int,
    /,
    *,
    tau: float,
    anchor: float = 0.0,
) -> FloatArray:
    """Return the limits for none, one, ... all of the missing members.

    Args:
        similarity: As for ``wsnne_partial_bounds``.
        mean_logprobs: As for ``wsnne_partial_bounds``.
        missing: As for ``wsnne_partial_bounds``.
        tau: As for ``wsnne_partial_bounds``.
        anchor: As for ``wsnne``.

    Returns:
        ``(missing + 1, 2)`` smallest and largest WSNNE, in nats.
    """
    logs = row_logsumexp(similarity, tau=tau)
    weights = softmax_weights(mean_logprobs, n=len(logs))
    top = min(as_floats(mean_logprobs, what="mean_logprobs").max(), 0.0)
    total = float(weights.sum() * np.exp(top))
    known, alone = _rows(logs, missing, tau=tau)
    joined = np.arange(missing + 1.0)[:, None]
    # Where the known members weigh nothing, the others have all the weight.
    share = np.divide(
        joined, joined + total, out=np.zeros_like(joined), where=joined > 0
    )
    mean = (known * (weights / weights.sum())[:, None]).sum(axis=1)
    limits: FloatArray = -((1 - share) * mean + share * alone)
    return _anchored(limits, known, anchor)


def uncertainty_range(
    method: Method, inputs: MethodInputs, missing: int, /
) -> tuple[float, float] | None:
    """Return between which ``u`` a set lies, however many of the missing join it.

    A sample may fail, come too late or be unusable, so that fewer join than were asked
    for: the range covers every number from none to all of them.

    Args:
        method: The method; it knows its limits if it is ``PartlyBounded``.
        inputs: The members that are there, at least 2.
        missing: Members that may join them.

    Returns:
        The smallest and the largest ``u`` in [0, 1], rounding allowed for; None where
        the method does not know.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> alike = MethodInputs(similarity=np.ones((8, 8)))
        >>> low, high = uncertainty_range(METHODS["snne"], alike, 2)
        >>> round(low, 3), round(high, 3)
        (0.0, 0.425)
    """
    if not isinstance(method, PartlyBounded):
        return None
    limits = method.partial_bounds(inputs, missing)
    if limits is None:
        return None
    known, found = len(inputs.similarity), list[float]()
    for joined, values in enumerate(np.asarray(limits, dtype=np.float64).tolist()):
        for value, way in zip(values, (-1, 1), strict=True):
            u = method.uncertainty(
                value + way * _ULPS * max(1.0, abs(value)),
                known + joined,
                tau=inputs.tau,
            )
            if u is None:
                return None
            found.append(min(max(u + way * _ULPS, 0.0), 1.0))
    return min(found), max(found)


def _anchored(limits: FloatArray, known: FloatArray, anchor: float) -> FloatArray:
    """Return the limits with a share of the weight on the row of the first member.

    Both parts are at their limit for the same outcome, so what was attained still is.
    """
    check_anchor(anchor)
    if not anchor:
        return limits
    mixed: FloatArray = (1 - anchor) * limits - anchor * known[:, 0]
    return mixed


def _rows(
    logs: FloatArray, missing: int, *, tau: float
) -> tuple[FloatArray, FloatArray]:
    """Return the logs of row sums at their largest and at their smallest.

    Returns:
        ``(missing + 1, m, 2)`` for the members that are there, and
        ``(missing + 1, 2)`` for each of those that have joined.
    """
    if missing < 0:
        msg = f"expected 0 or more missing members, got {missing}"
        raise InputError(msg)
    scale = 1 / tau
    r = np.arange(missing + 1, dtype=np.float64)[:, None]
    n = len(logs) + r[:, 0]
    with np.errstate(divide="ignore"):  # the logarithm of none is -inf, and no matter
        alike = np.logaddexp(logs, np.log(r) + scale)
        unlike = np.logaddexp(logs, np.log(r))
        alone = np.logaddexp(scale, np.log(n - 1))
    return (
        np.stack([alike, unlike], axis=2),
        np.stack([np.log(n) + scale, alone], axis=1),
    )
