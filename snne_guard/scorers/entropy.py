"""The entropies over meanings and over sequences that SNNE is measured against."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.clusters import as_cluster_ids, cluster_members, cluster_sizes
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import (
    WeightsReading,
    answer_weights,
    as_floats,
    clipped_logprobs,
    softmax_weights,
)
from snne_guard.types import MethodInputs

__all__ = [
    "DSE",
    "NE",
    "NUM_SET",
    "SE",
    "discrete_semantic_entropy",
    "naive_entropy",
    "semantic_entropy",
    "semantic_set_count",
]

# Sums are exact (fsum), so that sets which differ only in their order tie.


def semantic_entropy(
    cluster_ids: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    reading: WeightsReading = "code",
) -> float:
    r"""Return the semantic entropy: clusters weighted by how likely their members are.

    .. math::
        SE = -\sum_C P(C) \ln P(C), \quad
        P(C) = \sum_{i \in C} \mathrm{softmax}(\ell)_i

    As in the authors' code the mean log-probability is exponentiated by default; the
    paper prints it as it is. Here it is stable however small the log-probabilities are.

    Args:
        cluster_ids: ``(n,)`` cluster of each answer, n >= 1.
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats; ``-inf`` is weight
            0, unless all are: then the weights are equal.
        reading: ``"code"``: the weights above. ``"printed"``: ``l_i / sum_j l_j``, as
            the paper prints them, for comparison alone: the least likely answer weighs
            most, and ``-inf`` all there is.

    Returns:
        The entropy in nats, from 0 (one cluster) to the logarithm of their number.

    Raises:
        InputError: The clusters are not whole numbers, or the log-probabilities not as
            many, or one is NaN, ``+inf`` or above 0; or all are 0 in the reading
            ``"printed"``, in which that is 0 / 0.
        ConfigurationError: ``reading`` is another word.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy"; Nguyen, Payani, Mirzasoleiman 2025, Theorem on SE.

    Example:
        >>> round(semantic_entropy([0, 1], [-0.2024, -1.2176]), 4)
        0.5792
        >>> round(semantic_entropy([0, 1], [-0.2024, -1.2176], reading="printed"), 4)
        0.4095
    """
    ids = as_cluster_ids(cluster_ids)
    weights = answer_weights(mean_logprobs, n=len(ids), reading=reading).tolist()
    return _entropy(map(math.fsum, cluster_members(ids, weights).values()))


def discrete_semantic_entropy(cluster_ids: ArrayLike) -> float:
    r"""Return the entropy of the clusters' sizes, which needs no log-probabilities.

    .. math:: DSE = -\sum_C \frac{|C|}{n} \ln \frac{|C|}{n}

    Args:
        cluster_ids: ``(n,)`` cluster of each answer, n >= 1.

    Returns:
        The entropy in nats, from 0 (one cluster) to ``ln n`` (n of them).

    Raises:
        InputError: The clusters are not whole numbers.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy", the discrete variant.

    Example:
        >>> round(discrete_semantic_entropy([0, 0, 0, 1]), 4)
        0.5623
    """
    ids = as_cluster_ids(cluster_ids)
    n, sizes = len(ids), cluster_sizes(ids).values()
    if len(sizes) == 1:
        return 0.0
    return math.log(n) - math.fsum([size * math.log(size) for size in sizes]) / n


def naive_entropy(
    mean_logprobs: ArrayLike, *, reading: Literal["code", "normalised"] = "code"
) -> float:
    r"""Return the entropy over sequences, whatever they mean.

    .. math:: NE = -\frac1n \sum_i \ell_i

    Args:
        mean_logprobs: ``(n,)`` mean token log-probabilities in nats, n >= 1.
        reading: ``"code"``: the Monte Carlo estimate above, as in the authors' code.
            ``"normalised"``: the entropy of their softmax over the n answers, as the
            paper's text can be read.

    Returns:
        The entropy in nats. ``"code"``: 0 or more, without an upper limit, ``inf``
        where a log-probability is ``-inf``. ``"normalised"``: from 0 to ``ln n``.

    Raises:
        InputError: The log-probabilities are not n numbers, or one is NaN or ``+inf``.
        ConfigurationError: ``reading`` is another word.

    Source:
        Malinin and Gales 2021, "Uncertainty Estimation in Autoregressive Structured
        Prediction", length-normalised; Nguyen, Payani, Mirzasoleiman 2025.

    Example:
        >>> round(naive_entropy([-0.2024, -1.2176]), 4)
        0.71
    """
    if reading not in ("code", "normalised"):
        msg = f"expected reading 'code' or 'normalised', got {reading!r}"
        raise ConfigurationError(msg)
    logprobs = as_floats(mean_logprobs, what="mean_logprobs")
    if logprobs.ndim != 1 or not logprobs.size:
        msg = f"expected (n,) mean log-probabilities, got shape {logprobs.shape}"
        raise InputError(msg)
    logprobs = clipped_logprobs(logprobs, what="mean_logprobs")
    if reading == "normalised":
        return _entropy(softmax_weights(logprobs, n=len(logprobs)).tolist())
    return 0.0 - math.fsum(logprobs.tolist()) / len(logprobs)


def semantic_set_count(cluster_ids: ArrayLike) -> int:
    """Return how many meanings there are (NumSet).

    Args:
        cluster_ids: ``(n,)`` cluster of each answer, n >= 1.

    Returns:
        The number of clusters, 1 to n.

    Raises:
        InputError: The clusters are not whole numbers.

    Source:
        Lin et al. 2024, "Generating with Confidence"; over the clusters of semantic
        entropy, as in the code of Nguyen, Payani, Mirzasoleiman 2025.

    Example:
        >>> semantic_set_count([0, 0, 1])
        2
    """
    return len(set(as_cluster_ids(cluster_ids)))


def _entropy(masses: Iterable[float]) -> float:
    """Return the entropy of masses that need not add up to 1."""
    some = [mass for mass in masses if mass > 0]
    total = math.fsum(some)
    shares = [mass / total for mass in some]
    return 0.0 - math.fsum([share * math.log(share) for share in shares])


def _se(inputs: MethodInputs) -> float:
    return semantic_entropy(_known(inputs.cluster_ids), _known(inputs.mean_logprobs))


def _dse(inputs: MethodInputs) -> float:
    return discrete_semantic_entropy(_known(inputs.cluster_ids))


def _ne(inputs: MethodInputs) -> float:
    return naive_entropy(_known(inputs.mean_logprobs))


def _num_set(inputs: MethodInputs) -> float:
    return float(semantic_set_count(_known(inputs.cluster_ids)))


def _known(values: ArrayLike | None) -> ArrayLike:
    assert values is not None  # noqa: S101 - FunctionMethod checked what it needs
    return values


_FARQUHAR = (
    "Farquhar et al. 2024, Detecting hallucinations in large language models using "
    "semantic entropy"
)

SE = FunctionMethod(
    name="se",
    source=f"{_FARQUHAR}, SE",
    function=_se,
    limits=Between(0.0, math.log),
    needs=frozenset({"cluster_ids", "mean_logprobs"}),
    default_similarity="nli",
    white_box=True,
)
"""Semantic entropy, weights as in the authors' code."""

DSE = FunctionMethod(
    name="dse",
    source=f"{_FARQUHAR}, discrete SE",
    function=_dse,
    limits=Between(0.0, math.log),
    needs=frozenset({"cluster_ids"}),
    default_similarity="nli",
)
"""Discrete semantic entropy."""

NE = FunctionMethod(
    name="ne",
    source=(
        "Malinin and Gales 2021, Uncertainty Estimation in Autoregressive Structured "
        "Prediction"
    ),
    function=_ne,
    needs=frozenset({"mean_logprobs"}),
    white_box=True,
)
"""Naive entropy, length-normalised; it has no upper limit."""

NUM_SET = FunctionMethod(
    name="num_set",
    source="Lin et al. 2024, Generating with Confidence, NumSet",
    function=_num_set,
    limits=Between(1.0, float),
    needs=frozenset({"cluster_ids"}),
    default_similarity="nli",
)
"""Number of semantic sets."""
