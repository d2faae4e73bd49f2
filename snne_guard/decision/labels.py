"""Uncertainties and labels of graded answers as arrays, checked."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers
from snne_guard.errors import InputError
from snne_guard.types import BoolArray, FloatArray


def uncertainties(values: ArrayLike, /) -> FloatArray:
    """Return ``(n,)`` uncertainties, ``inf`` for an answer without a score."""
    limits = {"least": -math.inf, "most": math.inf}
    u = as_numbers(values, what="uncertainty", shape=("n",), **limits)
    bad = u[~((u >= 0) & (u <= 1) | (u == math.inf))]
    if bad.size:
        msg = f"expected uncertainty in [0, 1], or inf without a score, got {bad[0]}"
        raise InputError(msg)
    return u


def as_labels(values: ArrayLike, /) -> FloatArray:
    """Return ``(n,)`` of 1 for a right answer and 0 for a wrong one."""
    labels = as_numbers(values, what="correct", shape=("n",))
    bad = labels[~np.isin(labels, (0, 1))]
    if bad.size:
        msg = f"expected correct to be 0 (wrong) or 1 (correct), got {bad[0]}"
        raise InputError(msg)
    return labels


def graded_answers(
    uncertainty: ArrayLike, correct: ArrayLike, /
) -> tuple[FloatArray, BoolArray]:
    """Return ``u`` of graded answers, ascending, and which of them are wrong.

    Raises:
        InputError: If there are no answers, a label is neither 0 nor 1, the lengths
            differ, or all labels are the same, which usually means that the grading
            went wrong.
    """
    u = uncertainties(uncertainty)
    wrong = as_labels(correct) == 0
    if len(u) != len(wrong):
        found = f"{len(wrong)} labels and {len(u)} uncertainties"
        msg = f"expected one label for each uncertainty, got {found}"
        raise InputError(msg)
    if wrong.all() or not wrong.any():
        kind = "wrong" if wrong.all() else "correct"
        given = f"all {len(wrong)} are {kind}. Check the grading"
        msg = f"expected graded answers of both kinds, correct and wrong; {given}"
        raise InputError(msg)
    # Labels break ties, so that the order of the input makes no difference.
    order = np.lexsort((wrong, u))
    return u[order], wrong[order]
