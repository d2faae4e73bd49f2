"""A similarity of the answers with the question before each, as the paper's LexSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray, Similarity

__all__ = ["WithQuestion", "blind_spots"]


@dataclass(frozen=True, slots=True)
class WithQuestion:
    """Compares ``"{question} {answer}"`` in place of the answers.

    The words of the question are then common to all, so that answers are more alike,
    short ones most of all. The paper's code compares so for LexSim, and not for SNNE.

    Args:
        similarity: What compares the texts.
        name: Its own name.

    Example:
        >>> from snne_guard.similarity import rouge_l
        >>> with_question = WithQuestion(rouge_l, "rouge_l+question")
        >>> with_question(["Paris", "Lyon"], question="Capital of France?")[0, 1]
        np.float64(0.75)
    """

    similarity: Similarity = field(repr=False)
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
        asked = texts if question is None else [f"{question} {text}" for text in texts]
        return self.similarity(asked, question=question)

    def blind_spots(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> bool:
        """Return whether the similarity is blind to some of the answers themselves."""
        return blind_spots(self.similarity, texts, question=question)


def blind_spots(
    similarity: Similarity, texts: Sequence[str], /, *, question: str | None = None
) -> bool:
    """Return whether a similarity cannot see all of some text.

    It asks the similarity's own method ``blind_spots``, which takes what the similarity
    takes and returns a bool; one without such a method is taken to see all.

    Args:
        similarity: What compares the texts.
        texts: The ``n`` texts.
        question: What was asked.

    Example:
        >>> from snne_guard.similarity import rouge_l, rouge_l_paper
        >>> blind_spots(rouge_l_paper, ["Tokyo", "東京"])
        True
        >>> blind_spots(rouge_l, ["Tokyo", "東京"])
        False
    """
    tell = getattr(similarity, "blind_spots", None)
    return bool(tell(texts, question=question)) if callable(tell) else False
