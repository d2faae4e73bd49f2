"""Several methods as one: the mean of their uncertainties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Method, MethodInputs

__all__ = ["Mixture"]

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Mixture:
    """A ``Method`` that is the weighted mean of the ``u`` of others.

    Each part is mapped to [0, 1] first, so that what has another unit or another range
    can be added. ``"snne+anchored_snne"`` is the name of a mixture of two by the same
    weights, wherever a method has a name.

    Attributes:
        methods: Two methods or more; each has limits.
        weights: Their weights, above 0, in the same order; None for equal ones.

    Raises:
        ConfigurationError: There are fewer than two methods, one occurs twice, one has
            no limits, or the weights are not as many numbers above 0.

    Example:
        >>> from snne_guard import score
        >>> from snne_guard.scorers import METHODS
        >>> both = Mixture((METHODS["snne"], METHODS["anchored_snne"]))
        >>> answers = ["Paris", "Paris", "Lyon"]
        >>> score(answers, method=both) == score(answers, method=both.name)
        True
    """

    methods: tuple[Method, ...]
    weights: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Check the parts."""
        names = [method.name for method in self.methods]
        if len(set(names)) < max(len(names), 2):
            msg = f"expected at least two different methods to mix, got {names}"
            raise ConfigurationError(msg)
        for method in self.methods:
            if method.bounds(2) is None:
                msg = f"expected methods with limits to mix, {method.name!r} has none"
                raise ConfigurationError(msg)
        if self.weights is not None:
            _check_weights(self.weights, len(names))

    @property
    def name(self) -> str:
        """The names of the parts, with their weights where they are not equal."""
        if self.weights is None:
            return "+".join(method.name for method in self.methods)
        parts = zip(self.weights, self.methods, strict=True)
        return "+".join(f"{weight:g}*{method.name}" for weight, method in parts)

    @property
    def source(self) -> str:
        """The sources of the parts."""
        sources = "; ".join(method.source for method in self.methods)
        return f"mean of the uncertainties of: {sources}"

    @property
    def needs(self) -> frozenset[str]:
        """All that a part needs; the matrix always, for its size."""
        return frozenset({"similarity"}).union(*(one.needs for one in self.methods))

    @property
    def white_box(self) -> bool:
        """Whether a part is."""
        return any(method.white_box for method in self.methods)

    @property
    def anchors(self) -> bool:
        """Whether a part heeds the anchor."""
        return any(getattr(method, "anchors", False) for method in self.methods)

    @property
    def default_similarity(self) -> str:
        """Name of the similarity that the first part takes where none is given."""
        own: str = getattr(self.methods[0], "default_similarity", "rouge_l")
        return own

    def compute(self, inputs: MethodInputs, /) -> float:
        """Return the mean of the parts' ``u``, 1 where a part has none.

        Raises:
            InputError: Something that a part needs is missing.
        """
        n = len(inputs.similarity)
        found: list[float] = []
        for method in self.methods:
            u = method.uncertainty(method.compute(inputs), n, tau=inputs.tau)
            if u is None:
                return 1.0
            found.append(u)
        weights: Sequence[float] = self.weights or [1.0] * len(found)
        parts = (weight * u for weight, u in zip(weights, found, strict=True))
        return min(math.fsum(parts) / math.fsum(weights), 1.0)

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float] | None:
        """Return 0 and 1."""
        del n, tau
        return 0.0, 1.0

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Return the value, which is a ``u``; None where a part's is not defined.

        Raises:
            InputError: The value is outside [0, 1].
        """
        if not -_ROUNDING <= value <= 1 + _ROUNDING:
            msg = f"expected {self.name} in [0, 1], got {value}"
            raise InputError(msg)
        for method in self.methods:
            limits = method.bounds(n, tau=tau)
            if limits is None or method.uncertainty(limits[0], n, tau=tau) is None:
                return None
        return min(max(value, 0.0), 1.0)


def _check_weights(weights: Sequence[float], n: int) -> None:
    try:
        valid = len(weights) == n and all(0 < weight < math.inf for weight in weights)
    except TypeError:
        valid = False
    if not valid:
        msg = f"expected {n} weights above 0, got {weights!r}"
        raise ConfigurationError(msg)
