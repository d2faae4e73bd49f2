"""How scoring functions become a ``Method``: what they need, their limits and ``u``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snne_guard.errors import InputError
from snne_guard.types import MethodInputs

__all__ = ["LOGPROBS", "FunctionMethod", "Limits", "between"]

Limits = Callable[..., tuple[float, float]]
"""``(n, *, tau)`` to the smallest and largest value of a method for ``n`` members."""

LOGPROBS = {"mean_logprobs", "token_logprobs", "main_logprobs", "sample_mean_logprobs"}
"""The needs that are made of token log-probabilities."""

_WHITE_BOX = {*LOGPROBS, "hidden_states", "p_true_logprob"}
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionMethod:
    """A ``Method`` made of pure functions.

    Attributes:
        name: Key in ``METHODS``, or a name of your own.
        source: Paper and equation, or URL.
        function: Called with ``arguments`` by position and ``options`` by keyword,
            returns the raw value; higher is more uncertain.
        arguments: Fields of ``MethodInputs`` that it requires, in order.
        options: Fields of ``MethodInputs`` that always have a value: tau, anchor.
        limits: Smallest and largest value for ``n`` members, None if unbounded.
        mapping: ``(value, n, *, tau)`` to ``u``; None maps the limits linearly to
            [0, 1].
        default_similarity: Name of the similarity it runs on if none is given.

    Example:
        >>> import numpy as np
        >>> mean_distance = FunctionMethod(
        ...     name="mean_distance",
        ...     source="an example",
        ...     function=lambda similarity: float(1 - similarity.mean()),
        ...     limits=between(0.0, lambda n: 1 - 1 / n),
        ... )
        >>> mean_distance.compute(MethodInputs(similarity=np.eye(2)))
        0.5
        >>> mean_distance.uncertainty(0.5, 2)
        1.0
    """

    name: str
    source: str
    function: Callable[..., float]
    arguments: tuple[str, ...] = ("similarity",)
    options: tuple[str, ...] = ()
    limits: Limits | None = None
    mapping: Callable[..., float | None] | None = None
    default_similarity: str = "rouge_l"

    @property
    def needs(self) -> frozenset[str]:
        """The fields of ``MethodInputs`` that it requires."""
        return frozenset(self.arguments)

    @property
    def white_box(self) -> bool:
        """Whether it needs what only the model's owner can see."""
        return not _WHITE_BOX.isdisjoint(self.arguments)

    def compute(self, inputs: MethodInputs, /) -> float:
        """Return the raw value.

        Raises:
            InputError: Something that the method needs is missing.
        """
        found = [getattr(inputs, need) for need in self.arguments]
        for need, value in zip(self.arguments, found, strict=True):
            if value is None:
                msg = f"expected {need} for method {self.name!r}, got none"
                raise InputError(msg)
        options = {option: getattr(inputs, option) for option in self.options}
        return float(self.function(*found, **options))

    def bounds(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float] | None:
        """Return the smallest and largest value for ``n`` members, None if unknown."""
        return None if self.limits is None else self.limits(n, tau=tau)

    def uncertainty(self, value: float, n: int, /, *, tau: float = 1.0) -> float | None:
        """Map a raw value to [0, 1].

        Returns:
            ``u``; None for fewer than two members and for a method without limits.

        Raises:
            InputError: The value lies outside the limits.
        """
        if n < 2 or self.limits is None:  # noqa: PLR2004 - one answer cannot differ
            return None
        if self.mapping is not None:
            return self.mapping(value, n, tau=tau)
        low, high = self.limits(n, tau=tau)
        slack = _ROUNDING * max(1.0, abs(low), abs(high))
        if not low - slack <= value <= high + slack:
            msg = f"expected {self.name} in [{low}, {high}] for n={n}, got {value}"
            raise InputError(msg)
        return min(max((value - low) / (high - low), 0.0), 1.0)


def between(
    low: float | Callable[[int], float], high: float | Callable[[int], float]
) -> Limits:
    """Return limits that depend on n alone.

    Example:
        >>> import math
        >>> between(0.0, math.log)(1)
        (0.0, 0.0)
    """

    def limits(n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        del tau  # these methods have no temperature
        if n < 1:
            msg = f"expected n of at least 1, got {n}"
            raise InputError(msg)
        smallest = low(n) if callable(low) else low
        largest = high(n) if callable(high) else high
        return float(smallest), float(largest)

    return limits
