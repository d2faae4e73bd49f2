"""Methods on the graph of answers: LexSim, SumEigv, Deg and Eccen.

``similarity`` is the ``(n, n)`` matrix f, n >= 1, with the diagonal; the weights W of
the graph. The ranges hold for numbers in [0, 1] with diagonal 1.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers
from snne_guard.scorers.method import Method
from snne_guard.types import FloatArray

# Further digits of a spectrum are rounding, and depend on the order of the answers.
_DIGITS = 12
# An eigenvalue that equals the threshold but for rounding is not below it.
_ROUNDING = 1e-12
_THRESHOLD = 0.9


def lexical_similarity(similarity: ArrayLike) -> float:
    r"""Return minus the mean similarity of all pairs (LexSim); ROUGE-L in the paper.

    .. math:: U = -\frac{1}{n (n - 1)} \sum_{i \ne j} f_{ij}

    A number from -1 (all alike) to 0 (nothing in common); -1 for one answer. Source:
    Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine
    Translation"; Lin et al. 2024, "Generating with Confidence".

    Example:
        >>> lexical_similarity([[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]])
        -0.25
    """
    matrix = as_numbers(similarity, what="similarity", shape=("n", "n"))
    n = len(matrix)
    if n == 1:
        return -1.0
    others = matrix[~np.eye(n, dtype=bool)].tolist()
    # Exact, so that sets which differ only in their order tie.
    return 0.0 - math.fsum(others) / (n * (n - 1))


def eigenvalue_sum(similarity: ArrayLike) -> float:
    r"""Return the sum of eigenvalues, a continuous count of meanings (SumEigv).

    .. math:: U = \sum_k \max(0, 1 - \lambda_k)

    A number from 1 (all alike) to n (nothing in common). Source: Lin et al. 2024,
    "Generating with Confidence", U_EigV.

    Example:
        >>> eigenvalue_sum([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
        2.0
    """
    values, _ = laplacian_spectrum(similarity, normalised=True)
    return round(math.fsum((1 - values).clip(min=0).tolist()), _DIGITS)


def degree(similarity: ArrayLike) -> float:
    r"""Return the mean distance of an answer from all others (Deg).

    .. math:: U = \frac1n \sum_i \sum_j (1 - W_{ij})

    The method's authors divide by n once more; the code of the SNNE paper does not.

    A number from 0 (all alike) to ``n - 1`` (nothing in common). Source: Lin et al.
    2024, "Generating with Confidence", U_Deg.

    Example:
        >>> degree([[1, 0.5], [0.5, 1]])
        0.5
    """
    matrix = as_numbers(similarity, what="similarity", shape=("n", "n"))
    n = len(matrix)
    return (n * n - math.fsum(matrix.ravel().tolist())) / n


def eccentricity(similarity: ArrayLike) -> float:
    r"""Return the distance of the answers from their centre in the graph's embedding.

    .. math:: U = \lVert V - \bar{V} \rVert_F

    where the columns of V are the eigenvectors with eigenvalues below 0.9, and the mean
    row is subtracted (Eccen). It jumps where an eigenvalue crosses 0.9.

    A number from 0 (all alike) to ``sqrt(n - 1)`` (nothing in common). Source: Lin et
    al. 2024, "Generating with Confidence", U_Ecc, with the threshold of the code of the
    SNNE paper.

    Example:
        >>> round(eccentricity([[1, 0, 0], [0, 1, 0], [0, 0, 1]]) ** 2, 9)
        2.0
    """
    values, vectors = laplacian_spectrum(similarity, normalised=True)
    chosen = vectors[:, values < _THRESHOLD - _ROUNDING]
    return round(float(np.linalg.norm(chosen - chosen.mean(axis=0))), _DIGITS)


def laplacian_spectrum(
    weights: ArrayLike, *, normalised: bool
) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues, ascending, and eigenvectors of a graph's Laplacian.

    That is ``D - W``, or ``D^-1/2 (D - W) D^-1/2``, where D is the diagonal of the row
    sums of the weights W. Asymmetric weights are averaged over both directions.
    """
    matrix = as_numbers(weights, what="weights", shape=("n", "n"), least=0)
    graph = (matrix + matrix.T) / 2
    degrees = graph.sum(axis=1)
    laplacian = np.diag(degrees) - graph
    if normalised:
        # Nodes without edges keep a row of zeros.
        scale = np.zeros_like(degrees)
        np.divide(1, np.sqrt(degrees), out=scale, where=degrees > 0)
        laplacian = laplacian * scale[:, None] * scale
    values, vectors = np.linalg.eigh(laplacian)
    return values, vectors


_LIN = "Lin et al. 2024, Generating with Confidence"
_FOMICHEVA = "Fomicheva et al. 2020, Unsupervised Quality Estimation for NMT"

_method = partial(Method, default_similarity="nli")
METHODS = (
    Method("lex_sim", _FOMICHEVA, lexical_similarity, limits=(-1.0, 0.0)),
    _method("sum_eigv", f"{_LIN}, U_EigV", eigenvalue_sum, limits=(1.0, float)),
    _method("deg", f"{_LIN}, U_Deg", degree, limits=(0.0, lambda n: n - 1)),
    _method(
        "eccen",
        f"{_LIN}, U_Ecc",
        eccentricity,
        limits=(0.0, lambda n: math.sqrt(n - 1)),
    ),
)
