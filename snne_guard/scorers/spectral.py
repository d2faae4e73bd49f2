"""Methods on the graph of answers: its spectrum, its degrees, its eccentricity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import check_number, check_weights
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import as_square
from snne_guard.scorers.small import is_symmetric, min_of, square_of
from snne_guard.types import FloatArray, MethodInputs

__all__ = [
    "DEG",
    "ECCEN",
    "SUM_EIGV",
    "Spectrum",
    "degree",
    "eccentricity",
    "eigenvalue_sum",
    "laplacian_spectrum",
]

# Beyond these digits a spectrum is rounding, and depends on the order of the answers.
_DIGITS = 12
# An eigenvalue that equals the threshold but for rounding is not below it.
_ROUNDING = 1e-12
# Two eigenvalues nearer than this are the same one but for rounding.
_ALIKE = 1e-9
# Larger ones are decomposed anew, so that what is kept stays small.
_KEPT_SIZE = 64


@dataclass(frozen=True, slots=True, eq=False)
class Spectrum:
    """The eigendecomposition of a normalised graph Laplacian; read-only.

    Attributes:
        values: ``(n,)`` eigenvalues, in [0, 2], ascending.
        vectors: ``(n, n)`` their eigenvectors as columns.
    """

    values: FloatArray
    vectors: FloatArray


def laplacian_spectrum(similarity: ArrayLike) -> Spectrum:
    r"""Return the spectrum of the normalised Laplacian of a similarity graph.

    .. math:: L = I - D^{-1/2} W D^{-1/2}, \quad D_{ii} = \sum_j W_{ij}

    The last few small matrices are remembered, since several methods ask for the same.

    Args:
        similarity: ``(n, n)`` weights W of at least 0, n >= 1, the diagonal in. If not
            symmetric, the mean of both directions is taken.

    Raises:
        InputError: The matrix is not square, empty, holds NaN, an infinity or a
            negative weight, or a row of zeros.

    Example:
        >>> laplacian_spectrum([[1, 0], [0, 1]]).values.tolist()
        [0.0, 0.0]
    """
    matrix = as_square(similarity)
    n = len(matrix)
    decompose = _remembered if n <= _KEPT_SIZE else _spectrum
    return decompose(n, matrix.tobytes())


def _spectrum(n: int, data: bytes) -> Spectrum:
    weights = square_of(n, data)
    check_weights(weights)
    weights = weights.copy() if is_symmetric(weights) else (weights + weights.T) / 2
    degrees = weights.sum(axis=1)
    if min_of(degrees) == 0:
        row = int(degrees.argmin())
        msg = f"expected no row of zeros, got one at {row}"
        raise InputError(msg)
    scale = 1 / np.sqrt(degrees)
    weights *= scale[:, None]
    weights *= -scale
    # Of L - I, whose eigenvalues keep the digits that those of L lose near 0.
    values, vectors = np.linalg.eigh(weights)
    values += 1
    values.setflags(write=False)
    vectors.setflags(write=False)
    return Spectrum(values, vectors)


_remembered = lru_cache(maxsize=8)(_spectrum)


def eigenvalue_sum(similarity: ArrayLike) -> float:
    r"""Return the sum of eigenvalues, a count of meanings that need not be whole.

    .. math:: U = \sum_k \max(0, 1 - \lambda_k)

    Args:
        similarity: ``(n, n)`` weights as for ``laplacian_spectrum``.

    Returns:
        A number from 1 (all alike) to n (nothing in common), for weights in [0, 1] with
        diagonal 1.

    Raises:
        InputError: As for ``laplacian_spectrum``.

    Source:
        Lin et al. 2024, "Generating with Confidence", U_EigV.

    Example:
        >>> eigenvalue_sum([[1, 1, 0], [1, 1, 0], [0, 0, 1]])
        2.0
    """
    values = laplacian_spectrum(similarity).values.tolist()
    return round(math.fsum([1 - value for value in values if value < 1]), _DIGITS)


def degree(similarity: ArrayLike, *, normalised: bool = False) -> float:
    r"""Return how unlike the others an answer is on average.

    .. math:: U = \frac1n \sum_i \sum_j (1 - W_{ij})

    Args:
        similarity: ``(n, n)`` similarities, n >= 1, the diagonal in.
        normalised: Whether to divide by n once more, as the method's authors do and
            the paper's code does not. At one n they rank alike.

    Returns:
        A number from 0 (all alike) to ``n - 1`` (nothing in common) for similarities in
        [0, 1] with diagonal 1; with ``normalised`` to ``1 - 1/n``.

    Raises:
        InputError: The matrix is not square, empty, or holds NaN or an infinity.

    Source:
        Lin et al. 2024, "Generating with Confidence", U_Deg.

    Example:
        >>> degree([[1, 0.5], [0.5, 1]]), degree([[1, 0.5], [0.5, 1]], normalised=True)
        (0.5, 0.25)
    """
    matrix = as_square(similarity)
    n = len(matrix)
    # Exact, so that sets which differ only in their order tie.
    total = n * n - math.fsum(matrix.ravel().tolist())
    return total / (n * n if normalised else n)


def eccentricity(
    similarity: ArrayLike, *, threshold: float = 0.9, smallest: int | None = None
) -> float:
    r"""Return how far the answers lie from their centre in the graph's embedding.

    .. math:: U = \lVert V - \bar{V} \rVert_F

    with the eigenvectors below the threshold as columns of V, the answers as rows, and
    the mean row taken off. It jumps where an eigenvalue crosses the threshold.

    Args:
        similarity: ``(n, n)`` weights as for ``laplacian_spectrum``.
        threshold: Eigenvalues below it count.
        smallest: Take so many of the smallest eigenvalues instead, as the paper's text
            has it. Where the next one is equal, which vectors are the first is not
            defined; all with that eigenvalue then count by the share that is taken, as
            they do on average over their bases.

    Returns:
        A number from 0 (all alike) to ``sqrt(n - 1)`` (nothing in common).

    Raises:
        InputError: As for ``laplacian_spectrum``.
        ConfigurationError: ``smallest`` is not in 1 to n.

    Source:
        Lin et al. 2024, "Generating with Confidence", U_Ecc; the threshold is that of
        the authors' code.

    Example:
        >>> round(eccentricity([[1, 0, 0], [0, 1, 0], [0, 0, 1]]) ** 2, 9)
        2.0
    """
    spectrum = laplacian_spectrum(similarity)
    n = len(spectrum.values)
    check_number(threshold, what="threshold")
    if math.isnan(threshold):
        msg = "expected a threshold, got NaN"
        raise ConfigurationError(msg)
    whole: object = smallest  # whatever its type says
    shares: float | FloatArray = 1.0
    if smallest is None:
        count = int(spectrum.values.searchsorted(threshold - _ROUNDING))
    elif isinstance(whole, Integral) and 1 <= smallest <= n:
        count, shares = _smallest(spectrum.values, smallest)
    else:
        msg = f"expected smallest in 1 to {n}, got {smallest!r}"
        raise ConfigurationError(msg)
    chosen = spectrum.vectors[:, :count]
    apart = chosen - chosen.sum(axis=0) / n
    weighted = apart if smallest is None else apart * shares
    square: float = weighted.ravel().dot(apart.ravel())
    return round(math.sqrt(square), _DIGITS)


def _smallest(values: FloatArray, k: int) -> tuple[int, FloatArray]:
    """Return how many of ascending eigenvalues count, and by how much each does."""
    last = float(values[k - 1])
    below = int(np.searchsorted(values, last - _ALIKE))
    count = int(np.searchsorted(values, last + _ALIKE, side="right"))
    shares = np.ones(count)
    shares[below:] = (k - below) / (count - below)
    return count, shares


def _sum_eigv(inputs: MethodInputs) -> float:
    return eigenvalue_sum(inputs.similarity)


def _deg(inputs: MethodInputs) -> float:
    return degree(inputs.similarity)


def _eccen(inputs: MethodInputs) -> float:
    return eccentricity(inputs.similarity)


def _others(n: int) -> float:
    return n - 1.0


def _farthest(n: int) -> float:
    return math.sqrt(n - 1)


_LIN = "Lin et al. 2024, Generating with Confidence"

SUM_EIGV = FunctionMethod(
    name="sum_eigv",
    source=f"{_LIN}, U_EigV",
    function=_sum_eigv,
    limits=Between(1.0, float),
    default_similarity="nli",
)
"""Sum of the graph Laplacian's eigenvalues."""

DEG = FunctionMethod(
    name="deg",
    source=f"{_LIN}, U_Deg",
    function=_deg,
    limits=Between(0.0, _others),
    default_similarity="nli",
)
"""Mean distance from the others, not divided by n, as in the authors' code."""

ECCEN = FunctionMethod(
    name="eccen",
    source=f"{_LIN}, U_Ecc",
    function=_eccen,
    limits=Between(0.0, _farthest),
    default_similarity="nli",
)
"""Eccentricity, eigenvalues below 0.9."""
