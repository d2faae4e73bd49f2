"""What a question says of the words in its answers: which of them are no news."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from snne_guard.similarity._content_words import canonical_words, names_in
from snne_guard.similarity._function_words import (
    FUNCTION_WORDS,
    NEGATIONS,
    OR,
    YES,
    language_of,
)

__all__ = ["Question"]

_NO_WORDS = frozenset[str]()
_LISTED = re.compile(r"([^\W\d_]+),")


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, as far as it says which words of an answer are news.

    Attributes:
        words: Words that tell nothing where both answers have them.
        offered: Words that it offers as the answer.
        choices: Those of them that stand beside an "or".
        language: Its language, None where it is not known.
    """

    words: frozenset[str]
    offered: frozenset[str]
    choices: frozenset[str]
    language: str | None

    @classmethod
    def read(cls, text: str | None) -> Question:
        """Return what a question holds; None is no question.

        What it offers as an answer is no mere repetition in one: yes and no, and what
        stands around an "or", with all names of such a question.

        Example:
            >>> sorted(Question.read("What is the capital of France?").words)
            ['capital', 'france', 'is', 'of', 'the', 'what']
            >>> sorted(Question.read("Which is older, Paris or Lyon?").words)
            ['is', 'or', 'which']
        """
        if text is None:
            return cls(_NO_WORDS, _NO_WORDS, _NO_WORDS, None)
        tokens = canonical_words(text)
        language = language_of(tokens)
        marks = OR["*"] | OR.get(language or "", _NO_WORDS)
        if marks.isdisjoint(tokens):
            return cls(
                frozenset(tokens) - NEGATIONS - YES, _NO_WORDS, _NO_WORDS, language
            )
        function = FUNCTION_WORDS.get(language or "", _NO_WORDS)
        choices = frozenset(_choices(tokens, marks, function))
        named = {*names_in(text), *map(str.casefold, _LISTED.findall(text))}
        offered = choices | (named - function)
        words = frozenset(tokens) - NEGATIONS - YES - offered
        return cls(words, offered, choices, language)


def _choices(
    tokens: Sequence[str], marks: frozenset[str], function: frozenset[str]
) -> Iterator[str]:
    """Give the words that stand around an "or"."""
    last, awaited = "", False
    for place, word in enumerate(tokens):
        if word in marks:
            beside = tokens[max(place - 1, 0) : place + 2 : 2]
            if last:
                yield last
            letters = all(len(one) == 1 for one in beside)  # A or B
            if letters or all(one in function for one in beside):
                yield from beside
            awaited = True
        elif word not in function:
            if awaited:
                yield word
            last, awaited = word, False
