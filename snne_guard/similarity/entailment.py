"""What an NLI model's probabilities say of two texts: same meaning, support, weight."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import BoolArray, FloatArray

__all__ = ["edge_weights", "entail_similarity", "entailment_ratio", "equivalence"]

_CONTRADICTION, _NEUTRAL, _ENTAILMENT = range(3)
_ITSELF = (0.0, 0.0, 1.0)
# Half precision and numbers rounded for a file leave sums that are not quite 1.
_SLACK = 1e-2


def equivalence(probabilities: ArrayLike, *, strict: bool = True) -> BoolArray:
    """Return which texts mean the same, from what each says of the other.

    Args:
        probabilities: ``(n, n, 3)``: premise, hypothesis, then contradiction, neutral,
            entailment. The diagonal is not looked at.
        strict: Whether each must entail the other, as in the paper's code. Else no
            contradiction in either direction and not two neutrals are enough.

    Returns:
        ``(n, n)`` booleans, symmetric, True on the diagonal. The relation need not be
        transitive. The likeliest class counts; of equal ones the first.

    Raises:
        InputError: They are not probabilities of that shape.

    Source:
        Farquhar et al. 2024, "Detecting hallucinations in large language models using
        semantic entropy" (strict); Kuhn et al. 2023, "Semantic Uncertainty" (not).

    Example:
        >>> one_way = [[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]]
        >>> equivalence(one_way)[0, 1], equivalence(one_way, strict=False)[0, 1]
        (np.False_, np.True_)
    """
    label = _checked(probabilities).argmax(axis=2)
    entailed, neutral = label == _ENTAILMENT, label == _NEUTRAL
    possible = entailed if strict else label != _CONTRADICTION
    same: BoolArray = possible & possible.T & ~(neutral & neutral.T)
    return same


def entail_similarity(probabilities: ArrayLike, *, neutral: float = 0.0) -> FloatArray:
    """Return how far texts entail each other, as a similarity.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.
        neutral: What a neutral pair is worth, in [0, 1]: 0 as in the paper, 0.5 as in
            the graphs of kernel language entropy.

    Returns:
        ``(n, n)`` mean of both directions' probability of entailment, in [0, 1], 1 on
        the diagonal: a text is itself, whatever the model says.

    Raises:
        InputError: They are not probabilities of that shape.
        ConfigurationError: ``neutral`` is outside [0, 1].

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
    if not 0 <= neutral <= 1:
        msg = f"expected neutral in [0, 1], got {neutral!r}"
        raise ConfigurationError(msg)
    checked = _checked(probabilities)
    one_way = checked[:, :, _ENTAILMENT]
    if neutral:
        one_way = one_way + neutral * checked[:, :, _NEUTRAL]
    both: FloatArray = ((one_way + one_way.T) / 2).clip(0.0, 1.0)
    return both


def entailment_ratio(probabilities: ArrayLike) -> FloatArray:
    """Return how much a text supports another one, neutral left out of account.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.

    Returns:
        ``(n, n)`` matrix S, entailment / (entailment + contradiction), in [0, 1]:
        premise first, so not symmetric. 1 on the diagonal; 0.5 where all is neutral.

    Raises:
        InputError: They are not probabilities of that shape.

    Source:
        Zhang et al. 2024, "LUQ: Long-text Uncertainty Quantification for LLMs".

    Example:
        >>> entailment_ratio([[[0, 0, 1], [0.1, 0.6, 0.3]], [[0, 1, 0], [0, 0, 1]]])
        array([[1.  , 0.75],
               [0.5 , 1.  ]])
    """
    checked = _checked(probabilities)
    entailed, contradicted = checked[:, :, _ENTAILMENT], checked[:, :, _CONTRADICTION]
    decided = entailed + contradicted
    ratio = np.full_like(decided, 0.5)
    np.divide(entailed, decided, out=ratio, where=decided > 0)
    return ratio


def edge_weights(
    probabilities: ArrayLike, *, weights: Literal["manual", "confidence"] = "manual"
) -> FloatArray:
    """Return the weights of the graph that kernel language entropy is computed on.

    Args:
        probabilities: ``(n, n, 3)`` as for ``equivalence``.
        weights: ``"manual"``: each direction adds 1 for entailment, 0.5 for neutral, 0
            for contradiction, whichever is likeliest. ``"confidence"``: each adds the
            probability of its likeliest class, which ties contradictory texts as
            strongly as equal ones; for comparison with the authors' code alone.

    Returns:
        ``(n, n)`` symmetric weights in [0, 2], 0 on the diagonal.

    Raises:
        InputError: They are not probabilities of that shape.
        ConfigurationError: ``weights`` is another word.

    Source:
        Nikitin et al. 2024, "Kernel Language Entropy"; the authors' code.

    Example:
        >>> edge_weights([[[0, 0, 1], [0.1, 0.2, 0.7]], [[0.1, 0.8, 0.1], [0, 0, 1]]])
        array([[0. , 1.5],
               [1.5, 0. ]])
    """
    if weights not in ("manual", "confidence"):
        msg = f"expected weights 'manual' or 'confidence', got {weights!r}"
        raise ConfigurationError(msg)
    checked, manual = _checked(probabilities), weights == "manual"
    one_way = checked.argmax(axis=2) / 2 if manual else checked.max(axis=2)
    both: FloatArray = one_way + one_way.T
    np.fill_diagonal(both, 0.0)
    return both


def _checked(probabilities: ArrayLike) -> FloatArray:
    """Return a copy in which every text entails itself, or say what is wrong."""
    try:
        checked: FloatArray = np.array(probabilities, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected probabilities as numbers, got {type(probabilities).__name__}"
        raise InputError(msg) from error
    n = len(checked) if checked.ndim else 0
    if checked.shape != (n, n, 3):
        msg = f"expected (n, n, 3) probabilities, got shape {checked.shape}"
        raise InputError(msg)
    every = np.arange(n)
    checked[every, every] = _ITSELF
    # Negated, so that NaN is wrong too.
    wrong = ~((checked >= -_SLACK) & (checked <= 1 + _SLACK)).all(axis=2)
    wrong |= ~(np.abs(checked.sum(axis=2) - 1) <= _SLACK)
    if wrong.any():
        i, j = (int(index) for index in np.argwhere(wrong)[0])
        msg = (
            "expected probabilities of contradiction, neutral and entailment that add "
            f"up to 1, got {checked[i, j].tolist()} at ({i}, {j})"
        )
        raise InputError(msg)
    return checked.clip(0.0, 1.0, out=checked)
