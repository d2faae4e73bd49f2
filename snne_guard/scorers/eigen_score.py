"""EigenScore: how much room the answers' hidden states take up."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import check_at_least, given
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import as_floats
from snne_guard.types import FloatArray, MethodInputs

__all__ = ["EIGEN_SCORE", "Reading", "eigen_score"]

Reading = Literal["code", "official"]

_LEAST = 1e-10
"""What an eigenvalue counts as that is not above 0."""


def eigen_score(
    hidden_states: ArrayLike, *, alpha: float = 1e-3, reading: Reading = "code"
) -> float:
    r"""Return the EigenScore of a set of answers.

    .. math::
        \frac1n \sum_i \ln \lambda_i, \quad
        \lambda = \mathrm{eig}(Z J Z^T + \alpha I), \quad J = I - 11^T / d

    The eigenvalues come from the singular values of Z with its rows centred: J, which
    is (d, d), is never made, and what lies far below the largest one is not lost.

    Args:
        hidden_states: ``(n, d)`` one hidden state or embedding an answer, n >= 1. The
            method is not indifferent to their scale.
        alpha: What is added to each eigenvalue, at least 0.
        reading: ``"code"`` as in LM-Polygraph and in the code of SNNE's authors;
            ``"official"`` as in EigenScore's own repository, which divides the
            covariance by d - 1 and takes decadic logarithms. Its clipping of features
            is not done here.

    Returns:
        The mean logarithm, at least ``ln(alpha)``, higher is more uncertain. No upper
        bound.

    Raises:
        InputError: The states are not an ``(n, d)`` array of finite numbers, or
            ``"official"`` is asked for with d = 1.
        ConfigurationError: alpha is below 0 or not finite, or the reading is unknown.

    Source:
        Chen et al. 2024, "INSIDE: LLMs' Internal States Retain the Power of
        Hallucination Detection" (arXiv 2402.03744), EigenScore;
        https://github.com/alibaba/eigenscore.

    Example:
        >>> round(eigen_score([[1.0, 0.0, -1.0], [1.0, 0.0, -1.0]]), 4)
        -2.7606
        >>> round(eigen_score([[1.0, 0.0, -1.0], [0.5, -1.0, 0.5]]), 4)
        0.5499
    """
    check_at_least(alpha, 0, what="alpha")
    if reading not in get_args(Reading):
        msg = f"expected reading to be one of {get_args(Reading)}, got {reading!r}"
        raise ConfigurationError(msg)
    states = _as_states(hidden_states)
    n, d = states.shape
    values = np.zeros(n)
    singular = np.linalg.svd(
        states - states.mean(axis=1, keepdims=True), compute_uv=False
    )
    values[: len(singular)] = singular**2
    official = reading == "official"
    if official:
        if d == 1:
            msg = "expected states of at least two numbers each, got one"
            raise InputError(msg)
        values /= d - 1
    values += alpha
    logs = np.log10 if official else np.log
    return float(logs(np.where(values > 0, values, _LEAST)).mean())


def _as_states(hidden_states: ArrayLike) -> FloatArray:
    states = as_floats(hidden_states, what="hidden_states")
    if states.ndim != 2 or not states.size:  # noqa: PLR2004 - a matrix has two axes
        msg = f"expected (n, d) hidden_states, got shape {states.shape}"
        raise InputError(msg)
    if np.isneginf(states).any():
        msg = "expected hidden_states of finite numbers, got -inf"
        raise InputError(msg)
    return states


def _eigen_score(inputs: MethodInputs) -> float:
    return eigen_score(given(inputs.hidden_states))


EIGEN_SCORE = FunctionMethod(
    name="eigen_score",
    source="Chen et al. 2024, INSIDE, EigenScore; as in LM-Polygraph",
    function=_eigen_score,
    needs=frozenset({"hidden_states"}),
    white_box=True,
)
"""EigenScore of the states that it is given, natural logarithms, alpha 0.001."""
