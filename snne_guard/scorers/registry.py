"""The methods by name; a new one is a module of its own and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from snne_guard.errors import ConfigurationError
from snne_guard.scorers.snne import SNNE, WSNNE
from snne_guard.types import Method

__all__ = ["METHODS", "resolve_method"]

METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for method in (SNNE, WSNNE)}
)
"""The methods of this library by the name that a guard or ``score`` takes."""


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return the method that an option means.

    Args:
        method: A key of ``METHODS``, ``"auto"`` or a method of the user's own.
        logprobs: Whether log-probabilities are at hand, which settles ``"auto"``:
            WSNNE with them, SNNE without.

    Raises:
        ConfigurationError: The name is unknown.

    Example:
        >>> resolve_method("auto", logprobs=False).name
        'snne'
    """
    if not isinstance(method, str):
        return method
    name = method
    if name == "auto":
        name = "wsnne" if logprobs else "snne"
    if name not in METHODS:
        msg = f"expected method 'auto', a Method or one of {[*METHODS]}, got {name!r}"
        raise ConfigurationError(msg)
    return METHODS[name]
