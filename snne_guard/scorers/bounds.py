"""Between which values SNNE and WSNNE lie, and where in [0, 1] one of them falls."""

from __future__ import annotations

import math
import operator
import sys

from snne_guard.errors import ConfigurationError, InputError

__all__ = ["bounds", "check_anchor", "check_tau", "uncertainty"]

_ROUNDING = 1e-9
_NO_NUMBERS = (bool, str)  # though they compare with one, or look like it
# Below this many representable steps between the bounds u would be noise.
_MIN_STEPS = 1000


def check_tau(tau: float) -> None:
    """Raise ConfigurationError unless tau is a finite number above 0."""
    try:
        valid = 0 < tau < math.inf and not isinstance(tau, _NO_NUMBERS)
    except TypeError:
        valid = False
    if not valid:
        msg = f"expected tau to be a finite number above 0, got {tau!r}"
        raise ConfigurationError(msg)


def check_anchor(anchor: float) -> None:
    """Raise ConfigurationError unless the anchor is a number in [0, 1]."""
    try:
        valid = 0 <= anchor <= 1 and not isinstance(anchor, _NO_NUMBERS)
    except TypeError:
        valid = False
    if not valid:
        msg = f"expected an anchor in [0, 1], got {anchor!r}"
        raise ConfigurationError(msg)


def _whole(n: int) -> int:
    try:
        return operator.index(n)
    except TypeError as error:
        msg = f"expected n to be a whole number, got {n!r}"
        raise InputError(msg) from error


def bounds(n: int, *, tau: float = 1.0) -> tuple[float, float]:
    """Return the smallest and the largest SNNE of n answers.

    They hold for similarities in [0, 1] with diagonal 1, the diagonal in the sum.

    Args:
        n: Answers in the set, at least 1.
        tau: Temperature of the softmax, above 0.

    Returns:
        ``-(1/tau + ln n)``, all alike, and ``-ln(exp(1/tau) + n - 1)``, all different,
        in nats. Equal for n = 1.

    Raises:
        InputError: n is not a whole number of at least 1.
        ConfigurationError: tau is not a finite number above 0, or 1/tau is not finite.

    Example:
        >>> low, high = bounds(10)
        >>> round(low, 4), round(high, 4)
        (-3.3026, -2.4612)
    """
    check_tau(tau)
    n = _whole(n)
    if n < 1:
        msg = f"expected n to be at least 1, got {n}"
        raise InputError(msg)
    scale = 1 / tau
    if math.isinf(scale):
        msg = f"expected tau so large that 1/tau is a float, got {tau!r}"
        raise ConfigurationError(msg)
    low = -(math.log(n) + scale)
    if n == 1:
        return low, low
    return low, -(scale + math.log1p((n - 1) * math.exp(-scale)))


def uncertainty(snne: float, n: int, *, tau: float = 1.0) -> float | None:
    """Map an SNNE or WSNNE value to [0, 1].

    With ``b = exp(1/tau)`` it is ``u = (b - v) / (b - 1)`` for the mean
    ``v = (exp(-SNNE) - b) / (n - 1)`` of what a neighbour adds, computed in log space
    so that neither a small nor a large tau overflows. ``u`` rises strictly with SNNE
    at fixed n and tau, and depends little on n.

    Args:
        snne: Value of SNNE or WSNNE in nats, the diagonal in the sum.
        n: Answers that were scored.
        tau: Temperature that the value was computed with.

    Returns:
        0 where all answers are alike, 1 where all are different; None for n < 2, and
        for a tau so extreme (below about 1e-12 or above about 1e12) that a float
        cannot tell the two apart.

    Raises:
        InputError: The value is NaN or outside the bounds for n and tau by more than
            rounding, as for a similarity outside [0, 1] or without the diagonal.
        ConfigurationError: tau is not a finite number above 0.

    Example:
        >>> from snne_guard.scorers import snne
        >>> uncertainty(snne([[1, 1], [1, 1]]), 2)
        0.0
        >>> round(uncertainty(snne([[1, 0.5], [0.5, 1]]), 2), 4)
        0.6225
        >>> round(uncertainty(snne([[1, 0], [0, 1]]), 2), 4)
        1.0
    """
    check_tau(tau)
    n = _whole(n)
    if n < 2:  # noqa: PLR2004 - one answer has nothing to differ from
        return None
    low, high = bounds(n, tau=tau)
    slack = _ROUNDING * max(1.0, abs(low))
    if not low - slack <= snne <= high + slack:
        msg = f"expected SNNE in [{low}, {high}] for n={n}, tau={tau}, got {snne}"
        raise InputError(msg)
    if high - low < _MIN_STEPS * sys.float_info.epsilon * abs(low):
        return None
    # exp(-SNNE) = n b exp(-excess): b cancels, and expm1 keeps small differences.
    excess = max(snne - low, 0.0)
    u = n * math.expm1(-excess) / ((n - 1) * math.expm1(-1 / tau))
    return min(max(u, 0.0), 1.0)
