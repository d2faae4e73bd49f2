"""The largest uncertainty that is accepted, and what is promised about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from snne_guard.errors import ConfigurationError

__all__ = ["Threshold", "accept_threshold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The largest uncertainty ``u`` that is accepted.

    Attributes:
        value: Largest accepted ``u`` in [0, 1], or -1.0 where nothing may be accepted.
        certified: Whether it carries a statistical promise.
        method: Name of the method whose ``u`` it was certified for, None for any.

    Raises:
        ConfigurationError: If the value is neither in [0, 1] nor -1.0.

    Example:
        >>> Threshold.fixed(0.4).value
        0.4
    """

    value: float
    certified: bool = False
    method: str | None = None

    def __post_init__(self) -> None:
        value = self.value
        if value != -1.0 and not (math.isfinite(value) and 0.0 <= value <= 1.0):
            msg = (
                "a threshold is an uncertainty in [0, 1], or -1.0 to accept nothing; "
                f"got {value!r}"
            )
            raise ConfigurationError(msg)

    @classmethod
    def fixed(cls, value: float, /) -> Threshold:
        """Return a threshold that someone chose; it promises nothing."""
        return cls(value=float(value))


def accept_threshold(
    threshold: float | Threshold | tuple[float, float] | None,
) -> tuple[Threshold | None, float | None]:
    """Split what a user gives as ``threshold`` into the two limits on ``u``.

    Returns:
        The threshold for acceptance, None if none was given; and the ``u`` above which
        an answer is always refused, None if there is no such limit.

    Raises:
        ConfigurationError: If it is no threshold, or the pair is out of order.

    Example:
        >>> accept_threshold((0.3, 0.7))[1]
        0.7
    """
    if threshold is None or isinstance(threshold, Threshold):
        return threshold, None
    if isinstance(threshold, tuple | list):
        accept, refuse = _pair(threshold)
        return Threshold.fixed(accept), refuse
    return Threshold.fixed(_number(threshold)), None


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        msg = (
            "threshold must be a number in [0, 1], a Threshold, an (accept, refuse) "
            f"pair or None; got {value!r}"
        )
        raise ConfigurationError(msg)
    return float(value)


def _pair(values: tuple[float, ...] | list[float]) -> tuple[float, float]:
    if len(values) != 2:  # noqa: PLR2004 - a pair
        msg = f"threshold as a pair is (accept, refuse); got {len(values)} values"
        raise ConfigurationError(msg)
    accept, refuse = (Threshold.fixed(_number(value)).value for value in values)
    if accept > refuse:
        msg = (
            "threshold as a pair is (accept, refuse) with accept <= refuse; "
            f"got ({accept!r}, {refuse!r})"
        )
        raise ConfigurationError(msg)
    return accept, refuse
