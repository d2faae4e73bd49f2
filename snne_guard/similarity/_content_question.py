"""What a question says of the words in its answers: what they weigh, what conflicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from snne_guard.similarity._content_words import Answer, canonical_words, names_in
from snne_guard.similarity._function_words import (
    FUNCTION_WORDS,
    GRAMMAR,
    NEGATIONS,
    OR,
    YES,
    language_of,
)

__all__ = ["ESSENTIAL", "FUNCTION", "SHARED", "WORD", "Question"]

FUNCTION, SHARED, WORD, ESSENTIAL = 1, 2, 8, 24
"""Weights of a function word, of a word of the question that both answers have, of any
other word, and of a name, a number, a unit, a symbol or a word that says yes or no."""

_NO_WORDS = frozenset[str]()
_LISTED = re.compile(r"([^\W\d_]+),")


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, as far as it says which words of an answer are news.

    Attributes:
        words: Words that tell nothing where both answers have them.
        offered: Words that it offers as the answer.
        language: Its language, None where it is not known.
    """

    words: frozenset[str]
    offered: frozenset[str]
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
            return cls(_NO_WORDS, _NO_WORDS, None)
        tokens = list(canonical_words(text))
        language = language_of(tokens)
        offered = frozenset(_offered(text, tokens, language))
        return cls(frozenset(tokens) - NEGATIONS - YES - offered, offered, language)

    def shared(self, one: Answer, other: Answer) -> frozenset[str]:
        """Return the words of the question that both answers have in the same order.

        None where the order differs: then the words are the same and say another thing.
        """
        shared = self.words & one.words & other.words
        if len(shared) > 1:
            left = dict.fromkeys(word for word in one.tokens if word in shared)
            right = dict.fromkeys(word for word in other.tokens if word in shared)
            if [*left] != [*right]:
                return _NO_WORDS
        return shared

    def weights(
        self, one: Answer, other: Answer, shared: Collection[str]
    ) -> dict[str, int]:
        """Return what each word of two answers weighs.

        Args:
            one: An answer.
            other: Another one.
            shared: What :meth:`shared` gives for the two.
        """
        essential = one.essential | other.essential | one.names | other.names
        essential |= self.offered
        function = self._function(one, other, _NO_WORDS)
        weights = {
            word: ESSENTIAL
            if word in essential
            else FUNCTION
            if word in function
            else WORD
            for word in one.words | other.words
        }
        return {**weights, **dict.fromkeys(shared, SHARED)}

    def conflicts(self, one: Answer, other: Answer) -> int:
        """Return how many signs there are that two answers say different things.

        The first sign: one of them alone says no or qualifies, or each has a number
        that the other has not, or the same numbers stand in another order. The second:
        each has a word of content that the other has not.
        """
        first = (
            one.negated != other.negated
            or bool((one.qualifiers ^ other.qualifiers) - self.words)
            or _other_numbers(one.numbers, other.numbers)
        )
        function = self._function(one, other, GRAMMAR)
        mine = (one.words - other.words) - (function - one.names - one.essential)
        theirs = (other.words - one.words) - (function - other.names - other.essential)
        return first + bool(mine and theirs)

    def _function(
        self, one: Answer, other: Answer, unknown: frozenset[str]
    ) -> frozenset[str]:
        language = self.language or language_of(one.tokens + other.tokens)
        return unknown if language is None else FUNCTION_WORDS[language]


def _offered(text: str, tokens: Sequence[str], language: str | None) -> Iterator[str]:
    """Give the words that stand around an "or" or before a comma of its list."""
    marks = OR["*"] | OR.get(language or "", _NO_WORDS)
    if marks.isdisjoint(tokens):
        return
    function = FUNCTION_WORDS.get(language or "", _NO_WORDS)
    named = {*names_in(text), *map(str.casefold, _LISTED.findall(text))}
    yield from named - function
    last, awaited = "", False
    for place, word in enumerate(tokens):
        if word in marks:
            beside = tokens[max(place - 1, 0) : place + 2 : 2]
            if last:
                yield last
            if all(one in function for one in beside):
                yield from beside
            awaited = True
        elif word not in function:
            if awaited:
                yield word
            last, awaited = word, False


def _other_numbers(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether neither has all numbers of the other, or they are in no order."""
    if some == others or not some or not others:
        return False
    if sorted(some) == sorted(others):
        return True
    return not (set(some) <= set(others) or set(others) <= set(some))
