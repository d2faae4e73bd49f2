"""What each word of an answer weighs when it is compared with another answer."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from snne_guard.similarity._function_words import (
    CONTRACTIONS,
    FUNCTION_WORDS,
    NEGATIONS,
    NUMBER_WORDS,
    OPPOSITES,
    OR,
    QUALIFIERS,
    UNITS,
    YES,
    language_of,
)
from snne_guard.similarity.tokens import unicode_tokens

__all__ = ["ESSENTIAL", "FUNCTION", "SHARED", "WORD", "Answer", "Question"]

FUNCTION, SHARED, WORD, ESSENTIAL = 1, 2, 8, 24
"""Weights of a function word, of a word of the question that both answers have, of any
other word, and of a name, a number, a unit, a symbol or a word that says yes or no."""

_NO_WORDS = frozenset[str]()
_ESSENTIAL = NEGATIONS | YES | OPPOSITES | QUALIFIERS
_LETTERS = re.compile(r"[^\W\d_]+")
_SHARES = frozenset("%\u2030")
_OPERATORS = frozenset("/-+*=")
_LISTED = re.compile(r"([^\W\d_]+),")
_ZEROS = re.compile(r"(?<=\d)\.0+(?!\d)|(\.\d*?[1-9])0+(?!\d)")


@dataclass(frozen=True, slots=True)
class Answer:
    """The words of one answer, and which of them matter whatever was asked.

    Attributes:
        tokens: The words in order.
        words: Each of them once.
        numbers: Those that hold a digit.
        units: What the numbers count or measure, signs of currencies too.
        essential: Numbers, units, symbols and words that say yes or no.
        names: Words with a capital letter.
        negated: Whether a word turns the statement round.
    """

    tokens: tuple[str, ...]
    words: frozenset[str]
    numbers: frozenset[str]
    units: frozenset[str]
    essential: frozenset[str]
    names: frozenset[str]
    negated: bool

    @classmethod
    def read(cls, text: str) -> Answer:
        """Return what a text says.

        Example:
            >>> answer = Answer.read("It wasn't Paris; it cost 5.0 million dollars")
            >>> sorted(answer.numbers), sorted(answer.units), answer.negated
            (['5'], ['dollars', 'million'], True)
            >>> sorted(answer.names)
            ['it', 'paris']
        """
        tokens = tuple(_canonical(unicode_tokens(text)))
        words = frozenset(tokens)
        # Most answers are words alone.
        odd = [word for word in words if not word.isalpha()]
        numbers = frozenset(word for word in odd if _has_digit(word))
        symbols = frozenset(word for word in odd if not any(map(str.isalnum, word)))
        units = frozenset(_units(tokens)) if odd else _NO_WORDS
        return cls(
            tokens=tokens,
            words=words,
            numbers=numbers,
            units=units,
            essential=numbers | units | symbols | words & _ESSENTIAL,
            names=frozenset(_names(text)),
            negated=not words.isdisjoint(NEGATIONS),
        )

    def conflicts(self, other: Answer, shared: Collection[str]) -> bool:
        """Return whether two answers say what cannot both be said.

        Args:
            other: The other answer.
            shared: Words of the question that both have, which tell nothing.
        """
        return bool(
            self.negated != other.negated
            or _differ(
                self.numbers.difference(shared), other.numbers.difference(shared)
            )
            or _differ(self.units, other.units)
            or _differ(self.words & OPPOSITES, other.words & OPPOSITES)
            or (self.words ^ other.words) & QUALIFIERS
        )


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, as far as it says which words of an answer are news.

    Attributes:
        words: Words that tell nothing where both answers have them.
        language: Its language, None where it is not known.
    """

    words: frozenset[str]
    language: str | None

    @classmethod
    def read(cls, text: str | None) -> Question:
        """Return what a question holds; None is no question.

        Words that it offers as answers are no mere repetition in an answer: yes and
        no, and what stands around an "or", with all names of such a question.

        Example:
            >>> sorted(Question.read("What is the capital of France?").words)
            ['capital', 'france', 'is', 'of', 'the', 'what']
            >>> sorted(Question.read("Which is older, Paris or Lyon?").words)
            ['is', 'or', 'which']
        """
        if text is None:
            return cls(_NO_WORDS, None)
        tokens = list(_canonical(unicode_tokens(text)))
        language = language_of(tokens)
        words = frozenset(tokens) - NEGATIONS - YES
        return cls(words - _offered(text, tokens, language), language)

    def weights(
        self, one: Answer, other: Answer, shared: Collection[str]
    ) -> dict[str, int]:
        """Return what each word of two answers weighs.

        Args:
            one: An answer.
            other: Another one.
            shared: What :meth:`shared` gives for the two.
        """
        language = self.language or language_of(one.tokens + other.tokens)
        function = FUNCTION_WORDS.get(language or "", _NO_WORDS)
        essential = one.essential | other.essential
        names = one.names | other.names
        weights = {
            word: ESSENTIAL
            if word in essential
            else FUNCTION
            if word in function
            else ESSENTIAL
            if word in names
            else WORD
            for word in one.words | other.words
        }
        return {**weights, **dict.fromkeys(shared, SHARED)}

    def shared(self, one: Answer, other: Answer) -> frozenset[str]:
        """Return the words of the question that both answers have."""
        return self.words & one.words & other.words


def _canonical(tokens: Sequence[str]) -> Iterator[str]:
    """Spell numbers and English negations in one way."""
    before = ""
    for word in tokens:
        if word == "t" and before in CONTRACTIONS:
            yield "not"
        elif _has_digit(word):
            yield _ZEROS.sub(r"\1", word)
        else:
            yield NUMBER_WORDS.get(word, word)
        before = word


def _has_digit(word: str) -> bool:
    return any(map(str.isdigit, word))


def _units(tokens: Sequence[str]) -> Iterator[str]:
    """Give the units behind numbers, however many, and the signs of currencies."""
    measured = False
    for word in tokens:
        if _has_digit(word):
            measured = True
            if word[-1] in _SHARES:
                yield word[-1]
        else:
            measured = measured and word in UNITS
            sign = len(word) == 1 and not word.isalnum() and word not in _OPERATORS
            if measured or sign:
                yield word


def _names(text: str) -> Iterator[str]:
    """Give the words with a capital, casefolded."""
    return (word.casefold() for word in _LETTERS.findall(text) if word[0].isupper())


def _offered(text: str, tokens: Sequence[str], language: str | None) -> frozenset[str]:
    """Return the words that stand around an "or" or before a comma of its list."""
    marks = OR.get(language or "", _NO_WORDS)
    if marks.isdisjoint(tokens):
        return _NO_WORDS
    function = FUNCTION_WORDS.get(language or "", _NO_WORDS)
    offered = {word.casefold() for word in _LISTED.findall(text)}
    offered.update(_names(text))
    for place, token in enumerate(tokens):
        if token in marks:
            before = [word for word in tokens[:place] if word not in function]
            after = [word for word in tokens[place + 1 :] if word not in function]
            offered.update(before[-1:], after[:1])
    return frozenset(offered) - function


def _differ(some: frozenset[str], others: frozenset[str]) -> bool:
    """Return whether neither holds all of the other, both holding something."""
    return bool(some and others) and not (some <= others or others <= some)
