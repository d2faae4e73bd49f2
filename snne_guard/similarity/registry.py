"""Similarities by name, and those of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType

from snne_guard.errors import ConfigurationError
from snne_guard.similarity.content import content_f1
from snne_guard.similarity.cross_encoder import DEFAULT_CROSS_ENCODER, CrossEncoder
from snne_guard.similarity.embedding import Embedding
from snne_guard.similarity.exact import exact, normalised, numeric
from snne_guard.similarity.lexical import rouge_l, rouge_l_paper
from snne_guard.similarity.nli import DEFAULT_NLI_MODEL, NLI
from snne_guard.similarity.structured import structured
from snne_guard.types import Similarity

__all__ = ["SIMILARITIES", "resolve_similarity"]

SIMILARITIES: Mapping[str, Similarity] = MappingProxyType(
    {
        "content_f1": content_f1,
        "rouge_l": rouge_l,
        "rouge_l_paper": rouge_l_paper,
        "structured": structured,
        "exact": exact,
        "normalised": normalised,
        "numeric": numeric,
    }
)
"""The similarities of this library by the name that a guard or ``score`` takes."""

_FAMILIES: Mapping[str, Callable[[str], Similarity]] = MappingProxyType(
    {"nli": NLI, "embedding": Embedding, "cross_encoder": CrossEncoder}
)
"""Similarities that a model computes: the name before the colon. The part after it
names the model."""

_DEFAULT_MODELS = {"nli": DEFAULT_NLI_MODEL, "cross_encoder": DEFAULT_CROSS_ENCODER}


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
        'rouge_l_paper', 'structured', 'nli:MODEL', 'embedding:MODEL',
        'cross_encoder:MODEL'], got 'cosine'
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
    if family not in _FAMILIES or not model:
        raise _unknown(name)
    return _FAMILIES[family](model)


def _check_call(similarity: Similarity) -> None:
    """Raise ConfigurationError for what cannot be called as a similarity is."""
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
    known = [*sorted(SIMILARITIES), *(f"{family}:MODEL" for family in _FAMILIES)]
    return ConfigurationError(
        f"expected similarity to be a callable or one of {known}, got {similarity!r}"
    )


def _name_of(similarity: Similarity) -> str:
    for attribute in ("name", "__qualname__"):
        name = getattr(similarity, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(similarity).__qualname__
