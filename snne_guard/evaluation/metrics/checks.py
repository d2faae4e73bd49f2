"""What every metric refuses, and how it says so."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import InputError
from snne_guard.types import FloatArray

__all__ = [
    "checked_binary_pair",
    "checked_correct",
    "checked_pair",
    "checked_positive",
    "checked_probability",
    "checked_quality",
    "checked_uncertainty",
]


def checked_uncertainty(values: ArrayLike, *, what: str = "uncertainty") -> FloatArray:
    """Return ``(n,)`` numbers without NaN; infinite ones are ranked like others."""
    floats = _vector(values, what=what)
    _refuse(
        np.isnan(floats),
        floats,
        f"{what} without NaN (leave out, for all methods alike, the questions that "
        "one of them could not score)",
    )
    return floats


def checked_quality(values: ArrayLike) -> FloatArray:
    """Return ``(n,)`` finite numbers."""
    floats = _vector(values, what="quality")
    _refuse(~np.isfinite(floats), floats, "quality to be finite")
    return floats


def checked_correct(values: ArrayLike) -> FloatArray:
    """Return ``(n,)`` zeros and ones."""
    floats = _vector(values, what="correct")
    _refuse((floats != 0) & (floats != 1), floats, "correct to be 0 or 1")
    return floats


def checked_probability(values: ArrayLike) -> FloatArray:
    """Return ``(n,)`` numbers in [0, 1]."""
    floats = _vector(values, what="probability")
    # The negation refuses NaN too.
    _refuse(~((floats >= 0) & (floats <= 1)), floats, "probability to be in [0, 1]")
    return floats


def checked_pair(first: FloatArray, second: FloatArray) -> None:
    """Refuse two vectors that are not about the same questions."""
    if len(first) != len(second):
        msg = (
            f"expected one value for each question, got {len(first)} and {len(second)}"
        )
        raise InputError(msg)


def checked_binary_pair(
    uncertainty: ArrayLike, correct: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return an uncertainty and the zeros and ones that belong to it."""
    scores, right = checked_uncertainty(uncertainty), checked_correct(correct)
    checked_pair(scores, right)
    return scores, right


def checked_positive(positive: str) -> str:
    """Return what is to be found."""
    if positive not in {"wrong", "correct"}:
        msg = f'expected positive to be "wrong" or "correct", got {positive!r}'
        raise InputError(msg)
    return positive


def _vector(values: ArrayLike, *, what: str) -> FloatArray:
    try:
        floats: FloatArray = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected {what} to be numbers, got {type(values).__name__}"
        raise InputError(msg) from error
    if floats.ndim != 1:
        msg = f"expected {what} of shape (n,), got shape {floats.shape}"
        raise InputError(msg)
    return floats


def _refuse(wrong: np.ndarray, values: FloatArray, expected: str) -> None:
    if wrong.any():
        first = int(np.argmax(wrong))
        msg = f"expected {expected}, got {values[first]:g} at {first}"
        raise InputError(msg)
