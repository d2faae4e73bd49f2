"""Semantic density: how likely the answers near the delivered one in meaning are."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.scorers.checks import as_direction_pairs
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.scorers.snne import softmax_weights
from snne_guard.types import FloatArray

__all__ = ["SEMANTIC_DENSITY", "semantic_density"]


def semantic_density(
    main_entailment: ArrayLike,
    mean_logprobs: ArrayLike,
    *,
    texts: Sequence[str] | None = None,
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
        texts: The m samples. Equal ones count once, with the mean of their weights;
            None lets each count.

    Returns:
        A value in [0, 1], higher is more uncertain.

    Source:
        Qiu and Miikkulainen 2024, "Semantic Density" (arXiv 2405.13845). The paper
        speaks of pairs; that both directions count is our reading of it.

    Example:
        >>> agrees, differs = [0.0, 0.2, 0.8], [0.9, 0.1, 0.0]
        >>> round(semantic_density([[agrees] * 2, [differs] * 2], [-0.1, -0.1]), 4)
        0.525
    """
    probabilities = as_direction_pairs(main_entailment)
    m = len(probabilities)
    weights = softmax_weights(mean_logprobs, n=m)
    if texts is not None:
        if len(texts) != m:
            msg = f"expected {m} texts, got {len(texts)}"
            raise InputError(msg)
        counts = Counter(texts)
        weights = weights / [counts[text] for text in texts]
    one_way = probabilities[:, :, 0] + probabilities[:, :, 1] / 2
    distances = np.minimum(one_way.mean(axis=1), 1.0)
    # Exact, so that the order of the samples does not matter.
    return math.fsum((weights * distances).tolist()) / math.fsum(weights.tolist())


def _of_members(
    main_entailment: FloatArray, mean_logprobs: FloatArray, answers: Sequence[str]
) -> float:
    # The samples come last, whether or not the delivered answer is a member.
    samples = answers[len(answers) - len(mean_logprobs) :]
    return semantic_density(main_entailment, mean_logprobs, texts=samples)


SEMANTIC_DENSITY = FunctionMethod(
    name="semantic_density",
    source="Qiu and Miikkulainen 2024, Semantic Density, arXiv 2405.13845",
    function=_of_members,
    limits=between(0.0, 1.0),
    arguments=("main_entailment", "sample_mean_logprobs", "answers"),
    default_similarity="nli",
)
