"""pTrue: the model is asked whether its own answer is true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.scorers.checks import as_logprobs
from snne_guard.scorers.method import FunctionMethod, between

__all__ = ["P_TRUE", "TRUE", "Shot", "p_true", "p_true_few_shot", "p_true_prompt"]

TRUE = " A"
"""What the model continues with if it takes the answer to be true."""
_FALSE = " B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One example that the model is shown before it is asked.

    Attributes:
        question: What was asked.
        answer: The answer at low temperature, which is judged.
        samples: Further answers, at temperature 1.
        correct: Whether the answer is right.
    """

    question: str
    answer: str
    samples: Sequence[str] = ()
    correct: bool


def p_true(p_true_logprob: float) -> float:
    """Return the probability that the model calls its answer false.

    Args:
        p_true_logprob: Natural log-probability of ``TRUE`` after ``p_true_prompt``.

    Returns:
        ``1 - exp(p_true_logprob)`` in [0, 1], higher is more uncertain.

    Raises:
        InputError: It is no log-probability.

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
    question: str, answer: str, samples: Sequence[str], *, few_shot: str = ""
) -> str:
    r"""Return the prompt after which ``" A"`` means true and ``" B"`` false.

    Args:
        question: What was asked.
        answer: The answer that is judged.
        samples: Further answers, shown before it as ideas.
        few_shot: Text of ``p_true_few_shot``, empty for none.

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
    start = f"{few_shot}\n" if few_shot else ""
    return start + _asked(question, answer, ideas)


def p_true_few_shot(shots: Sequence[Shot]) -> str:
    """Return examples for ``p_true_prompt``, each with its verdict.

    Here the judged answer comes first among the ideas, and a space ends each of their
    lines, as in the code of Farquhar et al.

    Args:
        shots: The examples; the paper has 20 for short answers and none for summaries
            and translations. Cut them to what the context window holds.

    Example:
        >>> shot = Shot(question="2 + 2?", answer="5", samples=["4"], correct=False)
        >>> p_true_few_shot([shot]).splitlines()[1:4]
        ['Brainstormed Answers: 5 ', '4 ', 'Possible answer: 5']
    """
    return "\n".join(map(_shown, shots))


def _shown(shot: Shot) -> str:
    ideas = "".join(f"{text.strip()} \n" for text in (shot.answer, *shot.samples))
    verdict = TRUE if shot.correct else _FALSE
    return _asked(shot.question, shot.answer, ideas) + verdict


def _asked(question: str, answer: str, ideas: str) -> str:
    return (
        f"Question: {question}\nBrainstormed Answers: {ideas}"
        f"Possible answer: {answer}\n"
        "Is the possible answer:\nA) True\nB) False\nThe possible answer is:"
    )


P_TRUE = FunctionMethod(
    name="p_true",
    source="Kadavath et al. 2022, Language Models (Mostly) Know What They Know",
    function=p_true,
    limits=between(0.0, 1.0),
    arguments=("p_true_logprob",),
    white_box=True,
)
