"""Methods that look at the delivered answer: its probability, its length, pTrue.

``main_logprobs`` are the ``(t,)`` natural log-probabilities of the tokens of the
delivered answer, t >= 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from snne_guard.arrays import as_logprobs
from snne_guard.scorers.method import Method
from snne_guard.similarity.tokens import unicode_tokens


def sequence_probability(main_logprobs: ArrayLike) -> float:
    """Return the improbability of the delivered answer, all its tokens together.

    ``1 - exp(sum)`` in [0, 1], higher is more uncertain. Long answers come close to 1
    whatever they say. Source: "Maximum sequence probability" in Fadeeva et al. 2023,
    "LM-Polygraph", which takes its negative log: the ranking is the same.

    Example:
        >>> round(sequence_probability([-0.1, -0.2]), 4)
        0.2592
    """
    return -math.expm1(-_surprise(main_logprobs))


def perplexity(main_logprobs: ArrayLike) -> float:
    """Return the perplexity of the delivered answer.

    ``exp(-mean)``, at least 1, higher is more uncertain; ``inf`` where that is too
    large for a float. Source: "Perplexity" in Fadeeva et al. 2023, "LM-Polygraph",
    which takes its log: the ranking is the same.

    Example:
        >>> round(perplexity([-0.1, -0.3]), 4)
        1.2214
    """
    with np.errstate(over="ignore"):
        return float(np.exp(_surprise(main_logprobs) / np.size(main_logprobs)))


def answer_length(main_answer: str) -> float:
    """Return the number of words of the delivered answer; longer is more uncertain.

    On several data sets this ranks answers nearly as well as methods that cost ten
    times as much. Words are ``unicode_tokens``.

    Source: Santilli et al. 2025, "Revisiting Uncertainty Quantification Evaluation in
    Language Models", on what length alone explains.

    Example:
        >>> answer_length("It was Neil Armstrong, in 1969.")
        6.0
    """
    return float(len(unicode_tokens(main_answer)))


def p_true(p_true_logprob: float) -> float:
    """Return the probability that the model calls its answer false.

    Args:
        p_true_logprob: Natural log-probability of ``" A"`` after ``p_true_prompt``.

    ``1 - exp(p_true_logprob)`` in [0, 1], higher is more uncertain. Source: Kadavath et
    al. 2022, "Language Models (Mostly) Know What They Know" (arXiv 2207.05221), in the
    form of Farquhar et al. 2024, semantic entropy.

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

    The samples are shown before the answer as ideas. ``examples`` are prompts of this
    form with their verdicts, shown first: the paper has 20 for short answers, none for
    summaries and translations.

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


_FADEEVA = "Fadeeva et al. 2023, LM-Polygraph"
_SANTILLI = "Santilli et al. 2025, Revisiting Uncertainty Quantification Evaluation"
_KADAVATH = "Kadavath et al. 2022, Language Models (Mostly) Know What They Know"

METHODS = (
    Method(
        "sequence_probability",
        f"{_FADEEVA}, maximum sequence probability",
        sequence_probability,
        ("main_logprobs",),
        limits=(0.0, 1.0),
    ),
    Method("perplexity", f"{_FADEEVA}, perplexity", perplexity, ("main_logprobs",)),
    Method("answer_length", _SANTILLI, answer_length, ("main_answer",)),
    Method("p_true", _KADAVATH, p_true, ("p_true_logprob",), limits=(0.0, 1.0)),
)
