"""The limits of methods whose smallest and largest value depend on n alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from snne_guard.errors import InputError

__all__ = ["Between"]


@dataclass(frozen=True, slots=True)
class Between:
    """``Limits`` made of two numbers or functions of n.

    Attributes:
        low: Smallest value.
        high: Largest value.

    Example:
        >>> import math
        >>> Between(0.0, math.log)(1)
        (0.0, 0.0)
    """

    low: float | Callable[[int], float]
    high: float | Callable[[int], float]

    def __call__(self, n: int, /, *, tau: float = 1.0) -> tuple[float, float]:
        """Return both for n members; there is no temperature in these methods.

        Raises:
            InputError: n is below 1.
        """
        del tau
        if n < 1:
            msg = f"expected n to be at least 1, got {n}"
            raise InputError(msg)
        return _at(self.low, n), _at(self.high, n)


def _at(limit: float | Callable[[int], float], n: int) -> float:
    return float(limit(n) if callable(limit) else limit)
