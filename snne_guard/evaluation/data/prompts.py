"""The prompts of the paper's data sets, word for word, and where their replies end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.evaluation.recording.questions import Question

__all__ = [
    "AESLC",
    "QUESTION_ANSWERING",
    "STOP",
    "XSUM",
    "Prompt",
    "cut",
    "translation",
]

STOP = ("\n\n\n\n", "\n\n\n", "\n\n", "\n", "Question:", "Context:")
"""Texts that end a reply of any data set in the paper; the reply is then stripped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    r"""How a question is put to a model, after some that are answered already.

    The parts are filled with ``question``, ``context`` and ``answer``; what these say
    is never read as a pattern.

    Attributes:
        item: A question, up to the place where the answer begins.
        instruction: Said once, before everything else.
        context: Said before a question that has a context; a context is not shown
            where this is empty.
        answer: What follows the item of a question that is answered.

    Example:
        >>> prompt = Prompt(item="Q: {question}\nA:", instruction="Be brief.\n")
        >>> shot = Question.from_dict({"question": "2+2?", "answers": ["4", "four"]})
        >>> asked = Question.from_dict({"question": "3+3?"})
        >>> print(prompt.render(asked, shots=[shot]))
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
    answer: str = " {answer}\n\n"

    def render(self, question: Question, /, *, shots: Sequence[Question] = ()) -> str:
        """Return the prompt of a question.

        Args:
            question: What is asked.
            shots: Questions with their answers, of which the first one is shown.
        """
        shown = (self._item(shot) + self._answer(shot) for shot in shots)
        return "".join((self.instruction, *shown, self._item(question)))

    def _item(self, question: Question) -> str:
        context = ""
        if self.context and question.context is not None:
            context = self.context.format(context=question.context)
        return context + self.item.format(question=question.text)

    def _answer(self, shot: Question) -> str:
        [answer, *_] = shot.answers or ("",)
        return self.answer.format(answer=answer)


QUESTION_ANSWERING = Prompt(
    instruction="Answer the following question as briefly as possible.\n",
    item="Question: {question}\nAnswer:",
)
"""Of SQuAD, TriviaQA, NQ and BioASQ, from no context; SVAMP adds its own."""

XSUM = Prompt(
    item="Here's the text and it's short one-sentence summary.\n\nText:\n{question}\n\n"
    "Summary (one sentence):\n",
)
"""Of XSum, as in LM-Polygraph."""

AESLC = Prompt(
    item="Write a short subject line for the email. Output only the subject line "
    "itself.\n\nEmail:\n{question}\n\nSubject line:\n",
)
"""Of AESLC."""


def translation(language: str, /) -> Prompt:
    """Return the prompt of WMT14 into English, as in LM-Polygraph.

    Args:
        language: The language of the original, in English.
    """
    return Prompt(
        item=f"Here is a sentence in {language} language and its translation in "
        "English language.\n\nOriginal:\n{question}\nTranslation:\n"
    )


def cut(text: str, /, stops: Sequence[str]) -> str:
    r"""Return a reply up to the first text that ends it, without space around it.

    Example:
        >>> cut(" Paris\nQuestion: Who?", STOP)
        'Paris'
    """
    found = (place for stop in stops if (place := text.find(stop)) >= 0)
    return text[: min(found, default=len(text))].strip()
