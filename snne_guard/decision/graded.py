"""Checks of the scores and labels that a promise is learnt from."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

__all__ = ["check_share", "graded_answers", "labels_of", "uncertainties"]


def check_share(name: str, value: object) -> float:
    """Return an option that is a share, such as alpha.

    Raises:
        ConfigurationError: It is not above 0 and below 1.

    Example:
        >>> check_share("alpha", 0.1)
        0.1
    """
    if isinstance(value, bool) or not isinstance(value, float | int):
        msg = f"{name} must be a number above 0 and below 1; got {value!r}"
        raise ConfigurationError(msg)
    if not 0 < value < 1:
        msg = f"{name} must be above 0 and below 1; got {value!r}"
        raise ConfigurationError(msg)
    return float(value)


def uncertainties(values: ArrayLike, /, *, name: str = "uncertainty") -> FloatArray:
    """Return ``u`` of answers as an array.

    Args:
        values: ``(n,)`` in [0, 1], or ``inf`` for an answer that cannot be accepted.
        name: What an error calls them.

    Raises:
        InputError: They are none, no list of numbers, NaN or outside [0, 1].

    Example:
        >>> uncertainties([0.2, float("inf")])
        array([0.2, inf])
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = f"expected {name} to be a list of numbers"
        raise InputError(msg) from error
    if array.ndim != 1:
        msg = f"expected {name} of shape (n,), got {array.shape}"
        raise InputError(msg)
    if not array.size:
        msg = f"expected at least one value of {name}, got none"
        raise InputError(msg)
    wrong = array[~(((array >= 0) & (array <= 1)) | (array == np.inf))]
    if wrong.size:
        msg = (
            f"expected every {name} in [0, 1], or inf for an answer that cannot be "
            f"accepted; got {float(wrong[0])}"
        )
        raise InputError(msg)
    return array


def graded_answers(
    uncertainty: ArrayLike, correct: ArrayLike, /
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return ``u`` of graded answers, rising, and which of them are wrong.

    Args:
        uncertainty: ``(n,)`` as for ``uncertainties``.
        correct: ``(n,)`` 1 or True for a correct answer, 0 or False for a wrong one.

    Raises:
        InputError: There are no labels, one that is neither, or not one for each
            answer.

    Example:
        >>> graded_answers([0.5, 0.1], [0, 1])
        (array([0.1, 0.5]), array([False,  True]))
    """
    labels = labels_of(correct)
    u = uncertainties(uncertainty)
    if len(u) != len(labels):
        msg = (
            "expected one label for each uncertainty, "
            f"got {len(labels)} labels and {len(u)} uncertainties"
        )
        raise InputError(msg)
    order = np.argsort(u, kind="stable")
    return u[order], labels[order] == 0


def labels_of(correct: ArrayLike, /) -> FloatArray:
    """Return labels as an array of 0 (wrong) and 1 (correct).

    Raises:
        InputError: There are none, or one is neither.

    Example:
        >>> labels_of([True, False])
        array([1., 0.])
    """
    try:
        labels = np.asarray(correct, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = "expected labels that are 0 (wrong) or 1 (correct)"
        raise InputError(msg) from error
    if labels.ndim != 1:
        msg = f"expected labels of shape (n,), got {labels.shape}"
        raise InputError(msg)
    if not labels.size:
        msg = "expected graded answers, got no labels"
        raise InputError(msg)
    other = labels[(labels != 0) & (labels != 1)]
    if other.size:
        msg = (
            f"expected labels that are 0 (wrong) or 1 (correct); got {float(other[0])}"
        )
        raise InputError(msg)
    return labels
