"""Likeness of what two answers say beyond the question and beyond mere grammar."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

import numpy as np

from snne_guard.similarity._content_pair import Reading, Vocabulary
from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_words import Answer
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.types import FloatArray

__all__ = ["ContentPairs", "content_f1"]

_LONG = 1000  # characters


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
    aside, that the other has not. Where c is 1, f is 0.5 at most if each has another
    preposition, auxiliary verb or person; a phrase or list of one has more words in the
    other, the question's aside, or a hyphen more; one alone hedges, or changes a word
    of both by one before it; who did what to whom is turned round; a word that comes
    twice is another one at one of its places; another choice of the question comes
    first; or what no word holds is written otherwise: operators, signs, intervals,
    code, and the capitals of two letters, as in CO and Co. Contractions, dates and the
    numbers of a list's items are spelled in one way, and a clause put in front of a
    sentence is the same behind it.

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
        alike. Texts with the same words are 1 but for the last of these, two empty
            ones too.

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
        self._vocabulary = Vocabulary()
        self._readings: dict[str, Reading] = {}
        self._pairs: dict[tuple[str, str], float] = {}

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return what :func:`content_f1` gives."""
        distinct = list(distinct_texts(texts))
        if question != self._asked:
            self._asked, self._question = question, Question.read(question)
            self._readings.clear()
            self._pairs.clear()
        self._read(distinct)
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

    def _read(self, texts: Iterable[str]) -> None:
        for text in texts:
            if text not in self._readings:
                if text not in self._answers:
                    self._answers[text] = Answer.read(text)
                    _let_others_run(text)
                self._readings[text] = Reading(
                    self._answers[text], self._question, self._vocabulary
                )

    def _pair(self, one: str, other: str) -> float:
        key = (one, other) if one < other else (other, one)
        if key not in self._pairs:
            left, right = key
            self._pairs[key] = self._readings[left].alike(self._readings[right])
            _let_others_run(one)
        return self._pairs[key]


def _let_others_run(text: str) -> None:
    """Give the interpreter away for a moment after work on a long text.

    Scored in a thread beside an event loop, long texts would otherwise hold it for as
    long as it lets one thread run.
    """
    if len(text) > _LONG and threading.current_thread() is not threading.main_thread():
        time.sleep(0)
