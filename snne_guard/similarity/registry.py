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

__all__ = ["FAMILIES", "SIMILARITIES", "checked_similarity", "resolve_similarity"]

SIMILARITIES: Mapping[str, Similarity] = MappingProxyType(
    {
        "rouge_l": rouge_l,
        "rouge_l_paper": rouge_l_paper,
        "rouge_l+question": WithQuestion(rouge_l, "rouge_l+question"),
        "rouge_l_paper+question": WithQuestion(rouge_l_paper, "rouge_l_paper+question"),
        "content_f1": content_f1,
        "structured": structured,
        "exact": exact,
        "normalised": normalised,
        "numeric": numeric,
    }
)
"""The similarities of this library by the name that a guard or ``score`` takes."""


@cache
def _nli(model: str | None) -> Similarity:
    return NLI(model or DEFAULT_NLI_MODEL)


@cache
def _cross_encoder(model: str | None) -> Similarity:
    return CrossEncoder(model or DEFAULT_CROSS_ENCODER)


@cache
def _embedding(model: str | None) -> Similarity:
    if model is None:
        msg = "expected embedding:MODEL, the name of a sentence-transformers model"
        raise ConfigurationError(msg)
    return Embedding(model)


FAMILIES: Mapping[str, Callable[[str | None], Similarity]] = MappingProxyType(
    {"nli": _nli, "embedding": _embedding, "cross_encoder": _cross_encoder}
)
"""Similarities that a model makes, by the part of the name before the colon; what is
behind it names the model. The same name gives the same object, so that a model is
loaded once."""

_DEFAULT = "rouge_l"
_TOLERANCE = 1e-9


def resolve_similarity(
    similarity: str | Similarity | None, /
) -> tuple[str, Similarity]:
    """Return the name and the callable of a similarity option.

    Args:
        similarity: A key of ``SIMILARITIES``, a callable, or None for ``"rouge_l"``.
            A callable's name is its attribute ``name`` where that is a text, else
            its ``__qualname__`` or its type's.

    Raises:
        ConfigurationError: It is neither a known name nor callable.

    Example:
        >>> resolve_similarity(None)[0]
        'rouge_l'
        >>> resolve_similarity("cosine")
        Traceback (most recent call last):
        ...
        snne_guard.errors.ConfigurationError: expected similarity to be a callable or
        one of ['content_f1', 'exact', 'normalised', 'numeric', 'rouge_l',
        'rouge_l+question', 'rouge_l_paper', 'rouge_l_paper+question', 'structured',
        'nli:MODEL', 'embedding:MODEL', 'cross_encoder:MODEL'], got 'cosine'
    """
    if similarity is None:
        similarity = _DEFAULT
    if isinstance(similarity, str) and similarity in SIMILARITIES:
        return similarity, SIMILARITIES[similarity]
    if isinstance(similarity, str):
        similarity = _of_family(similarity)
    if not callable(similarity):
        raise _unknown(similarity)
    _check_call(similarity)
    return _name_of(similarity), similarity


def _check_call(similarity: Similarity) -> None:
    """Refuse what cannot be called as a similarity is, as far as can be seen."""
    call = getattr(similarity, "__call__", similarity)  # noqa: B004 - of objects, too
    if any(map(inspect.iscoroutinefunction, (similarity, call))):
        msg = f"a similarity is a plain function; {_name_of(similarity)} is async"
        raise ConfigurationError(msg)
    try:
        takes = inspect.signature(similarity)
    except (TypeError, ValueError):  # of code that is not Python's
        return
    try:
        takes.bind([], question=None)
    except TypeError as error:
        msg = (
            "a similarity is called with a list of texts, and the question by name: "
            f"similarity(texts, question=None). {_name_of(similarity)}{takes} cannot be"
        )
        raise ConfigurationError(msg) from error


def _of_family(name: str) -> Similarity:
    family, _, model = name.partition(":")
    make = FAMILIES.get(family)
    if make is None:
        raise _unknown(name)
    return make(model or None)


def _unknown(similarity: object) -> ConfigurationError:
    known = [*sorted(SIMILARITIES), *(f"{family}:MODEL" for family in FAMILIES)]
    return ConfigurationError(
        f"expected similarity to be a callable or one of {known}, got {similarity!r}"
    )


def _name_of(similarity: Similarity) -> str:
    for candidate in (
        getattr(similarity, "name", None),
        getattr(similarity, "__qualname__", None),
    ):
        if isinstance(candidate, str) and candidate:
            return candidate
    return type(similarity).__qualname__


def checked_similarity(matrix: Any, n: int, /) -> FloatArray:  # noqa: ANN401 - unchecked
    """Return what a similarity gave as a clean matrix, or say what is wrong with it.

    Args:
        matrix: What the callable returned.
        n: How many texts it was given.

    Returns:
        A new ``(n, n)`` float64 matrix, clipped to [0, 1] where rounding left it by
        at most 1e-9, with diagonal 1: a text is itself, whatever the callable says.

    Raises:
        InputError: The shape is another one, or a value is no number, NaN, or
            outside [0, 1].

    Example:
        >>> checked_similarity([[1, 0.5], [0.5, 1]], 2)
        array([[1. , 0.5],
               [0.5, 1. ]])
        >>> checked_similarity([[1, -0.5], [-0.5, 1]], 2)
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
    if np.isnan(checked).any():
        msg = "expected a similarity matrix without NaN, got NaN"
        raise InputError(msg)
    outside = checked[(checked < -_TOLERANCE) | (checked > 1 + _TOLERANCE)]
    if outside.size:
        msg = f"expected a similarity in [0, 1], got {float(outside[0])}"
        raise InputError(msg)
    checked.clip(0.0, 1.0, out=checked)
    np.fill_diagonal(checked, 1.0)
    return checked
