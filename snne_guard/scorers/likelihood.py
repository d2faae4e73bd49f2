"""What every method must beat: how likely, and how long, an answer is."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.scorers.arrays import as_logprobs, given
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.similarity.tokens import unicode_tokens
from snne_guard.types import MethodInputs

__all__ = [
    "ANSWER_LENGTH",
    "MEAN_SEQUENCE_PROBABILITY",
    "PERPLEXITY",
    "SEQUENCE_PROBABILITY",
    "answer_length",
    "mean_sequence_probability",
    "perplexity",
    "sequence_probability",
]


def sequence_probability(main_logprobs: ArrayLike) -> float:
    """Return how improbable the delivered answer is, all its tokens together.

    Args:
        main_logprobs: ``(t,)`` natural log-probabilities of its tokens, t >= 1.

    Returns:
        ``1 - exp(sum)`` in [0, 1], higher is more uncertain. Long answers come close
        to 1 whatever they say.

    Raises:
        InputError: There are no tokens, or a number is no log-probability.

    Source:
        "Maximum sequence probability" in Fadeeva et al. 2023, "LM-Polygraph", which
        takes the negative log of it: the order is the same.

    Example:
        >>> round(sequence_probability([-0.1, -0.2]), 4)
        0.2592
    """
    logprobs = as_logprobs(main_logprobs, what="main_logprobs").tolist()
    return -math.expm1(math.fsum(logprobs))


def mean_sequence_probability(mean_logprobs: ArrayLike) -> float:
    """Return how improbable the answers of the set are, length aside.

    Args:
        mean_logprobs: ``(n,)`` mean token log-probabilities of the answers in nats.

    Returns:
        1 less the mean of ``exp(l_i)``, the geometric-mean token probability, in
        [0, 1]; higher is more uncertain.

    Raises:
        InputError: There are no answers, or a number is no log-probability.

    Source:
        Length-normalised sequence probability as in Malinin and Gales 2021,
        "Uncertainty Estimation in Autoregressive Structured Prediction" (arXiv
        2002.07650), averaged over the answers.

    Example:
        >>> round(mean_sequence_probability([-0.1, -0.3]), 4)
        0.1772
    """
    logprobs = as_logprobs(mean_logprobs, what="mean_logprobs")
    return math.fsum((-np.expm1(logprobs)).tolist()) / len(logprobs)


def perplexity(main_logprobs: ArrayLike) -> float:
    """Return the perplexity of the delivered answer.

    Args:
        main_logprobs: ``(t,)`` natural log-probabilities of its tokens, t >= 1.

    Returns:
        ``exp(-mean)``, at least 1, higher is more uncertain; infinite where that is
        too large for a float.

    Raises:
        InputError: There are no tokens, or a number is no log-probability.

    Source:
        "Perplexity" in Fadeeva et al. 2023, "LM-Polygraph", which takes the log of
        it: the order is the same.

    Example:
        >>> round(perplexity([-0.1, -0.3]), 4)
        1.2214
    """
    logprobs = as_logprobs(main_logprobs, what="main_logprobs").tolist()
    try:
        return math.exp(-math.fsum(logprobs) / len(logprobs))
    except OverflowError:
        return math.inf


def answer_length(main_answer: str) -> float:
    """Return how many words the delivered answer has; longer is more uncertain.

    On several data sets this knows nearly as much as methods that cost ten times the
    money: no method is of use that does not beat it. It needs no log-probabilities, so
    that it stands beside every other method.

    Args:
        main_answer: The delivered answer, in any script.

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


def _sequence_probability(inputs: MethodInputs) -> float:
    return sequence_probability(given(inputs.main_logprobs))


def _mean_sequence_probability(inputs: MethodInputs) -> float:
    return mean_sequence_probability(given(inputs.mean_logprobs))


def _perplexity(inputs: MethodInputs) -> float:
    return perplexity(given(inputs.main_logprobs))


def _answer_length(inputs: MethodInputs) -> float:
    return answer_length(given(inputs.main_answer))


_POLYGRAPH = "Fadeeva et al. 2023, LM-Polygraph"

SEQUENCE_PROBABILITY = FunctionMethod(
    name="sequence_probability",
    source=f"{_POLYGRAPH}, maximum sequence probability",
    function=_sequence_probability,
    limits=Between(0.0, 1.0),
    needs=frozenset({"main_logprobs"}),
    white_box=True,
)
"""How improbable the delivered answer is."""

MEAN_SEQUENCE_PROBABILITY = FunctionMethod(
    name="mean_sequence_probability",
    source=(
        "Malinin and Gales 2021, Uncertainty Estimation in Autoregressive Structured "
        "Prediction"
    ),
    function=_mean_sequence_probability,
    limits=Between(0.0, 1.0),
    needs=frozenset({"mean_logprobs"}),
    white_box=True,
)
"""How improbable the answers are on average, length aside."""

PERPLEXITY = FunctionMethod(
    name="perplexity",
    source=f"{_POLYGRAPH}, perplexity",
    function=_perplexity,
    needs=frozenset({"main_logprobs"}),
    white_box=True,
)
"""Perplexity of the delivered answer."""

ANSWER_LENGTH = FunctionMethod(
    name="answer_length",
    source=(
        "Santilli et al. 2025, Revisiting Uncertainty Quantification Evaluation in "
        "Language Models, on length"
    ),
    function=_answer_length,
    needs=frozenset({"main_answer"}),
)
"""Length of the delivered answer, which every method must beat."""
