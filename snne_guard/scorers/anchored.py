"""SNNE with all its weight on the delivered answer: is that one far from the rest?"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.arrays import as_shares, as_vector, given
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import clipped_logprobs, likelihoods
from snne_guard.types import MethodInputs

__all__ = ["ANCHORED_SNNE", "ANCHORED_WSNNE", "anchored_snne", "anchored_wsnne"]

_ROUNDING = 1e-9


def anchored_snne(main_similarity: ArrayLike, *, tau: float = 1.0) -> float:
    r"""Return how far the delivered answer is from the samples.

    .. math::
        A = -\tau \log \Big( \frac1k \sum_{j=1}^k \exp(f_{0j} / \tau) \Big)

    SNNE asks how far the answers are from one another, and this how far one of them is
    from the rest. Up to constants it is WSNNE with all the weight on the answer.

    Args:
        main_similarity: ``(k,)`` f in [0, 1] of the delivered answer to each of k
            samples, never to itself.
        tau: Temperature of the softmax, above 0. The smaller, the more the nearest
            samples count.

    Returns:
        A number from -1 (like all samples) to 0 (like none), no nats; higher is more
        uncertain. At any tau it is minus the similarity of a sample that stands for
        all.

    Raises:
        InputError: There are no samples, or a similarity is outside [0, 1].
        ConfigurationError: tau is not a finite number above 0.

    Source:
        This library; after Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic
        Entropy", WSNNE.

    Example:
        >>> round(anchored_snne([1.0, 1.0, 0.5, 0.0]), 4)
        -0.7038
    """
    similarity = as_shares(main_similarity, what="main_similarity", slack=_ROUNDING)
    return _pooled(similarity, [1.0] * len(similarity), tau=tau)


def anchored_wsnne(
    main_similarity: ArrayLike, sample_mean_logprobs: ArrayLike, *, tau: float = 1.0
) -> float:
    r"""Return ``anchored_snne`` with each sample weighted by how likely it is.

    .. math::
        A = -\tau \log \sum_{j=1}^k w_j \exp(f_{0j} / \tau), \quad
        w = \mathrm{softmax}(\ell_1, \dots, \ell_k)

    Args:
        main_similarity: As for ``anchored_snne``.
        sample_mean_logprobs: ``(k,)`` mean token log-probabilities of the samples, in
            nats. ``-inf`` is weight 0, unless all are: then the weights are equal.
        tau: As for ``anchored_snne``.

    Returns:
        A number from -1 to 0 as for ``anchored_snne``.

    Raises:
        InputError: As for ``anchored_snne``, or the log-probabilities are not k numbers
            of at most 0.
        ConfigurationError: tau is not a finite number above 0.

    Source:
        This library.

    Example:
        >>> round(anchored_wsnne([1.0, 1.0, 0.5, 0.0], [-0.1, -0.2, -1.0, -3.0]), 4)
        -0.9141
    """
    similarity = as_shares(main_similarity, what="main_similarity", slack=_ROUNDING)
    logprobs = as_vector(
        sample_mean_logprobs, what="sample_mean_logprobs", n=len(similarity)
    )
    weights = likelihoods(clipped_logprobs(logprobs, what="sample_mean_logprobs"))
    return _pooled(similarity, weights.tolist(), tau=tau)


def _pooled(similarity: list[float], weights: list[float], *, tau: float) -> float:
    check_tau(tau)
    pairs = [pair for pair in zip(similarity, weights, strict=True) if pair[1] > 0]
    most = max(pairs)[0]
    # Around the largest, so that nothing overflows however small tau is; expm1 keeps
    # small differences however large it is, and exact sums know no order.
    parts = [math.expm1((one - most) / tau) * weight for one, weight in pairs]
    mean = math.fsum(parts) / math.fsum(weights)
    return min(max(-most - tau * math.log1p(mean), -1.0), 0.0)


def _uncertainty(value: float, n: int, *, tau: float = 1.0) -> float:
    """Map the value to [0, 1]: by the mean of exp(f / tau) that it stands for."""
    del n
    if not -1 - _ROUNDING <= value <= _ROUNDING:
        msg = f"expected anchored SNNE in [-1, 0], got {value}"
        raise InputError(msg)
    check_tau(tau)
    u = math.expm1(-(value + 1) / tau) / math.expm1(-1 / tau)
    return min(max(u, 0.0), 1.0)


def _anchored_snne(inputs: MethodInputs) -> float:
    return anchored_snne(given(inputs.main_similarity), tau=inputs.tau)


def _anchored_wsnne(inputs: MethodInputs) -> float:
    return anchored_wsnne(
        given(inputs.main_similarity),
        given(inputs.sample_mean_logprobs),
        tau=inputs.tau,
    )


_SOURCE = "this library, after Nguyen, Payani, Mirzasoleiman 2025, WSNNE"

ANCHORED_SNNE = FunctionMethod(
    name="anchored_snne",
    source=_SOURCE,
    function=_anchored_snne,
    limits=Between(-1.0, 0.0),
    mapping=_uncertainty,
    needs=frozenset({"main_similarity"}),
    default_similarity="content_f1",
)
"""How far the delivered answer is from the samples."""

ANCHORED_WSNNE = FunctionMethod(
    name="anchored_wsnne",
    source=_SOURCE,
    function=_anchored_wsnne,
    limits=Between(-1.0, 0.0),
    mapping=_uncertainty,
    needs=frozenset({"main_similarity", "sample_mean_logprobs"}),
    white_box=True,
    default_similarity="content_f1",
)
"""The same, each sample weighted by how likely it is."""
