"""pTrue: the model is asked whether its own answer is true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.arrays import given
from snne_guard.scorers.limits import Between
from snne_guard.scorers.method import FunctionMethod
from snne_guard.scorers.rows import LOGPROB_SLACK
from snne_guard.types import Likelihood, MethodInputs

__all__ = [
    "P_TRUE",
    "TRUE",
    "Shot",
    "p_true",
    "p_true_few_shot",
    "p_true_logprob",
    "p_true_prompt",
]

TRUE = " A"
"""What the model goes on with if it holds the answer for true."""
_FALSE = " B"

_ASKED = "Is the possible answer:\nA) True\nB) False\nThe possible answer is:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One example that the model is shown before it is asked.

    Attributes:
        question: What was asked.
        answer: The answer at low temperature, which is judged.
        samples: Further answers, at temperature 1.
        correct: Whether the answer is right, by whatever grades it.
    """

    question: str
    answer: str
    samples: Sequence[str] = ()
    correct: bool


def p_true(
    p_true_logprob: float, *, reading: Literal["fixed", "code"] = "fixed"
) -> float:
    """Return how improbable the model finds it that its answer is true.

    Args:
        p_true_logprob: Natural log-probability of ``" A"`` after the prompt, at most 0.
        reading: ``"fixed"`` is ``1 - exp(p)``; ``"code"`` is the authors' ``1 - p``,
            which ranks alike and is no probability.

    Returns:
        A value in [0, 1], higher is more uncertain; for ``"code"`` at least 1.

    Raises:
        InputError: It is no log-probability.
        ConfigurationError: The reading is unknown.

    Source:
        Kadavath et al. 2022, "Language Models (Mostly) Know What They Know"
        (arXiv 2207.05221), P(True); in the form of Farquhar et al. 2024, "Detecting
        hallucinations in large language models using semantic entropy".

    Example:
        >>> round(p_true(-0.1), 4)
        0.0952
    """
    if reading not in {"fixed", "code"}:
        msg = f"expected reading 'fixed' or 'code', got {reading!r}"
        raise ConfigurationError(msg)
    value = float(p_true_logprob)
    if not value <= LOGPROB_SLACK:
        msg = f"expected a natural log-probability of at most 0, got {value}"
        raise InputError(msg)
    value = min(value, 0.0)
    return 1 - value if reading == "code" else -math.expm1(value)


def p_true_prompt(
    question: str, answer: str, samples: Sequence[str], *, few_shot: str = ""
) -> str:
    r"""Return the text after which ``" A"`` stands for true and ``" B"`` for false.

    Args:
        question: What was asked.
        answer: The answer that is judged.
        samples: Further answers, shown before it as ideas.
        few_shot: Text of ``p_true_few_shot``, empty for none.

    Returns:
        The prompt, which ends with ``"The possible answer is:"``.

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
    r"""Return examples for ``p_true_prompt``, each with its verdict.

    The answer that is judged comes first among the ideas here, and a space stands
    before each line's end, as in the code of Farquhar et al.

    Args:
        shots: The examples; the paper has 20 for short answers and none for
            summaries and translations. Cut them to what the context window holds.

    Example:
        >>> shot = Shot(question="2 + 2?", answer="5", samples=["4"], correct=False)
        >>> p_true_few_shot([shot]).splitlines()[1:4]
        ['Brainstormed Answers: 5 ', '4 ', 'Possible answer: 5']
        >>> p_true_few_shot([shot])[-25:]
        'The possible answer is: B'
    """
    return "\n".join(_shown(shot) for shot in shots)


def p_true_logprob(
    likelihood: Likelihood,
    question: str,
    answer: str,
    samples: Sequence[str],
    *,
    shots: Sequence[Shot] = (),
) -> float:
    """Ask the model whether its answer is true.

    Args:
        likelihood: Prompt and continuation to the natural log-probability of the
            continuation, by the model that gave the answers.
        question: What was asked.
        answer: The answer that is judged, in the paper the one at low temperature.
        samples: Further answers, in the paper ten at temperature 1.
        shots: Examples with their verdicts.

    Returns:
        The natural log-probability of ``" A"``, for ``p_true``.

    Raises:
        InputError: What came back is no log-probability.

    Example:
        >>> p_true_logprob(lambda prompt, continuation: -0.25, "2 + 2?", "4", ["4"])
        -0.25
    """
    prompt = p_true_prompt(question, answer, samples, few_shot=p_true_few_shot(shots))
    value = float(likelihood(prompt, TRUE))
    if not value <= LOGPROB_SLACK:
        msg = f"expected a log-probability of at most 0 from likelihood, got {value}"
        raise InputError(msg)
    return min(value, 0.0)


def _shown(shot: Shot) -> str:
    ideas = "".join(f"{text.strip()} \n" for text in (shot.answer, *shot.samples))
    verdict = TRUE if shot.correct else _FALSE
    return _asked(shot.question, shot.answer, ideas) + verdict


def _asked(question: str, answer: str, ideas: str) -> str:
    return (
        f"Question: {question}\nBrainstormed Answers: {ideas}"
        f"Possible answer: {answer}\n{_ASKED}"
    )


def _p_true(inputs: MethodInputs) -> float:
    return p_true(given(inputs.p_true_logprob))


P_TRUE = FunctionMethod(
    name="p_true",
    source="Kadavath et al. 2022, Language Models (Mostly) Know What They Know",
    function=_p_true,
    limits=Between(0.0, 1.0),
    needs=frozenset({"p_true_logprob"}),
    white_box=True,
)
"""1 - P(True). The paper calls it black-box, but it needs log-probabilities."""
