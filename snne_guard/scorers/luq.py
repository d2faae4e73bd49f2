"""LUQ and LUQ-Pair: how far the answers support each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import as_square
from snne_guard.similarity.entailment import entailment_ratio
from snne_guard.types import FloatArray, IntArray, MethodInputs

__all__ = ["LUQ", "LUQ_PAIR", "luq", "luq_pair", "luq_sentences"]

Reading = Literal["code", "premise", "hypothesis"]


def _mirrored(matrix: FloatArray) -> FloatArray:
    upper: FloatArray = np.triu(matrix, 1)
    return upper + upper.T


def _as_premise(matrix: FloatArray) -> FloatArray:
    return matrix.copy()


def _as_hypothesis(matrix: FloatArray) -> FloatArray:
    return matrix.T.copy()


_ROUNDING = 1e-9

_READINGS: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "code": _mirrored,
    "premise": _as_premise,
    "hypothesis": _as_hypothesis,
}


def _as_ratio(ratio: ArrayLike) -> FloatArray:
    matrix = as_square(ratio)
    if not (matrix.min() >= -_ROUNDING and matrix.max() <= 1 + _ROUNDING):
        wrong = matrix.min() if matrix.min() < -_ROUNDING else matrix.max()
        msg = f"expected support in [0, 1], got {wrong}"
        raise InputError(msg)
    return matrix


def luq(ratio: ArrayLike) -> float:
    r"""Return how little support an answer finds in the others on average.

    .. math:: U = 1 - \frac1n \sum_i \frac{1}{n - 1} \sum_{j \ne i} S_{ij}

    Args:
        ratio: ``(n, n)`` support S in [0, 1], n >= 1, as from ``entailment_ratio``. The
            diagonal is not looked at. Both directions are in the mean.

    Returns:
        A number from 0 (each supports every other one) to 1 (none does); 1 for one
        answer, which has no support.

    Raises:
        InputError: The matrix is not square, empty, or holds a number outside [0, 1].

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs", with
        one unit an answer.

    Example:
        >>> luq([[1, 0.75], [0.25, 1]])
        0.5
    """
    matrix = _as_ratio(ratio)
    n = len(matrix)
    if n == 1:
        return 1.0
    others = matrix.ravel().tolist()
    del others[:: n + 1]
    pairs = math.fsum(others)
    return 1 - pairs / (n * (n - 1))


def luq_pair(ratio: ArrayLike, *, reading: Reading = "code") -> float:
    r"""Return how little support an answer finds in the one that supports it most.

    .. math:: U = 1 - \frac1n \sum_i \max_{j \ne i} S_{ij}

    This is what the code of the SNNE paper calls LUQ-Pair. The published LUQ-Pair takes
    the maximum within each other answer and the mean over them: ``luq_sentences``.

    Args:
        ratio: ``(n, n)`` support S in [0, 1], premise first, n >= 1, as from
            ``entailment_ratio``. The diagonal is not looked at.
        reading: ``"code"``: of each pair only the earlier answer as premise, so that
            the order of the answers matters. ``"premise"``: S as it is, the answer as
            the premise. ``"hypothesis"``: the answer as the hypothesis.

    Returns:
        A number from 0 (each is supported by another one) to 1 (none is); 1 for one
        answer, which has no support.

    Raises:
        InputError: The matrix is not square, empty, or holds a number outside [0, 1].
        ConfigurationError: ``reading`` is another word.

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy", LUQ-Pair in the
        authors' code. In the reading ``"premise"`` it is the limit of
        ``1 + tau * snne(S, tau=tau, include_self=False)`` as tau goes to 0.

    Example:
        >>> table = [[1, 0.75], [0.25, 1]]
        >>> luq_pair(table), luq_pair(table, reading="premise")
        (0.25, 0.5)
    """
    if reading not in _READINGS:
        msg = f"expected reading to be one of {[*_READINGS]}, got {reading!r}"
        raise ConfigurationError(msg)
    matrix = _READINGS[reading](_as_ratio(ratio))
    np.fill_diagonal(matrix, 0.0)
    return 1 - math.fsum(matrix.max(axis=1).tolist()) / len(matrix)


def luq_sentences(ratio: ArrayLike, answer_of: ArrayLike) -> float:
    r"""Return LUQ-Pair as published: sentence by sentence.

    A sentence's support in another answer is that of the sentence there which supports
    it most; then the mean over the other answers, the sentences and the answers.

    Args:
        ratio: ``(m, m)`` support S in [0, 1] between all sentences of all answers,
            premise first, m >= 1, as from ``entailment_ratio``.
        answer_of: ``(m,)`` which answer each sentence is in.

    Returns:
        A number from 0 to 1. Where each answer is one sentence it is ``luq``.

    Raises:
        InputError: The matrix is not square, empty, or holds a number outside [0, 1];
            or the answers are not m whole numbers.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs",
        LUQ-Pair.

    Example:
        >>> luq_sentences([[1, 1, 0.5], [0, 1, 0], [1, 0.5, 1]], [0, 0, 1])
        0.375
    """
    matrix = _as_ratio(ratio)
    owners = np.asarray(answer_of)
    if owners.shape != (len(matrix),) or owners.dtype.kind not in "iu":
        msg = (
            f"expected the answers of {len(matrix)} sentences as whole numbers, "
            f"got {owners.dtype} of shape {owners.shape}"
        )
        raise InputError(msg)
    answers = np.unique(owners)
    if len(answers) == 1:
        return 1.0
    return 1 - math.fsum(_support(matrix, owners, answers)) / len(answers)


def _support(matrix: FloatArray, owners: IntArray, answers: IntArray) -> list[float]:
    """Return how far each answer's sentences are supported in the other answers."""
    # best[k, s]: the support of sentence s by the sentence of answer k that helps most.
    best = np.array([matrix[owners == answer].max(axis=0) for answer in answers])
    support: list[float] = []
    for place, answer in enumerate(answers):
        others = np.delete(best[:, owners == answer], place, axis=0)
        support.append(float(others.mean()))
    return support


def _ratio(inputs: MethodInputs) -> FloatArray:
    assert inputs.entailment is not None  # noqa: S101 - FunctionMethod checked it
    return entailment_ratio(inputs.entailment)


def _luq(inputs: MethodInputs) -> float:
    return luq(_ratio(inputs))


def _luq_pair(inputs: MethodInputs) -> float:
    return luq_pair(_ratio(inputs))


LUQ = FunctionMethod(
    name="luq",
    source="Zhang et al. 2024, LUQ: Long-text Uncertainty Quantification for LLMs",
    function=_luq,
    limits=Between(0.0, 1.0),
    needs=frozenset({"entailment"}),
    default_similarity="nli",
)
"""LUQ with one unit an answer."""

LUQ_PAIR = FunctionMethod(
    name="luq_pair",
    source="Nguyen, Payani, Mirzasoleiman 2025, Beyond Semantic Entropy, LUQ-Pair",
    function=_luq_pair,
    limits=Between(0.0, 1.0),
    needs=frozenset({"entailment"}),
    default_similarity="nli",
)
"""LUQ-Pair as in the code of the SNNE paper."""
