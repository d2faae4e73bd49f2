"""LUQ and LUQ-Pair: how far the answers support each other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.scorers.checks import as_matrix, as_probabilities, as_shares
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.types import FloatArray

__all__ = [
    "LUQ",
    "LUQ_PAIR",
    "entailment_ratio",
    "luq",
    "luq_pair",
]


def entailment_ratio(entailment: ArrayLike) -> FloatArray:
    """Return how much a text supports another, neutral left out of account.

    Args:
        entailment: ``(n, n, 3)`` probabilities, as of ``MethodInputs.entailment``.

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
    checked = as_probabilities(entailment)
    contradicted, entailed = checked[:, :, 0], checked[:, :, 2]
    decided = contradicted + entailed
    ratio = np.full_like(decided, 0.5)
    np.divide(entailed, decided, out=ratio, where=decided > 0)
    return ratio


def luq(support: ArrayLike) -> float:
    r"""Return how little support an answer finds in the others on average.

    .. math:: U = 1 - \frac1n \sum_i \frac{1}{n - 1} \sum_{j \ne i} S_{ij}

    Args:
        support: ``(n, n)`` support S in [0, 1], n >= 1, as of ``entailment_ratio``.
            The diagonal is not looked at.

    Returns:
        A number from 0 (each supports all others) to 1 (none does); 1 for one answer,
        which has no support.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs", with
        one unit an answer.

    Example:
        >>> luq([[1, 0.75], [0.25, 1]])
        0.5
    """
    matrix = _as_support(support)
    n = len(matrix)
    if n == 1:
        return 1.0
    others = matrix[~np.eye(n, dtype=bool)].tolist()
    return 1 - math.fsum(others) / (n * (n - 1))


def luq_pair(support: ArrayLike) -> float:
    r"""Return how little support an answer finds in the one that supports it most.

    .. math:: U = 1 - \frac1n \sum_i \max_{j \ne i} S_{ij}

    with S mirrored: of each pair only the earlier answer is the premise, so that the
    order of the answers matters. This is what the code of the SNNE paper calls
    LUQ-Pair; the published one compares sentences.

    Args:
        support: ``(n, n)`` support S in [0, 1], premise first, n >= 1, as of
            ``entailment_ratio``. The diagonal is not looked at.

    Returns:
        A number from 0 (each is supported by another) to 1 (none is); 1 for one
        answer, which has no support.

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy", the authors'
        code.

    Example:
        >>> luq_pair([[1, 0.75], [0.25, 1]])
        0.25
    """
    upper = np.triu(_as_support(support), 1)
    best = (upper + upper.T).max(axis=1)
    return 1 - math.fsum(best.tolist()) / len(best)


def _as_support(support: ArrayLike) -> FloatArray:
    return as_shares(as_matrix(support, what="support"), what="support")


_ZHANG = "Zhang et al. 2024, LUQ: Long-text Uncertainty Quantification for LLMs"

LUQ = FunctionMethod(
    name="luq",
    source=_ZHANG,
    function=lambda entailment: luq(entailment_ratio(entailment)),
    limits=between(0.0, 1.0),
    arguments=("entailment",),
    default_similarity="nli",
)

LUQ_PAIR = FunctionMethod(
    name="luq_pair",
    source="Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy, LUQ-Pair",
    function=lambda entailment: luq_pair(entailment_ratio(entailment)),
    limits=between(0.0, 1.0),
    arguments=("entailment",),
    default_similarity="nli",
)
