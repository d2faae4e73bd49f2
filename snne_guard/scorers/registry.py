"""The methods by name; a new one is a module of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.anchored import ANCHORED_SNNE, ANCHORED_WSNNE
from snne_guard.scorers.cocoa import COCOA_MSP, COCOA_PPL
from snne_guard.scorers.density import SEMANTIC_DENSITY
from snne_guard.scorers.eigen_score import EIGEN_SCORE
from snne_guard.scorers.entropy import DSE, NE, NUM_SET, SE
from snne_guard.scorers.kernel import KLE_FULL, KLE_HEAT, KLE_MATERN
from snne_guard.scorers.lex_sim import LEX_SIM
from snne_guard.scorers.likelihood import (
    ANSWER_LENGTH,
    MEAN_SEQUENCE_PROBABILITY,
    PERPLEXITY,
    SEQUENCE_PROBABILITY,
)
from snne_guard.scorers.luq import LUQ, LUQ_PAIR
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.mixture import Mixture
from snne_guard.scorers.p_true import P_TRUE
from snne_guard.scorers.readings import READINGS
from snne_guard.scorers.sar import SAR, SENT_SAR, TOKEN_SAR
from snne_guard.scorers.snne import SNNE, WSNNE
from snne_guard.scorers.spectral import DEG, ECCEN, SUM_EIGV
from snne_guard.scorers.vote import VOTE_SHARE
from snne_guard.types import Method

__all__ = [
    "METHODS",
    "WITHOUT_LOGPROBS",
    "default_similarity",
    "resolve_method",
    "without_logprobs",
]

_ALL = (
    *(SNNE, WSNNE),
    *(ANCHORED_SNNE, ANCHORED_WSNNE),
    *(SE, DSE, NE, NUM_SET),
    *(LEX_SIM, VOTE_SHARE),
    *(SUM_EIGV, DEG, ECCEN),
    *(LUQ, LUQ_PAIR),
    *(KLE_HEAT, KLE_MATERN, KLE_FULL),
    *(SAR, TOKEN_SAR, SENT_SAR),
    *(EIGEN_SCORE, P_TRUE),
    *(SEMANTIC_DENSITY, COCOA_MSP, COCOA_PPL),
    *(SEQUENCE_PROBABILITY, MEAN_SEQUENCE_PROBABILITY, PERPLEXITY, ANSWER_LENGTH),
)

METHODS: Mapping[str, FunctionMethod] = MappingProxyType(
    {method.name: method for method in _ALL}
)
"""The methods of this library by the name that a guard or ``score`` takes."""

WITHOUT_LOGPROBS: Mapping[str, str] = MappingProxyType(
    {"wsnne": "snne", "se": "dse", "anchored_wsnne": "anchored_snne"}
)
"""What scores in a method's place, on the same scale, where log-probabilities are
missing."""


def default_similarity(method: Method, /) -> str:
    """Return the name of the similarity that a method takes where none is given.

    Example:
        >>> default_similarity(METHODS["snne"])
        'content_f1'
    """
    own: str = getattr(method, "default_similarity", "rouge_l")
    return own


def without_logprobs(method: Method, /) -> Method | None:
    """Return what scores without log-probabilities in a method's place, if anything.

    A method of the user's own that has the name of one of ours is another method.

    Example:
        >>> found = without_logprobs(METHODS["se"])
        >>> found is METHODS["dse"], without_logprobs(METHODS["dse"])
        (True, None)
    """
    if METHODS.get(method.name) is not method or method.name not in WITHOUT_LOGPROBS:
        return None
    return METHODS[WITHOUT_LOGPROBS[method.name]]


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return the method that an option means.

    Args:
        method: A key of ``METHODS`` or ``READINGS``, several of them with ``+``
            between, which is a :class:`Mixture`, ``"auto"`` or a method of the user's
            own.
        logprobs: Whether log-probabilities are at hand, which settles ``"auto"``:
            WSNNE with them, SNNE without.

    Raises:
        ConfigurationError: The name is unknown, a method to mix has no limits, or one
            of the user's own lacks a part.

    Example:
        >>> resolve_method("auto", logprobs=False).name
        'snne'
        >>> resolve_method("snne+anchored_snne", logprobs=False).name
        'snne+anchored_snne'
    """
    if not isinstance(method, str):
        _check_parts(method)
        return method
    name = method
    if name == "auto":
        name = "wsnne" if logprobs else "snne"
    if "+" in name:
        parts = name.split("+")
        return Mixture(tuple(resolve_method(part, logprobs=logprobs) for part in parts))
    if name in METHODS:
        return METHODS[name]
    if name in READINGS:
        return READINGS[name]
    msg = (
        f"expected method 'auto', a Method, one of {[*METHODS]} or one of the readings "
        f"{[*READINGS]}, got {name!r}"
    )
    raise ConfigurationError(msg)


_PARTS = ("name", "needs", "white_box", "source", "compute", "bounds", "uncertainty")


def _check_parts(method: Method) -> None:
    lacks = [part for part in _PARTS if not hasattr(method, part)]
    if lacks:
        msg = (
            f"a method of your own has {', '.join(_PARTS)}; {type(method).__name__} "
            f"lacks {', '.join(lacks)}. FunctionMethod makes one from a function"
        )
        raise ConfigurationError(msg)
