"""Any similarity of the question and the answers together, as the paper's LexSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray, Similarity

__all__ = ["WithQuestion"]


@dataclass(frozen=True, slots=True)
class WithQuestion:
    """Compares ``"{question} {answer}"`` in place of the answers.

    The words of the question are then in common to all, so that answers are more
    alike, short ones most of all. The paper's code compares so for LexSim on questions
    and answers, and not for SNNE.

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
        if question is not None:
            texts = [f"{question} {text}" for text in texts]
        return self.similarity(texts, question=question)
