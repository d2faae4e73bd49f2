"""Baselines that every method must beat: how likely and how long an answer is.

``main_logprobs`` are the ``(t,)`` natural log-probabilities of the tokens of the
delivered answer, t >= 1, and ``main_similarity`` its ``(m,)`` similarity in [0, 1] to
each of m samples.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.scorers.checks import as_logprobs, as_shares
from snne_guard.scorers.method import FunctionMethod, between
from snne_guard.similarity.tokens import unicode_tokens

__all__ = [
    "ANSWER_LENGTH",
    "COCOA_MSP",
    "COCOA_PPL",
    "PERPLEXITY",
    "SEQUENCE_PROBABILITY",
    "answer_length",
    "cocoa_msp",
    "cocoa_ppl",
    "perplexity",
    "sequence_probability",
]


def sequence_probability(main_logprobs: ArrayLike) -> float:
    """Return how improbable the delivered answer is, all its tokens together.

    Returns:
        ``1 - exp(sum)`` in [0, 1], higher is more uncertain. Long answers come close
        to 1 whatever they say.

    Source:
        "Maximum sequence probability" in Fadeeva et al. 2023, "LM-Polygraph", which
        takes its negative log: the ranking is the same.

    Example:
        >>> round(sequence_probability([-0.1, -0.2]), 4)
        0.2592
    """
    return -math.expm1(-_surprise(main_logprobs))


def perplexity(main_logprobs: ArrayLike) -> float:
    """Return the perplexity of the delivered answer.

    Returns:
        ``exp(-mean)``, at least 1, higher is more uncertain; ``inf`` where that is too
        large for a float.

    Source:
        "Perplexity" in Fadeeva et al. 2023, "LM-Polygraph", which takes its log: the
        ranking is the same.

    Example:
        >>> round(perplexity([-0.1, -0.3]), 4)
        1.2214
    """
    with np.errstate(over="ignore"):
        return float(np.exp(_mean_surprise(main_logprobs)))


def answer_length(main_answer: str) -> float:
    """Return how many words the delivered answer has; longer is more uncertain.

    On several data sets this ranks answers nearly as well as methods that cost ten
    times as much.

    Returns:
        The number of ``unicode_tokens``, 0 for a text without any.

    Source:
        Santilli et al. 2025, "Revisiting Uncertainty Quantification Evaluation in
        Language Models", on what length alone explains.

    Example:
        >>> answer_length("It was Neil Armstrong, in 1969.")
        6.0
    """
    return float(len(unicode_tokens(main_answer)))


def cocoa_msp(main_logprobs: ArrayLike, main_similarity: ArrayLike) -> float:
    r"""Return CoCoA with the probability of the whole answer.

    .. math::
        CoCoA = u(y) \cdot \frac1m \sum_i \big(1 - f(y, y_i)\big), \quad
        u(y) = -\sum_t \log p_t

    where y is the delivered answer and the :math:`y_i` are the samples.

    Returns:
        A value of at least 0 nats, higher is more uncertain; unbounded. 0 if all
        samples are like the answer, however unlikely that is.

    Source:
        Vashurin et al. 2025, "CoCoA: A Minimum Bayes Risk Framework Bridging
        Confidence and Consistency for Uncertainty Quantification in LLMs", CoCoA MSP.

    Example:
        >>> round(cocoa_msp([-0.1, -0.3], [1.0, 0.5]), 4)
        0.1
    """
    return _times_distance(_surprise(main_logprobs), main_similarity)


def cocoa_ppl(main_logprobs: ArrayLike, main_similarity: ArrayLike) -> float:
    r"""Return CoCoA with the log of the answer's perplexity.

    It is ``cocoa_msp`` with :math:`u(y) = -\frac1t \sum_t \log p_t`.

    Source:
        The paper named at ``cocoa_msp``, CoCoA PPL.

    Example:
        >>> round(cocoa_ppl([-0.1, -0.3], [1.0, 0.5]), 4)
        0.05
    """
    return _times_distance(_mean_surprise(main_logprobs), main_similarity)


def _surprise(main_logprobs: ArrayLike) -> float:
    logprobs = as_logprobs(main_logprobs, what="main_logprobs")
    return -math.fsum(logprobs.tolist())


def _mean_surprise(main_logprobs: ArrayLike) -> float:
    return _surprise(main_logprobs) / np.size(main_logprobs)


def _times_distance(surprise: float, main_similarity: ArrayLike) -> float:
    similarity = as_shares(main_similarity, what="main_similarity")
    distance = math.fsum((1 - similarity).tolist()) / similarity.size
    return surprise * distance if distance else 0.0  # inf * 0 would be NaN


_POLYGRAPH = "Fadeeva et al. 2023, LM-Polygraph"
_VASHURIN = "Vashurin et al. 2025, CoCoA: A Minimum Bayes Risk Framework"

SEQUENCE_PROBABILITY = FunctionMethod(
    name="sequence_probability",
    source=f"{_POLYGRAPH}, maximum sequence probability",
    function=sequence_probability,
    limits=between(0.0, 1.0),
    arguments=("main_logprobs",),
)

PERPLEXITY = FunctionMethod(
    name="perplexity",
    source=f"{_POLYGRAPH}, perplexity",
    function=perplexity,
    arguments=("main_logprobs",),
)

ANSWER_LENGTH = FunctionMethod(
    name="answer_length",
    source="Santilli et al. 2025, Revisiting Uncertainty Quantification Evaluation",
    function=answer_length,
    arguments=("main_answer",),
)

COCOA_MSP = FunctionMethod(
    name="cocoa_msp",
    source=f"{_VASHURIN}, CoCoA MSP",
    function=cocoa_msp,
    arguments=("main_logprobs", "main_similarity"),
)

COCOA_PPL = FunctionMethod(
    name="cocoa_ppl",
    source=f"{_VASHURIN}, CoCoA PPL",
    function=cocoa_ppl,
    arguments=("main_logprobs", "main_similarity"),
)
