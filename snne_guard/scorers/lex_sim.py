"""LexSim: how unlike answers are on average, word by word."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import as_square
from snne_guard.types import MethodInputs

__all__ = ["LEX_SIM", "lexical_similarity"]


def lexical_similarity(similarity: ArrayLike) -> float:
    r"""Return the mean similarity of all pairs, its sign turned.

    .. math:: U = -\frac{1}{n (n - 1)} \sum_{i \ne j} f_{ij}

    The paper's code compares answers with the question in front of each, which makes
    them all more alike; its SNNE does not. For that reading give the matrix of such
    texts.

    Args:
        similarity: ``(n, n)`` matrix f, n >= 1; ROUGE-L in the paper. The diagonal is
            not looked at.

    Returns:
        A number from -1 (all alike) to 0 (nothing in common) where f is in [0, 1]; -1
        for one answer.

    Raises:
        InputError: The matrix is not square, empty, or holds NaN or ``+inf``.

    Source:
        Fomicheva et al. 2020, "Unsupervised Quality Estimation for Neural Machine
        Translation"; Lin et al. 2024, "Generating with Confidence".

    Example:
        >>> lexical_similarity([[1, 0.5, 0], [0.5, 1, 0.25], [0, 0.25, 1]])
        -0.25
    """
    matrix = as_square(similarity)
    n = len(matrix)
    if n == 1:
        return -1.0
    others = matrix.ravel().tolist()
    del others[:: n + 1]
    # Exact, so that sets which differ only in their order tie.
    pairs = math.fsum(others)
    return 0.0 - pairs / (n * (n - 1))


def _lex_sim(inputs: MethodInputs) -> float:
    return lexical_similarity(inputs.similarity)


LEX_SIM = FunctionMethod(
    name="lex_sim",
    source=(
        "Fomicheva et al. 2020, Unsupervised Quality Estimation for Neural Machine "
        "Translation"
    ),
    function=_lex_sim,
    limits=Between(-1.0, 0.0),
)
"""Mean ROUGE-L of all pairs, the sign turned."""
