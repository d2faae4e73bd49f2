"""Methods on entailment: LUQ, LUQ-Pair and semantic density.

``entailment`` are the ``(n, n, 3)`` probabilities of contradiction, neutral and
entailment for each premise and hypothesis, n >= 1. The diagonal is ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import as_distributions, as_entailment
from snne_guard.scorers.method import Method
from snne_guard.scorers.snne import softmax_weights
from snne_guard.types import FloatArray

__all__ = ["METHODS", "entailment_ratio", "luq", "luq_pair", "semantic_density"]


def entailment_ratio(entailment: ArrayLike) -> FloatArray:
    """Return how much each text supports each other one, ignoring neutral.

    Returns:
        ``(n, n)`` support S = entailment / (entailment + contradiction) in [0, 1],
        premise first, so not symmetric. 1 on the diagonal; 0.5 if all is neutral.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs".

    Example:
        >>> entailment_ratio([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0, 1, 0], [0, 0, 1]]])
        array([[1.  , 0.75],
               [0.5 , 1.  ]])
    """
    checked = as_entailment(entailment)
    contradicted, entailed = checked[:, :, 0], checked[:, :, 2]
    decided = contradicted + entailed
    ratio = np.full_like(decided, 0.5)
    np.divide(entailed, decided, out=ratio, where=decided > 0)
    return ratio


def luq(entailment: ArrayLike) -> float:
    r"""Return how little support an answer finds in the others on average.

    .. math:: U = 1 - \frac1n \sum_i \frac{1}{n - 1} \sum_{j \ne i} S_{ij}

    with the support S of ``entailment_ratio``.

    Returns:
        A number from 0 (each supports all others) to 1 (none does); 1 for one answer,
        which has no support.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs", with
        each answer as one unit.

    Example:
        >>> luq([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0.3, 0.6, 0.1], [0, 0, 1]]])
        0.5
    """
    support = entailment_ratio(entailment)
    n = len(support)
    if n == 1:
        return 1.0
    others = support[~np.eye(n, dtype=bool)].tolist()
    return 1 - math.fsum(others) / (n * (n - 1))


def luq_pair(entailment: ArrayLike) -> float:
    r"""Return how little support an answer finds in the one that supports it most.

    .. math:: U = 1 - \frac1n \sum_i \max_{j \ne i} S_{ij}

    with the support S of ``entailment_ratio``, mirrored: of each pair only the earlier
    answer is the premise, so the order of the answers matters. This is LUQ-Pair in the
    code of the SNNE paper; the published one compares sentences.

    Returns:
        A number from 0 (each is supported by another) to 1 (none is); 1 for one
        answer, which has no support.

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy", the authors'
        code.

    Example:
        >>> luq_pair([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0.3, 0.6, 0.1], [0, 0, 1]]])
        0.25
    """
    upper = np.triu(entailment_ratio(entailment), 1)
    best = (upper + upper.T).max(axis=1)
    return 1 - math.fsum(best.tolist()) / len(best)


def semantic_density(
    main_entailment: ArrayLike,
    mean_logprobs: ArrayLike,
    answers: Sequence[str],
) -> float:
    r"""Return 1 minus the semantic density of the delivered answer.

    .. math::
        SD = \frac{\sum_i w_i (1 - d_i^2)}{\sum_i w_i}, \quad w_i = \exp(\ell_i), \quad
        d_i^2 = p_c + \tfrac12 p_n

    where :math:`d_i^2` is the expected squared distance in meaning between delivered
    answer and sample, the mean of both directions, by the probabilities of
    contradiction and neutral.

    Args:
        main_entailment: ``(m, 2, 3)`` probabilities of contradiction, neutral and
            entailment: delivered answer to sample, then sample to delivered answer.
        mean_logprobs: ``(m,)`` mean token log-probabilities of the samples in nats.
        answers: Texts of which the last m are the samples. Equal samples count once,
            with the mean of their weights.

    Returns:
        A value in [0, 1], higher is more uncertain.

    Source:
        Qiu and Miikkulainen 2024, "Semantic Density" (arXiv 2405.13845). The paper
        speaks of pairs; that both directions count is our reading of it.

    Example:
        >>> agrees, differs = [0.0, 0.2, 0.8], [0.9, 0.1, 0.0]
        >>> ways = [[agrees] * 2, [differs] * 2]
        >>> round(semantic_density(ways, [-0.1, -0.1], ["Rome", "Nice"]), 4)
        0.525
    """
    weights = softmax_weights(mean_logprobs)
    m = len(weights)
    probabilities = as_distributions(
        main_entailment, what="main_entailment", shape=(m, 2, 3)
    )
    samples = answers[-m:]
    counts = Counter(samples)
    weights = weights / [counts[text] for text in samples]
    one_way = probabilities[:, :, 0] + probabilities[:, :, 1] / 2
    distances = np.minimum(one_way.mean(axis=1), 1.0)
    # Exact, so that the order of the samples does not matter.
    return math.fsum((weights * distances).tolist()) / math.fsum(weights.tolist())


_ZHANG = "Zhang et al. 2024, LUQ: Long-text Uncertainty Quantification for LLMs"

METHODS = (
    Method(
        name="luq",
        source=_ZHANG,
        function=luq,
        limits=(0.0, 1.0),
        arguments=("entailment",),
        default_similarity="nli",
    ),
    Method(
        name="luq_pair",
        source="Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy, LUQ-Pair",
        function=luq_pair,
        limits=(0.0, 1.0),
        arguments=("entailment",),
        default_similarity="nli",
    ),
    Method(
        name="semantic_density",
        source="Qiu and Miikkulainen 2024, Semantic Density, arXiv 2405.13845",
        function=semantic_density,
        limits=(0.0, 1.0),
        arguments=("main_entailment", "sample_mean_logprobs", "answers"),
        default_similarity="nli",
    ),
)
