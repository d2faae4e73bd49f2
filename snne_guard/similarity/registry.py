"""The similarities by name, and what is asked of a user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.similarity.content import content_f1
from snne_guard.similarity.cross_encoder import DEFAULT_CROSS_ENCODER, CrossEncoder
from snne_guard.similarity.embedding import Embedding
from snne_guard.similarity.exact import exact, normalised, numeric
from snne_guard.similarity.lexical import rouge_l, rouge_l_paper
from snne_guard.similarity.nli import DEFAULT_NLI_MODEL, NLI
from snne_guard.similarity.structured import structured
from snne_guard.similarity.with_question import WithQuestion
from snne_guard.types import FloatArray, Similarity

__all__ = ["FAMILIES", "SIMILARITIES", "checked_matrix", "resolve_similarity"]

SIMILARITIES: Mapping[str, Similarity] = MappingProxyType(
    {
        "content_f1": content_f1,
        "rouge_l": rouge_l,
        "rouge_l_paper": rouge_l_paper,
        "rouge_l+question": WithQuestion(rouge_l, "rouge_l+question"),
        "rouge_l_paper+question": WithQuestion(rouge_l_paper, "rouge_l_paper+question"),
        "structured": structured,
        "exact": exact,
        "normalised": normalised,
        "numeric": numeric,
    }
)
"""The similarities of this library by the name that a guard or ``score`` takes."""

FAMILIES: Mapping[str, Callable[[str], Similarity]] = MappingProxyType(
    {"nli": NLI, "embedding": Embedding, "cross_encoder": CrossEncoder}
)
"""Similarities that a model makes, by the part of the name before the colon; what is
behind it names the model."""

_DEFAULT_MODELS = {"nli": DEFAULT_NLI_MODEL, "cross_encoder": DEFAULT_CROSS_ENCODER}
_TOLERANCE = 1e-9


def resolve_similarity(
    similarity: str | Similarity | None, /
) -> tuple[str, Similarity]:
    """Return the name and the callable of a similarity option.

    Args:
        similarity: A key of ``SIMILARITIES``, ``"nli:MODEL"``, ``"embedding:MODEL"`` or
            ``"cross_encoder:MODEL"``, a callable, or None for ``"content_f1"``. A
            callable's name is its attribute ``name``, else its ``__qualname__``.

    Raises:
        ConfigurationError: It is neither a known name nor can it be called as a
            similarity is.

    Example:
        >>> resolve_similarity(None)[0]
        'content_f1'
        >>> resolve_similarity("nli:microsoft/deberta-base-mnli")[0]
        'nli:microsoft/deberta-base-mnli'
        >>> resolve_similarity("cosine")
        Traceback (most recent call last):
        ...
        snne_guard.errors.ConfigurationError: expected similarity to be a callable or
        one of ['content_f1', 'exact', 'normalised', 'numeric', 'rouge_l',
        'rouge_l+question', 'rouge_l_paper', 'rouge_l_paper+question', 'structured',
        'nli:MODEL', 'embedding:MODEL', 'cross_encoder:MODEL'], got 'cosine'
    """
    if similarity is None:
        similarity = "content_f1"
    if isinstance(similarity, str):
        if similarity in SIMILARITIES:
            return similarity, SIMILARITIES[similarity]
        similarity = _of_family(similarity)
    _check_call(similarity)
    return _name_of(similarity), similarity


@cache
def _of_family(name: str) -> Similarity:
    family, _, model = name.partition(":")
    model = model or _DEFAULT_MODELS.get(family, "")
    if family not in FAMILIES or not model:
        raise _unknown(name)
    return FAMILIES[family](model)


def _check_call(similarity: Similarity) -> None:
    """Refuse what cannot be called as a similarity is, as far as can be seen."""
    given: object = similarity
    if not callable(given):
        raise _unknown(given)
    call = getattr(similarity, "__call__", similarity)  # noqa: B004 - of objects, too
    if any(map(inspect.iscoroutinefunction, (similarity, call))):
        msg = f"expected a plain function, got {_name_of(similarity)}, which is async"
        raise ConfigurationError(msg)
    try:
        takes = inspect.signature(similarity)
    except (TypeError, ValueError):  # of code that is not Python's
        return
    try:
        takes.bind([], question=None)
    except TypeError as error:
        msg = (
            "expected a similarity that is called as similarity(texts, question=None), "
            f"got {_name_of(similarity)}{takes}"
        )
        raise ConfigurationError(msg) from error


def _unknown(similarity: object) -> ConfigurationError:
    known = [*sorted(SIMILARITIES), *(f"{family}:MODEL" for family in FAMILIES)]
    return ConfigurationError(
        f"expected similarity to be a callable or one of {known}, got {similarity!r}"
    )


def _name_of(similarity: Similarity) -> str:
    for attribute in ("name", "__qualname__"):
        found = getattr(similarity, attribute, None)
        if isinstance(found, str) and found:
            return found
    return type(similarity).__qualname__


def checked_matrix(matrix: Any, n: int, /) -> FloatArray:  # noqa: ANN401 - unchecked
    """Return what a similarity gave as a clean matrix, or say what is wrong with it.

    Args:
        matrix: What the callable returned.
        n: How many texts it was given.

    Returns:
        A new ``(n, n)`` float64 matrix, in [0, 1] and symmetric up to what rounding by
        1e-9 explains, with diagonal 1: a text is itself, whatever the callable says.

    Raises:
        InputError: The shape is another one, or a value is no finite number, outside
            [0, 1], or not the same in both directions.

    Example:
        >>> checked_matrix([[1, 0.5], [0.5, 1]], 2)
        array([[1. , 0.5],
               [0.5, 1. ]])
        >>> checked_matrix([[1, -0.5], [-0.5, 1]], 2)
        Traceback (most recent call last):
        ...
        snne_guard.errors.InputError: expected a similarity in [0, 1], got -0.5
    """
    try:
        checked = np.array(matrix, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected a similarity matrix of numbers, got {type(matrix).__name__}"
        raise InputError(msg) from error
    if checked.shape != (n, n):
        msg = f"expected a similarity matrix of shape {(n, n)}, got {checked.shape}"
        raise InputError(msg)
    if not np.isfinite(checked).all():
        msg = "expected finite numbers from a similarity, got NaN or infinity"
        raise InputError(msg)
    outside = checked[(checked < -_TOLERANCE) | (checked > 1 + _TOLERANCE)]
    if outside.size:
        msg = f"expected a similarity in [0, 1], got {float(outside[0])}"
        raise InputError(msg)
    if np.abs(checked - checked.T).max(initial=0.0) > _TOLERANCE:
        msg = "expected a symmetric similarity matrix, got one that is not"
        raise InputError(msg)
    np.fill_diagonal(checked, 1.0)
    return checked.clip(0.0, 1.0)
