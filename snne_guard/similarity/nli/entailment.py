"""What the probabilities of an NLI model say of two texts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from snne_guard.errors import ConfigurationError
from snne_guard.types import BoolArray, FloatArray

__all__ = ["CLASSES", "class_columns", "entail_similarity", "equivalence"]

CLASSES = ("contradiction", "neutral", "entailment")
"""The order of the last axis of every table of NLI probabilities."""

_CONTRADICTION, _NEUTRAL, _ENTAILMENT = range(3)


def equivalence(probabilities: FloatArray, *, strict: bool = True) -> BoolArray:
    """Return which texts mean the same, from what each says of the other.

    Args:
        probabilities: ``(n, n, 3)``: premise, hypothesis, then contradiction, neutral,
            entailment. The diagonal is not looked at.
        strict: Whether each must entail the other, as in the paper's code. Else no
            contradiction in either direction and not two neutrals are enough.

    Returns:
        ``(n, n)`` booleans, symmetric, True on the diagonal; not always transitive.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy" (strict); Kuhn et al. 2023, "Semantic Uncertainty" (not).

    Example:
        >>> one_way = [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]]
        >>> equivalence(one_way)[0, 1], equivalence(one_way, strict=False)[0, 1]
        (np.False_, np.True_)
    """
    label = np.asarray(probabilities).argmax(axis=2)
    neutral = label == _NEUTRAL
    possible = label == _ENTAILMENT if strict else label != _CONTRADICTION
    same: BoolArray = possible & possible.T & ~(neutral & neutral.T)
    np.fill_diagonal(same, val=True)
    return same


def entail_similarity(probabilities: FloatArray) -> FloatArray:
    """Return how far texts entail each other, as a similarity.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.

    Returns:
        ``(n, n)`` mean of both directions' probability of entailment, in [0, 1], 1 on
        the diagonal.

    Source:
        Nguyen, Payani, Mirzasoleiman 2025, "Beyond Semantic Entropy", the similarity
        ``entail``; that it is the mean of both directions is in the authors' code.

    Example:
        >>> entail_similarity(
        ...     [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.3, 0.6, 0.1], [0] * 3]]
        ... )
        array([[1. , 0.4],
               [0.4, 1. ]])
    """
    entailed = np.asarray(probabilities, dtype=np.float64)[:, :, _ENTAILMENT]
    matrix: FloatArray = ((entailed + entailed.T) / 2).clip(0.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def class_columns(id2label: Mapping[int, str], *, model: str) -> tuple[int, int, int]:
    """Return which output is contradiction, which neutral and which entailment.

    Raises:
        ConfigurationError: The names in the model's configuration do not tell.

    Example:
        >>> class_columns({0: "ENTAILMENT", 1: "neutral", 2: "Contra"}, model="m")
        (2, 1, 0)
    """
    names = [str(id2label[place]) for place in sorted(id2label)]
    columns = {
        kind: place
        for place, name in enumerate(names)
        for kind in CLASSES
        if name.lower()[:6] == kind[:6]
    }
    if not len(columns) == len(names) == len(CLASSES):
        msg = (
            f"expected the outputs of {model!r} to be {CLASSES} in some order, got "
            f"{names}; where only the names are missing, write them into id2label of "
            "the model's config.json"
        )
        raise ConfigurationError(msg)
    return columns["contradiction"], columns["neutral"], columns["entailment"]
