"""Checks of the numbers and arrays that callers hand over."""

from __future__ import annotations

import inspect
import math
import sys
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

__all__ = [
    "as_array",
    "as_floats",
    "check_choice",
    "check_function",
    "check_number",
    "check_whole",
]


def as_array(values: ArrayLike, /, *, what: str) -> NDArray[Any]:
    """Return an array; a masked one is refused, for numpy would drop the mask."""
    if isinstance(values, np.ma.MaskedArray):
        msg = f"expected {what} without a mask, got a masked array"
        raise InputError(msg)
    try:
        return np.asarray(values)
    except ValueError:
        msg = f"expected {what} as an array, got rows of different lengths"
        raise InputError(msg) from None


def as_floats(values: ArrayLike, /, *, what: str) -> FloatArray:
    """Return the values as float64, in an array of its own.

    Raises:
        InputError: The values are masked, complex or texts, or one of them is too large
            for a float.
    """
    array = as_array(values, what=what)
    if array.dtype.kind not in "biufO":
        msg = f"expected {what} to be real numbers, got {array.dtype}"
        raise InputError(msg)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        # Not from numpy's error, which may quote a text.
        msg = f"expected {what} to be real numbers within the range of a float"
        raise InputError(msg) from None


def check_number(
    value: object,
    /,
    *,
    what: str,
    above: float = -math.inf,
    least: float = -math.inf,
    below: float = math.inf,
    most: float = math.inf,
) -> float:
    """Return an option as a finite float within the limits.

    Args:
        value: The option.
        what: Its name.
        above: A limit that it must exceed.
        least: The smallest value that is allowed.
        below: A limit that it must stay under.
        most: The largest value that is allowed.

    Raises:
        ConfigurationError: It is no real number, not finite, or beyond a limit.
    """
    number: Any = value if isinstance(value, Real) else math.nan
    in_range = above < number < below and least <= number <= most
    if in_range and not isinstance(value, bool) and abs(number) <= sys.float_info.max:
        return float(number)
    words = {"above": above, "of at least": least, "below": below, "at most": most}
    limits = [
        f"{word} {limit:g}" for word, limit in words.items() if math.isfinite(limit)
    ]
    kind = f"a finite number {' and '.join(limits)}".strip()
    msg = f"expected {what} to be {kind}, got {value!r}"
    raise ConfigurationError(msg)


def check_whole(
    value: object, /, *, what: str, least: int, most: float = math.inf
) -> None:
    """Refuse an option that is no whole number from ``least`` to ``most``.

    Raises:
        ConfigurationError: It is none.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is not None and least <= number <= most:
        return
    upper = f" and at most {most:g}" if math.isfinite(most) else ""
    kind = f"a whole number of at least {least}{upper}"
    msg = f"expected {what} to be {kind}, got {value!r}"
    raise ConfigurationError(msg)


def check_choice(value: object, choices: tuple[str, ...], /, *, what: str) -> None:
    """Refuse an option that is none of the words that it may be.

    Raises:
        ConfigurationError: It is none.
    """
    if value not in choices:
        words = ", ".join(map(repr, choices))
        msg = f"expected {what} to be one of {words}, got {value!r}"
        raise ConfigurationError(msg)


def check_function(value: object, /, *, what: str) -> None:
    """Refuse an option that cannot be called, or that would have to be awaited.

    Raises:
        ConfigurationError: It is one of these.
    """
    if not callable(value) or inspect.iscoroutinefunction(value):
        msg = f"expected {what} to be a plain function, got {value!r}"
        raise ConfigurationError(msg)
