"""Methods on entailment: LUQ and LUQ-Pair.

``entailment`` are the ``(n, n, 3)`` probabilities of contradiction, neutral and
entailment for each premise and hypothesis, n >= 1. The diagonal is ignored.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_entailment
from snne_guard.scorers.method import Method
from snne_guard.types import FloatArray


def entailment_ratio(entailment: ArrayLike) -> FloatArray:
    """Return the support of each text for each other one, ignoring neutral.

    ``(n, n)`` support S = entailment / (entailment + contradiction) in [0, 1], premise
    first, so not symmetric. 1 on the diagonal; 0.5 if all is neutral. Source: Zhang et
    al. 2024, as for ``luq``.

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
    r"""Return one minus the mean support of each answer by the others.

    .. math:: U = 1 - \frac1n \sum_i \frac{1}{n - 1} \sum_{j \ne i} S_{ij}

    with the support S of ``entailment_ratio``.

    A number from 0 (each supports all others) to 1 (none does); 1 for one answer, which
    has no support. Source: Zhang et al. 2024, "LUQ: Long-text Uncertainty
    Quantification for LLMs", with each answer as one unit.

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
    r"""Return one minus the mean support of each answer by its best supporter.

    .. math:: U = 1 - \frac1n \sum_i \max_{j \ne i} S_{ij}

    with the support S of ``entailment_ratio``, mirrored: of each pair only the earlier
    answer is the premise, so the order of the answers matters. This is LUQ-Pair in the
    code of the SNNE paper; the published one compares sentences.

    A number from 0 (each is supported by another) to 1 (none is); 1 for one answer,
    which has no support. Source: the code of Nguyen, Payani, Mirzasoleiman 2025,
    "Beyond Semantic Entropy".

    Example:
        >>> luq_pair([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0.3, 0.6, 0.1], [0, 0, 1]]])
        0.25
    """
    upper = np.triu(entailment_ratio(entailment), 1)
    best = (upper + upper.T).max(axis=1)
    return 1 - math.fsum(best.tolist()) / len(best)


_ZHANG = "Zhang et al. 2024, LUQ: Long-text Uncertainty Quantification for LLMs"
_NGUYEN = "Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy, LUQ-Pair"

_method = partial(
    Method, arguments=("entailment",), limits=(0.0, 1.0), default_similarity="nli"
)
METHODS = (_method("luq", _ZHANG, luq), _method("luq_pair", _NGUYEN, luq_pair))
