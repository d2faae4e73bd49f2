"""Any similarity of the question and the answers together, as the paper's LexSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from snne_guard.similarity.blindness import blind_spots, is_unseen
from snne_guard.similarity.lexical import distinct_texts, rouge_l_paper
from snne_guard.types import FloatArray, Similarity

__all__ = ["WithQuestion", "is_paper_rouge"]


@dataclass(frozen=True, slots=True)
class WithQuestion:
    """Compares ``"{question} {answer}"`` in place of the answers.

    The words of the question are then in common to all, so that answers are more
    alike, short ones most of all. The paper's code compares so for LexSim on questions
    and answers, and not for SNNE.

    Over ``rouge_l_paper`` an answer whose letters, digits and symbols its tokenizer
    does not see is 0 to every other one, as it is without a question: the question's
    words alone are no likeness. One of mere punctuation is as in the paper's code.

    Args:
        similarity: What compares the texts that come of it.
        name: What a method on it is called by.

    Example:
        >>> from snne_guard.similarity import rouge_l
        >>> with_question = WithQuestion(rouge_l, "rouge_l+question")
        >>> with_question(["Paris", "Lyon"], question="Capital of France?")[0, 1]
        np.float64(0.75)
    """

    similarity: Similarity
    name: str

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one, the question before each.

        Args:
            texts: The ``n`` answers.
            question: What was asked; None compares the answers as they stand.

        Returns:
            ``(n, n)`` matrix of the similarity.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        distinct_texts(texts)
        if question is None:
            return self.similarity(texts, question=question)
        found = self.similarity(self._asked(texts, question), question=question)
        if is_paper_rouge(self.similarity):
            blind = np.array([is_unseen(text) for text in texts], dtype=np.bool_)
            alone = blind[:, None] | blind[None, :]
            found = np.where(alone, np.eye(len(texts)), found)
        return found

    def blind_spots(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> tuple[str, ...]:
        """Return what the similarity says of its blind spots, the question before each.

        Args:
            texts: The ``n`` answers.
            question: What was asked.

        Returns:
            Reason codes; none where the similarity knows no blind spots.
        """
        # The question's letters would hide that rouge-score sees none in an answer.
        if question is not None and not is_paper_rouge(self.similarity):
            texts = self._asked(texts, question)
        return blind_spots(self.similarity, texts, question=question)

    @staticmethod
    def _asked(texts: Sequence[str], question: str) -> list[str]:
        return [f"{question} {text}" for text in texts]


def is_paper_rouge(similarity: Similarity, /) -> bool:
    """Return whether answers are read by rouge-score's tokenizer, which sees [a-z0-9].

    Example:
        >>> is_paper_rouge(WithQuestion(rouge_l_paper, "mine"))
        True
    """
    while isinstance(similarity, WithQuestion):
        similarity = similarity.similarity
    return similarity is rouge_l_paper
