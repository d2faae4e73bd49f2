"""CoCoA: how unlikely the delivered answer is, times how little the samples agree."""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from snne_guard.scorers.arrays import as_logprobs, as_shares, given
from snne_guard.scorers.method import FunctionMethod
from snne_guard.types import MethodInputs

__all__ = ["COCOA_MSP", "COCOA_PPL", "cocoa_msp", "cocoa_ppl"]

_ROUNDING = 1e-6


def cocoa_msp(main_logprobs: ArrayLike, main_similarity: ArrayLike) -> float:
    r"""Return CoCoA with the probability of the whole answer.

    .. math::
        CoCoA = u(y) \cdot \frac1m \sum_i \big(1 - f(y, y_i)\big), \quad
        u(y) = -\sum_t \log p_t

    Args:
        main_logprobs: ``(t,)`` natural log-probabilities of the tokens of the delivered
            answer y, t >= 1.
        main_similarity: ``(m,)`` f in [0, 1] of the delivered answer to each of m
            samples, never to itself.

    Returns:
        A value of at least 0 nats, higher is more uncertain; 0 where all samples are
        like the answer, however unlikely that is. No upper bound.

    Raises:
        InputError: There are no tokens or no samples, a number is no log-probability,
            or a similarity is outside [0, 1].

    Source:
        Vashurin et al. 2025, "CoCoA: A Minimum Bayes Risk Framework Bridging
        Confidence and Consistency for Uncertainty Quantification in LLMs", CoCoA MSP;
        as in LM-Polygraph.

    Example:
        >>> round(cocoa_msp([-0.1, -0.3], [1.0, 0.5]), 4)
        0.1
    """
    logprobs = as_logprobs(main_logprobs, what="main_logprobs").tolist()
    return _product(-math.fsum(logprobs), main_similarity)


def cocoa_ppl(main_logprobs: ArrayLike, main_similarity: ArrayLike) -> float:
    r"""Return CoCoA with the log of the answer's perplexity.

    Args:
        main_logprobs: As for ``cocoa_msp``.
        main_similarity: As for ``cocoa_msp``.

    Returns:
        The same with :math:`u(y) = -\frac1t \sum_t \log p_t`.

    Raises:
        InputError: As for ``cocoa_msp``.

    Source:
        The paper named at ``cocoa_msp``, CoCoA PPL. Its third variant, by the mean
        entropy of the tokens, needs the whole distribution of each token.

    Example:
        >>> round(cocoa_ppl([-0.1, -0.3], [1.0, 0.5]), 4)
        0.05
    """
    logprobs = as_logprobs(main_logprobs, what="main_logprobs").tolist()
    return _product(-math.fsum(logprobs) / len(logprobs), main_similarity)


def _product(surprise: float, main_similarity: ArrayLike) -> float:
    similarity = as_shares(main_similarity, what="main_similarity", slack=_ROUNDING)
    apart = math.fsum([1 - one for one in similarity])
    apart /= len(similarity)
    # 0 also where the answer has no probability at all: the samples agree with it.
    return surprise * apart if apart else 0.0


def _cocoa_msp(inputs: MethodInputs) -> float:
    return cocoa_msp(given(inputs.main_logprobs), given(inputs.main_similarity))


def _cocoa_ppl(inputs: MethodInputs) -> float:
    return cocoa_ppl(given(inputs.main_logprobs), given(inputs.main_similarity))


_VASHURIN = "Vashurin et al. 2025, CoCoA: A Minimum Bayes Risk Framework"

COCOA_MSP = FunctionMethod(
    name="cocoa_msp",
    source=f"{_VASHURIN}, CoCoA MSP",
    function=_cocoa_msp,
    needs=frozenset({"main_logprobs", "main_similarity"}),
    white_box=True,
)
"""CoCoA with the probability of the whole answer."""

COCOA_PPL = FunctionMethod(
    name="cocoa_ppl",
    source=f"{_VASHURIN}, CoCoA PPL",
    function=_cocoa_ppl,
    needs=frozenset({"main_logprobs", "main_similarity"}),
    white_box=True,
)
"""CoCoA with the log of the answer's perplexity."""
