"""Methods that look at the delivered answer: its probability, its length, pTrue.

``main_logprobs`` are the ``(t,)`` natural log-probabilities of the tokens of the
delivered answer, t >= 1, and ``main_similarity`` its ``(m,)`` similarity in [0, 1] to
each of m samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.checks import as_logprobs, as_numbers
from snne_guard.scorers.method import Method
from snne_guard.similarity.tokens import unicode_tokens

__all__ = [
    "METHODS",
    "answer_length",
    "cocoa",
    "p_true",
    "p_true_prompt",
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


def cocoa(
    main_logprobs: ArrayLike, main_similarity: ArrayLike, *, per_token: bool = False
) -> float:
    r"""Return CoCoA: the answer's improbability times its distance from the samples.

    .. math::
        CoCoA = u(y) \cdot \frac1m \sum_i \big(1 - f(y, y_i)\big), \quad
        u(y) = -\sum_t \log p_t

    where y is the delivered answer and the :math:`y_i` are the samples.

    Args:
        main_logprobs: ``(t,)`` log-probabilities of the answer's tokens in nats.
        main_similarity: ``(m,)`` similarity in [0, 1] of the answer to each sample.
        per_token: Whether u(y) is divided by the number of tokens, which makes it the
            log of the perplexity (CoCoA PPL) instead of CoCoA MSP.

    Returns:
        A value of at least 0 nats, higher is more uncertain; unbounded. 0 if all
        samples are like the answer, however unlikely that is.

    Source:
        Vashurin et al. 2025, "CoCoA: A Minimum Bayes Risk Framework Bridging
        Confidence and Consistency for Uncertainty Quantification in LLMs".

    Example:
        >>> round(cocoa([-0.1, -0.3], [1.0, 0.5]), 4)
        0.1
    """
    surprise = (_mean_surprise if per_token else _surprise)(main_logprobs)
    similarity = as_numbers(
        main_similarity, what="main_similarity", shape=("m",), least=0, most=1
    )
    distance = math.fsum((1 - similarity).tolist()) / similarity.size
    return surprise * distance if distance else 0.0  # inf * 0 would be NaN


def p_true(p_true_logprob: float) -> float:
    """Return the probability that the model calls its answer false.

    Args:
        p_true_logprob: Natural log-probability of ``" A"`` after ``p_true_prompt``.

    Returns:
        ``1 - exp(p_true_logprob)`` in [0, 1], higher is more uncertain.

    Source:
        Kadavath et al. 2022, "Language Models (Mostly) Know What They Know" (arXiv
        2207.05221), in the form of Farquhar et al. 2024, "Detecting hallucinations in
        large language models using semantic entropy".

    Example:
        >>> round(p_true(-0.1), 4)
        0.0952
    """
    (value,) = as_logprobs([p_true_logprob], what="p_true_logprob").tolist()
    return -math.expm1(value)


def p_true_prompt(
    question: str, answer: str, samples: Sequence[str], *, examples: str = ""
) -> str:
    r"""Return the prompt after which ``" A"`` means true and ``" B"`` false.

    Args:
        question: What was asked.
        answer: The answer that is judged.
        samples: Further answers, shown before it as ideas.
        examples: Prompts of this form with their verdicts, shown first. The paper has
            20 for short answers, none for summaries and translations.

    Example:
        >>> print(p_true_prompt("2 + 2?", "4", ["4", " 5 "]))
        Question: 2 + 2?
        Brainstormed Answers: 4
        5
        4
        Possible answer: 4
        Is the possible answer:
        A) True
        B) False
        The possible answer is:
    """
    ideas = "".join(f"{text.strip()}\n" for text in (*samples, answer))
    start = f"{examples}\n" if examples else ""
    return (
        f"{start}Question: {question}\nBrainstormed Answers: {ideas}"
        f"Possible answer: {answer}\n"
        "Is the possible answer:\nA) True\nB) False\nThe possible answer is:"
    )


def _surprise(main_logprobs: ArrayLike) -> float:
    logprobs = as_logprobs(main_logprobs, what="main_logprobs")
    return -math.fsum(logprobs.tolist())


def _mean_surprise(main_logprobs: ArrayLike) -> float:
    return _surprise(main_logprobs) / np.size(main_logprobs)


_POLYGRAPH = "Fadeeva et al. 2023, LM-Polygraph"
_VASHURIN = "Vashurin et al. 2025, CoCoA: A Minimum Bayes Risk Framework"

METHODS = (
    Method(
        name="sequence_probability",
        source=f"{_POLYGRAPH}, maximum sequence probability",
        function=sequence_probability,
        limits=(0.0, 1.0),
        arguments=("main_logprobs",),
    ),
    Method(
        name="perplexity",
        source=f"{_POLYGRAPH}, perplexity",
        function=perplexity,
        arguments=("main_logprobs",),
    ),
    Method(
        name="answer_length",
        source="Santilli et al. 2025, Revisiting Uncertainty Quantification Evaluation",
        function=answer_length,
        arguments=("main_answer",),
    ),
    Method(
        name="cocoa_msp",
        source=f"{_VASHURIN}, CoCoA MSP",
        function=cocoa,
        arguments=("main_logprobs", "main_similarity"),
    ),
    Method(
        name="cocoa_ppl",
        source=f"{_VASHURIN}, CoCoA PPL",
        function=partial(cocoa, per_token=True),
        arguments=("main_logprobs", "main_similarity"),
    ),
    Method(
        name="p_true",
        source="Kadavath et al. 2022, Language Models (Mostly) Know What They Know",
        function=p_true,
        limits=(0.0, 1.0),
        arguments=("p_true_logprob",),
    ),
)
