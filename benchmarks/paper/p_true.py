"""The examples that the paper shows a model before it asks for pTrue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Shot", "examples"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One example.

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


def examples(shots: Sequence[Shot]) -> str:
    """Return examples for ``p_true_prompt``, each with its verdict.

    Here the judged answer comes first among the ideas, and a space ends each of their
    lines, as in the code of Farquhar et al. 2024.
    """
    return "\n".join(map(_shown, shots))


def _shown(shot: Shot) -> str:
    ideas = "".join(f"{text.strip()} \n" for text in (shot.answer, *shot.samples))
    verdict = "A" if shot.correct else "B"
    return (
        f"Question: {shot.question}\nBrainstormed Answers: {ideas}"
        f"Possible answer: {shot.answer}\n"
        f"Is the possible answer:\nA) True\nB) False\nThe possible answer is: {verdict}"
    )
