"""pTrue: the model is asked whether its own answer is true."""

from __future__ import annotations

import math
from collections.abc import Sequence

from snne_guard.scorers.checks import as_logprobs
from snne_guard.scorers.method import FunctionMethod, between

__all__ = ["P_TRUE", "p_true", "p_true_prompt"]


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


P_TRUE = FunctionMethod(
    name="p_true",
    source="Kadavath et al. 2022, Language Models (Mostly) Know What They Know",
    function=p_true,
    limits=between(0.0, 1.0),
    arguments=("p_true_logprob",),
)
