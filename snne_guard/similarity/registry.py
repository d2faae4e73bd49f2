"""Similarities by name, and the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import MappingProxyType

from snne_guard.checks import check_function
from snne_guard.errors import ConfigurationError, MissingExtraError
from snne_guard.similarity.content import content_f1
from snne_guard.similarity.cross_encoder import DEFAULT_CROSS_ENCODER, CrossEncoder
from snne_guard.similarity.embedding import Embedding
from snne_guard.similarity.lexical import rouge_l, rouge_l_paper
from snne_guard.similarity.local_models import name_of
from snne_guard.similarity.matches import exact, normalised, numeric
from snne_guard.similarity.nli import DEFAULT_NLI_MODEL, NLI
from snne_guard.types import Similarity

SIMILARITIES: Mapping[str, Similarity] = MappingProxyType(
    {
        "content_f1": content_f1,
        "rouge_l": rouge_l,
        "rouge_l_paper": rouge_l_paper,
        "exact": exact,
        "normalised": normalised,
        "numeric": numeric,
    }
)
"""The similarities of this library by the name that a guard or ``score`` takes."""

_FAMILIES: Mapping[str, tuple[Callable[[str], Similarity], str]] = {
    "nli": (NLI, DEFAULT_NLI_MODEL),
    "embedding": (Embedding, ""),
    "cross_encoder": (CrossEncoder, DEFAULT_CROSS_ENCODER),
}
"""Those of a model, by the name before the colon, each with its default model."""


def resolve_similarity(
    similarity: str | Similarity | None, /
) -> tuple[str, Similarity]:
    """Return the name and the callable of a similarity option.

    Args:
        similarity: A key of ``SIMILARITIES``, ``"nli:MODEL"``, ``"embedding:MODEL"`` or
            ``"cross_encoder:MODEL"``, a callable, or None for ``"content_f1"``. A
            callable's name is its attribute ``name``, else its ``__qualname__``.

    Raises:
        ConfigurationError: It is neither a known name nor a callable that takes a
            similarity's arguments.
        MissingExtraError: What runs such models is not installed. Models themselves are
            loaded at first use.

    Example:
        >>> resolve_similarity("nli:microsoft/deberta-base-mnli")[0]
        'nli:microsoft/deberta-base-mnli'
    """
    if similarity is None:
        similarity = "content_f1"
    if isinstance(similarity, str):
        if similarity in SIMILARITIES:
            return similarity, SIMILARITIES[similarity]
        similarity = _of_a_model(similarity)
    check_function(similarity, what="similarity")
    name = name_of(similarity, "name")
    try:
        inspect.signature(similarity).bind([], question=None)
    except (TypeError, ValueError) as error:
        msg = f"expected {name} to take (texts, question=None): {error}"
        raise ConfigurationError(msg) from error
    return name, similarity


def _of_a_model(name: str) -> Similarity:
    family, _, model = name.partition(":")
    make, default = _FAMILIES.get(family, (None, ""))
    if make is None or not (model or default):
        known = [*sorted(SIMILARITIES), *(f"{family}:MODEL" for family in _FAMILIES)]
        msg = f"expected similarity to be a callable or one of {known}, got {name!r}"
        raise ConfigurationError(msg)
    if find_spec("sentence_transformers") is None:
        extra = "embeddings" if family == "embedding" else "nli"
        needed = f"sentence-transformers (for {name})"
        raise MissingExtraError(needed, extra=extra)
    return make(model or default)
