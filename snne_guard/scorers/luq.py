"""LUQ and LUQ-Pair: how far the answers support each other."""

from __future__ import annotations

import math
import re

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.scorers.checks import (
    as_cluster_ids,
    as_matrix,
    as_probabilities,
    as_shares,
)
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.types import FloatArray

__all__ = [
    "LUQ",
    "LUQ_PAIR",
    "LUQ_SENTENCES",
    "entailment_ratio",
    "luq",
    "luq_pair",
    "luq_sentences",
    "split_sentences",
]

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])|\n")  # noqa: RUF001 - marks of other scripts


def entailment_ratio(entailment: ArrayLike) -> FloatArray:
    """Return how much a text supports another, neutral left out of account.

    Args:
        entailment: ``(n, n, 3)`` probabilities, as of ``MethodInputs.entailment``.

    Returns:
        ``(n, n)`` support S = entailment / (entailment + contradiction) in [0, 1],
        premise first, so not symmetric. 1 on the diagonal; 0.5 if all is neutral.

    Raises:
        InputError: They are not probabilities of that shape.

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

    Raises:
        InputError: The matrix is not square, is empty, or leaves [0, 1].

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
    LUQ-Pair. The published LUQ-Pair is ``luq_sentences``.

    Args:
        support: ``(n, n)`` support S in [0, 1], premise first, n >= 1, as of
            ``entailment_ratio``. The diagonal is not looked at.

    Returns:
        A number from 0 (each is supported by another) to 1 (none is); 1 for one
        answer, which has no support.

    Raises:
        InputError: The matrix is not square, is empty, or leaves [0, 1].

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


def luq_sentences(support: ArrayLike, sentence_of: ArrayLike) -> float:
    r"""Return LUQ-Pair as published: sentence by sentence.

    A sentence's support in another answer is that of the sentence there which supports
    it most. The mean is taken over the other answers, the sentences and the answers.

    Args:
        support: ``(m, m)`` support S in [0, 1] between all sentences of all answers,
            premise first, m >= 1, as of ``entailment_ratio``.
        sentence_of: ``(m,)`` the answer that each sentence belongs to.

    Returns:
        A number from 0 to 1. If each answer is one sentence it is ``luq``.

    Raises:
        InputError: The matrix is not square, is empty, or leaves [0, 1], or the
            answers are not m whole numbers.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs",
        LUQ-Pair.

    Example:
        >>> luq_sentences([[1, 1, 0.5], [0, 1, 0], [1, 0.5, 1]], [0, 0, 1])
        0.375
    """
    matrix = _as_support(support)
    owners = np.array(as_cluster_ids(sentence_of, n=len(matrix)))
    answers = np.unique(owners)
    if len(answers) == 1:
        return 1.0
    # best[k, s]: the support of sentence s by the most helpful sentence of answer k.
    best = np.array([matrix[owners == answer].max(axis=0) for answer in answers])
    means = [
        float(np.delete(best[:, owners == answer], place, axis=0).mean())
        for place, answer in enumerate(answers)
    ]
    return 1 - math.fsum(means) / len(means)


def split_sentences(text: str, /) -> tuple[str, ...]:
    """Return the sentences of a text, at least one.

    A sentence ends at ``. ! ? …`` before white space, at the full stops of Chinese and
    Japanese, and with a line. An abbreviation ends one too: "Dr. No" is two.

    Example:
        >>> split_sentences("He won. Did she? Yes, 3.5 times!")
        ('He won.', 'Did she?', 'Yes, 3.5 times!')
    """
    found = (part.strip() for part in _SENTENCE_END.split(text))
    return tuple(part for part in found if part) or (text,)


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

LUQ_SENTENCES = FunctionMethod(
    name="luq_sentences",
    source=f"{_ZHANG}, LUQ-Pair",
    function=lambda entailment, owners: luq_sentences(
        entailment_ratio(entailment), owners
    ),
    limits=between(0.0, 1.0),
    arguments=("sentence_entailment", "sentence_of"),
    default_similarity="nli",
)
