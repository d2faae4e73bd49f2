"""The prompts of the paper's data sets, word for word, and where their replies end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.evaluation import Question

__all__ = [
    "AESLC",
    "STOP",
    "SVAMP",
    "WITHOUT_CONTEXT",
    "XSUM",
    "Prompt",
    "Shot",
    "examples",
    "translation",
]

STOP = ("\n\n\n\n", "\n\n\n", "\n\n", "\n", "Question:", "Context:")
"""Texts that end a reply; the reply is then stripped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    r"""How a question is put to a model, after some that are answered already.

    Attributes:
        item: A question, up to the place where its answer begins.
        instruction: Stands once, before everything else.
        context: Stands before a question with a context; without it none is shown.

    Example:
        >>> prompt = Prompt(item="Q: {question}\nA:", instruction="Be brief.\n")
        >>> shot = Question(id="1", question="2+2?", answers=("4", "four"))
        >>> print(prompt.render(Question(id="2", question="3+3?"), shots=[shot]))
        Be brief.
        Q: 2+2?
        A: 4
        <BLANKLINE>
        Q: 3+3?
        A:
    """

    item: str
    instruction: str = ""
    context: str = ""

    def render(self, question: Question, /, *, shots: Sequence[Question] = ()) -> str:
        """Return the prompt of a question, after shots with their first answers."""
        shown = (
            f"{self._item(shot)} {(shot.answers or [''])[0]}\n\n" for shot in shots
        )
        return "".join((self.instruction, *shown, self._item(question)))

    def _item(self, question: Question) -> str:
        context = ""
        if self.context and question.context is not None:
            context = self.context.format(context=question.context)
        return context + self.item.format(question=question.question)


_BRIEFLY = "Answer the following question as briefly as possible.\n"
_QUESTION = "Question: {question}\nAnswer:"

WITHOUT_CONTEXT = Prompt(instruction=_BRIEFLY, item=_QUESTION)
"""Of SQuAD, TriviaQA, NQ-Open and BioASQ, all closed book."""

SVAMP = Prompt(instruction=_BRIEFLY, context="Context: {context}\n", item=_QUESTION)

XSUM = Prompt(
    item="Here's the text and it's short one-sentence summary.\n\nText:\n{question}\n\n"
    "Summary (one sentence):\n"
)
"""As in LM-Polygraph."""

AESLC = Prompt(
    item="Write a short subject line for the email. Output only the subject line "
    "itself.\n\nEmail:\n{question}\n\nSubject line:\n"
)


def translation(language: str, /) -> Prompt:
    """Return the prompt of WMT14 from a language into English, as in LM-Polygraph."""
    return Prompt(
        item=f"Here is a sentence in {language} language and its translation in "
        "English language.\n\nOriginal:\n{question}\nTranslation:\n"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """An example that is shown before pTrue is asked for.

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
