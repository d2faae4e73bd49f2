"""EigenScore: how much room the answers' hidden states take up."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers
from snne_guard.scorers.method import Method

_ALPHA = 1e-3


def eigen_score(hidden_states: ArrayLike) -> float:
    r"""Return the EigenScore of a set of answers.

    .. math::
        \frac1n \sum_i \ln \lambda_i, \quad
        \lambda = \mathrm{eig}(Z J Z^T + 0.001 I), \quad J = I - 11^T / d

    Args:
        hidden_states: ``(n, d)``, one hidden state or embedding for each answer,
            n >= 1. Their scale matters.

    The mean logarithm, at least ``ln(0.001)``, higher is more uncertain; unbounded.
    Source: Chen et al. 2024, "INSIDE: LLMs' Internal States Retain the Power of
    Hallucination Detection" (arXiv 2402.03744), as in LM-Polygraph and the code of the
    SNNE paper. EigenScore's own repository divides the covariance by d - 1 and takes
    base-10 logarithms.

    Example:
        >>> round(eigen_score([[1.0, 0.0, -1.0], [0.5, -1.0, 0.5]]), 4)
        0.5499
    """
    states = as_numbers(hidden_states, what="hidden_states", shape=("n", "d"))
    # The squared singular values of the centred Z are the eigenvalues; J, which is
    # (d, d), is never made, and what lies far below the largest one is not lost.
    centred = states - states.mean(axis=1, keepdims=True)
    singular = np.linalg.svd(centred, compute_uv=False)
    values = np.full(len(states), _ALPHA)
    values[: len(singular)] += singular**2
    return float(np.log(values).mean())


_CHEN = "Chen et al. 2024, INSIDE, EigenScore; as in LM-Polygraph"

METHODS = (Method("eigen_score", _CHEN, eigen_score, ("hidden_states",)),)
