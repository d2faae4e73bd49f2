"""The methods by name, and what each runs on by default."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.density import SEMANTIC_DENSITY
from snne_guard.scorers.eigen_score import EIGEN_SCORE
from snne_guard.scorers.entropy import DSE, NE, NUM_SET, SE, VOTE_SHARE
from snne_guard.scorers.graph import DEG, ECCEN, LEX_SIM, SUM_EIGV
from snne_guard.scorers.kle import KLE_FULL, KLE_HEAT, KLE_MATERN
from snne_guard.scorers.likelihood import (
    ANSWER_LENGTH,
    COCOA_MSP,
    COCOA_PPL,
    PERPLEXITY,
    SEQUENCE_PROBABILITY,
)
from snne_guard.scorers.luq import LUQ, LUQ_PAIR
from snne_guard.scorers.method import LOGPROBS, FunctionMethod
from snne_guard.scorers.p_true import P_TRUE
from snne_guard.scorers.sar import SAR, SENT_SAR, TOKEN_SAR
from snne_guard.scorers.snne import SNNE, WSNNE
from snne_guard.types import Method, Similarity

__all__ = [
    "METHODS",
    "anchor_for",
    "check_similarity",
    "compares_answers",
    "default_similarity",
    "needs_logprobs",
    "resolve_method",
    "without_logprobs",
]

_ALL = (
    *(SNNE, WSNNE),
    *(SE, DSE, NE, NUM_SET),
    *(LEX_SIM, SUM_EIGV, DEG, ECCEN),
    *(KLE_HEAT, KLE_MATERN, KLE_FULL),
    *(LUQ, LUQ_PAIR),
    *(SAR, TOKEN_SAR, SENT_SAR),
    *(EIGEN_SCORE, P_TRUE),
    *(SEMANTIC_DENSITY, COCOA_MSP, COCOA_PPL, VOTE_SHARE),
    *(SEQUENCE_PROBABILITY, PERPLEXITY, ANSWER_LENGTH),
)

METHODS: Mapping[str, FunctionMethod] = MappingProxyType(
    {method.name: method for method in _ALL}
)
"""Every method of this library by the name that a guard or ``score`` takes."""

_STAND_INS = {"wsnne": "snne", "se": "dse"}

_ANCHOR = 0.7
_ANCHORED_SIMILARITY = "content_f1"

_CLUSTERS = {"cluster_ids"}
_ENTAILMENT = {"entailment", "main_entailment"}
_COMPARISON = {"similarity", "main_similarity", "graph", *_CLUSTERS, *_ENTAILMENT}

_PARTS = ("name", "needs", "white_box", "source", "compute", "bounds", "uncertainty")


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return the method that an option means.

    Args:
        method: A key of ``METHODS``, a ``Method`` of your own, or ``"auto"``.
        logprobs: Whether token log-probabilities are at hand: ``"auto"`` is WSNNE with
            them and SNNE without.

    Raises:
        ConfigurationError: The name is unknown, or your own method lacks a part.

    Example:
        >>> resolve_method("auto", logprobs=False).name
        'snne'
    """
    if not isinstance(method, str):
        _check_parts(method)
        return method
    name = ("wsnne" if logprobs else "snne") if method == "auto" else method
    if name not in METHODS:
        msg = f"expected method 'auto', a Method or one of {[*METHODS]}, got {name!r}"
        raise ConfigurationError(msg)
    return METHODS[name]


def without_logprobs(method: Method, /) -> Method | None:
    """Return what stands in for a method whose log-probabilities are missing.

    SNNE stands in for WSNNE and DSE for SE, each on the same scale.

    Returns:
        The other method; None if there is none.

    Example:
        >>> without_logprobs(METHODS["wsnne"]).name
        'snne'
    """
    # A method of your own with the name of one of ours is another method.
    if METHODS.get(method.name) is not method or method.name not in _STAND_INS:
        return None
    return METHODS[_STAND_INS[method.name]]


def needs_logprobs(method: Method, /) -> bool:
    """Return whether a method needs token log-probabilities."""
    return not LOGPROBS.isdisjoint(method.needs)


def compares_answers(method: Method, /) -> bool:
    """Return whether a method looks at how the answers relate to one another."""
    return not _COMPARISON.isdisjoint(method.needs)


def default_similarity(method: Method, /) -> str:
    """Return the name of the similarity that a method runs on if none is given.

    Example:
        >>> default_similarity(METHODS["snne"])
        'content_f1'
    """
    name: str = getattr(method, "default_similarity", "rouge_l")
    return name


def anchor_for(method: Method, similarity_name: str, /) -> float:
    """Return the share of weight on the delivered answer where that is a member.

    It is 0.7 for SNNE and WSNNE on ``content_f1``, by measurement, and else 0.

    Example:
        >>> (
        ...     anchor_for(METHODS["snne"], "content_f1"),
        ...     anchor_for(METHODS["snne"], "nli"),
        ... )
        (0.7, 0.0)
    """
    anchors = "anchor" in getattr(method, "options", ())
    return _ANCHOR if anchors and similarity_name == _ANCHORED_SIMILARITY else 0.0


def check_similarity(method: Method, similarity: Similarity, /, *, name: str) -> None:
    """Check that a similarity can give what a method needs.

    Raises:
        ConfigurationError: The method needs groups of equal meaning or probabilities
            of entailment, and the similarity has no ``equivalent`` or
            ``probabilities``.
    """
    for needs, attribute, example in (
        (_CLUSTERS, "equivalent", "exact"),
        (_ENTAILMENT, "probabilities", "nli"),
    ):
        found = callable(getattr(similarity, attribute, None))
        if not needs.isdisjoint(method.needs) and not found:
            msg = (
                f"method {method.name!r} needs a similarity with a method "
                f"{attribute!r}, such as {example!r}, got {name!r}"
            )
            raise ConfigurationError(msg)


def _check_parts(method: Method) -> None:
    lacks = [part for part in _PARTS if not hasattr(method, part)]
    if lacks:
        msg = (
            f"expected method to be a text or a Method with {', '.join(_PARTS)}; "
            f"{type(method).__name__} lacks {', '.join(lacks)}"
        )
        raise ConfigurationError(msg)
