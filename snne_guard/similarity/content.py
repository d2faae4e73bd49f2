"""Likeness of what two answers say beyond the question and beyond mere grammar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rapidfuzz.distance import LCSseq

from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_words import Answer
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray

__all__ = ["ContentPairs", "content_f1"]

_CONFLICT = 0.5
_MANY = 2000
_COARSE = 8
_SURROGATES = range(0xD800, 0xE000)  # no characters of their own in a str to compare


def content_f1(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    r"""Compare what every two texts say beyond the question.

    To "What is the capital of France?" the answers "The capital of France is Paris" and
    "The capital of France is Lyon" share six of seven words and agree in nothing. Here
    words have weights, and

    .. math::
        f(a, b) = \frac{c}{2} \Big( \frac{L}{(|a| + |b|) / 2}
            + \frac{L}{\min(|a|, |b|)} \Big)

    where L is the heaviest common subsequence of the words, so that the order counts,
    and \|a\| the weight of all words of an answer. The first part is F1; the second
    forgives, by half, that one answer says more than the other.

    A word of the question that both answers have weighs 2, unless the question offers
    it as an answer (around an "or") or the answers have such words in another order;
    an article, a pronoun or another function word 1, where the language is known; a
    name, a number, a unit, a symbol, yes, no or a word that has an opposite 24; any
    other word 8. Of more than 2,000 words together only the last two kinds count, for 3
    and 1.

    c is 1; half of it where one answer alone says no or qualifies, or each has a number
    that the other has not; and half again where each has any word, function words
    aside, that the other has not.

    A value depends on the two texts and the question alone. Names are told by a capital
    letter, so texts in scripts without capitals have none. The language is that of the
    question, else of the two texts, if it is one of English, German, French, Spanish,
    Italian, Portuguese, Dutch, Swedish and Russian; words of any other weigh 8.

    Args:
        texts: The ``n`` texts. Equal texts are computed once.
        question: What was asked: the user's last words alone. A context that answers
            are drawn from is none, its words are what they should agree in.

    Returns:
        ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1; higher is more
        alike. Texts with the same words are 1, two empty ones too.

    Raises:
        InputError: ``texts`` is not a sequence of strings.

    Source:
        This library; what was tried and how it ranks answers is in ``docs/scores.md``.

    Example:
        >>> answers = ["The capital of France is Paris", "Paris", "It is Lyon"]
        >>> content_f1(answers, question="What is the capital of France?").round(2)
        array([[1.  , 0.79, 0.03],
               [0.79, 1.  , 0.  ],
               [0.03, 0.  , 1.  ]])
    """
    return ContentPairs()(texts, question=question)


class ContentPairs:
    """``content_f1`` that remembers the pairs which it compared; for one thread.

    Example:
        >>> pairs = ContentPairs()
        >>> pairs(["5 km", "5 miles"]).round(2)
        array([[1.  , 0.25],
               [0.25, 1.  ]])
    """

    def __init__(self) -> None:
        self._asked: str | None = None
        self._question = Question.read(None)
        self._answers: dict[str, Answer] = {}
        self._characters: dict[str, str] = {}
        self._pairs: dict[tuple[str, str], float] = {}

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what :func:`content_f1` gives."""
        if question != self._asked:
            self._asked, self._question = question, Question.read(question)
            self._pairs.clear()
        distinct = list(distinct_texts(texts))
        for text in distinct:
            if text not in self._answers:
                self._read(text)
        matrix: FloatArray = np.eye(len(distinct))
        for row, one in enumerate(distinct):
            for column, other in enumerate(distinct[:row]):
                found = self._pair(one, other)
                matrix[row, column] = matrix[column, row] = found
        if len(distinct) == len(texts):
            return matrix
        place = {text: row for row, text in enumerate(distinct)}
        rows = np.array([place[text] for text in texts])
        spread: FloatArray = matrix[rows[:, None], rows]
        return spread

    def _read(self, text: str) -> None:
        self._answers[text] = answer = Answer.read(text)
        for word in answer.words:
            if word not in self._characters:
                code = len(self._characters)
                code += len(_SURROGATES) * (code >= _SURROGATES.start)
                self._characters[word] = chr(code)

    def _pair(self, one: str, other: str) -> float:
        key = (one, other) if one < other else (other, one)
        if key not in self._pairs:
            self._pairs[key] = self._compared(*key)
        return self._pairs[key]

    def _compared(self, one: str, other: str) -> float:
        left, right = self._answers[one], self._answers[other]
        if left.tokens == right.tokens:
            return 1.0
        if not left.tokens or not right.tokens:
            return 0.0
        shared = self._question.shared(left, right)
        weights = self._question.weights(left, right, shared)
        if len(left.tokens) + len(right.tokens) > _MANY:
            # The time grows with the square of the weights.
            coarse = {word: weight // _COARSE for word, weight in weights.items()}
            if any(map(coarse.get, left.words)) and any(map(coarse.get, right.words)):
                weights = coarse
        # A word as often as it weighs: the longest common subsequence is the heaviest.
        heavy = {word: self._characters[word] * n for word, n in weights.items()}
        a = "".join([heavy[word] for word in left.tokens])
        b = "".join([heavy[word] for word in right.tokens])
        common: int = LCSseq.similarity(a, b)
        found = common / (len(a) + len(b)) + common / min(len(a), len(b)) / 2
        return found * _CONFLICT ** self._question.conflicts(left, right)
