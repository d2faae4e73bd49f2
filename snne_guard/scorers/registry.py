"""The methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.eigen_score import EIGEN_SCORE
from snne_guard.scorers.entailment import LUQ, LUQ_PAIR, SEMANTIC_DENSITY
from snne_guard.scorers.entropy import DSE, NE, NUM_SET, SE, VOTE_SHARE
from snne_guard.scorers.graph import DEG, ECCEN, LEX_SIM, SUM_EIGV
from snne_guard.scorers.kle import KLE_FULL, KLE_HEAT, KLE_MATERN
from snne_guard.scorers.likelihood import (
    ANSWER_LENGTH,
    COCOA_MSP,
    COCOA_PPL,
    P_TRUE,
    PERPLEXITY,
    SEQUENCE_PROBABILITY,
)
from snne_guard.scorers.method import Method
from snne_guard.scorers.sar import SAR, SENT_SAR, TOKEN_SAR
from snne_guard.scorers.snne import SNNE, WSNNE

__all__ = ["METHODS", "resolve_method"]

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

METHODS: Mapping[str, Method] = MappingProxyType({one.name: one for one in _ALL})
"""Every method of this library by the name that a guard or ``score`` takes."""


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return the method that an option means.

    Args:
        method: A key of ``METHODS``, a ``Method`` of your own, or ``"auto"``.
        logprobs: Whether token log-probabilities are at hand: ``"auto"`` is WSNNE with
            them and SNNE without.

    Raises:
        ConfigurationError: The name is unknown, or it is no ``Method``.

    Example:
        >>> resolve_method("auto", logprobs=False).name
        'snne'
    """
    if isinstance(method, Method):
        return method
    name = ("wsnne" if logprobs else "snne") if method == "auto" else method
    names = [*METHODS]
    if name not in names:
        msg = f"expected method 'auto', a Method or one of {names}, got {name!r}"
        raise ConfigurationError(msg)
    return METHODS[name]
