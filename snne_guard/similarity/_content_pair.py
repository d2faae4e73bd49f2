"""Two answers to one question: what their words weigh, and how alike they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property

from rapidfuzz.distance import LCSseq

from snne_guard.similarity._content_common import heaviest_common, nth_character
from snne_guard.similarity._content_differs import differ, fronted, in_capitals
from snne_guard.similarity._content_notation import Notation
from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_side import Side
from snne_guard.similarity._content_wording import Wording
from snne_guard.similarity._content_words import Answer
from snne_guard.similarity._function_words import (
    FUNCTION_WORDS,
    GRAMMAR,
    languages_in,
    most_frequent,
)

__all__ = ["ESSENTIAL", "FUNCTION", "SHARED", "WORD", "Reading", "Vocabulary"]

FUNCTION, SHARED, WORD, ESSENTIAL = 1, 2, 8, 24
"""Weights of a function word, of a word of the question that both answers have, of any
other word, and of a name, a number, a unit, a symbol or a word that says yes or no."""

_CONFLICT = 0.5
_MANY = 2000  # words, of which only the heavier ones count
_COARSE = 8
_LONG = 150 * 150  # pairs of words
_NO_WORDS = frozenset[str]()


class Vocabulary(dict[str, str]):
    """A character for each word, found when first met."""

    def __missing__(self, word: str) -> str:
        found = self[word] = nth_character(len(self))
        return found


class Reading:
    """One answer, read under a question; for one thread.

    Args:
        answer: What it says.
        question: What was asked.
        vocabulary: Characters for words, the same for all answers to compare.
    """

    def __init__(
        self, answer: Answer, question: Question, vocabulary: Vocabulary
    ) -> None:
        self.answer = answer
        self.question = question
        self.heavy = answer.essential | answer.names | question.offered
        self.asked = asked = question.words & answer.words
        # In the order in which they come first.
        self.asked_order = tuple(
            dict.fromkeys([word for word in answer.tokens if word in asked])
        )
        self.qualifiers = answer.qualifiers - question.words
        self._vocabulary = vocabulary
        self._encoded: dict[str | None, str] = {}
        self._sides: dict[str | None, Side] = {}
        self._news: dict[str | None, frozenset[str]] = {}

    @cached_property
    def languages(self) -> Counter[str]:
        """How many function words of each language there are."""
        return languages_in(self.answer.tokens)

    @cached_property
    def notation(self) -> Notation:
        """How it is written, beside its words."""
        return Notation.read(self.answer.text)

    def alike(self, other: Reading) -> float:
        """Return how alike this and another answer to the question are, in [0, 1]."""
        mine, theirs = self.answer.tokens, other.answer.tokens
        if mine == theirs or (
            len(mine) == len(theirs) and fronted(self.answer, other.answer)
        ):
            written = self.notation.differs(other.notation)
            otherwise = written or in_capitals(self.answer, other.answer)
            return _CONFLICT if otherwise else 1.0
        if not mine or not theirs:
            return 0.0
        language = self.question.language
        if language is None:
            language = most_frequent(self.languages + other.languages)
        compared = _by_words if len(mine) * len(theirs) > _LONG else _by_characters
        common, weight, others = compared(self, other, language)
        found = common / (weight + others) + common / min(weight, others) / 2
        signs = self.conflicts(other, language)
        if signs:
            return conflicting(found, signs)
        if found > _CONFLICT and self.differs(other, language):
            return _CONFLICT
        return found

    def shared(self, other: Reading) -> Collection[str]:
        """Return the words of the question that both answers have in the same order.

        None where the order differs: then the words are the same and say another thing.
        """
        shared = self.asked & other.asked
        if len(shared) > 1 and self.asked_order != other.asked_order:
            mine = [word for word in self.asked_order if word in shared]
            if mine != [word for word in other.asked_order if word in shared]:
                return _NO_WORDS
        return shared

    def conflicts(self, other: Reading, language: str | None) -> int:
        """Return how many signs there are that two answers say different things.

        The first sign: one of them alone says no or qualifies, or each has a number
        that the other has not, or the same numbers stand in another order. The second:
        each has a word of content that the other has not.
        """
        mine, theirs = self.answer, other.answer
        first = (
            mine.negated != theirs.negated
            or self.qualifiers != other.qualifiers
            or _other_numbers(mine.numbers, theirs.numbers)
        )
        news = not self.news(language) <= theirs.words
        return first + (news and not other.news(language) <= mine.words)

    def news(self, language: str | None) -> frozenset[str]:
        """Return the words that are more than grammar."""
        if language not in self._news:
            answer = self.answer
            grammar = GRAMMAR if language is None else FUNCTION_WORDS[language]
            told = answer.words & (answer.names | answer.essential)
            self._news[language] = (answer.words - grammar) | told
        return self._news[language]

    def differs(self, other: Reading, language: str | None) -> bool:
        """Return whether two answers differ without such a sign."""
        if self.notation.differs(other.notation):
            return True
        return differ(self.side(language), other.side(language), self.question)

    def side(self, language: str | None) -> Side:
        """Return what to look at for signs that two answers differ."""
        if language not in self._sides:
            wording = Wording.read(self.answer, language)
            self._sides[language] = Side(
                self.answer, wording, self.news(language), language
            )
        return self._sides[language]

    def encoded(self, language: str | None) -> str:
        """Return the words as characters, each as often as it weighs by itself."""
        if language not in self._encoded:
            function = _function_words(language)
            character = self._vocabulary
            pieces = {
                word: character[word] * self._weight(word, function)
                for word in self.answer.words
            }
            piece = pieces.__getitem__
            self._encoded[language] = "".join(map(piece, self.answer.tokens))
        return self._encoded[language]

    def beside(
        self, other: Reading, shared: Collection[str], language: str | None
    ) -> str:
        """Return the words as characters, each as often as it weighs here.

        Args:
            other: The answer that this one is compared with.
            shared: What :meth:`shared` gives for the two.
            language: The language of both.
        """
        encoded = self.encoded(language)
        function = _function_words(language)
        for word in shared:
            character = self._vocabulary[word]
            piece = character * self._weight(word, function)
            encoded = encoded.replace(piece, character * SHARED)
        for word in other.heavy - self.heavy:
            # A name there may be written small here.
            if word in self.answer.words and word not in shared:
                character = self._vocabulary[word]
                piece = character * self._weight(word, function)
                encoded = encoded.replace(piece, character * ESSENTIAL)
        return encoded

    def _weight(self, word: str, function: frozenset[str]) -> int:
        if word in self.heavy:
            return ESSENTIAL
        return FUNCTION if word in function else WORD


def conflicting(found: float, signs: int) -> float:
    """Return what is left of a likeness beside signs of a conflict: half for each."""
    return found * _CONFLICT**signs


def _by_characters(
    one: Reading, other: Reading, language: str | None
) -> tuple[int, int, int]:
    """Return the weight of what two answers have in common, and of each of them.

    A word as often as it weighs: the longest common subsequence is the heaviest.
    """
    shared = one.shared(other)
    left = one.beside(other, shared, language)
    right = other.beside(one, shared, language)
    return LCSseq.similarity(left, right), len(left), len(right)


def _by_words(
    one: Reading, other: Reading, language: str | None
) -> tuple[int, int, int]:
    """Return the same of long answers."""
    function, heavy = _function_words(language), one.heavy | other.heavy
    mine, theirs = one.answer, other.answer
    weights = {
        word: ESSENTIAL if word in heavy else FUNCTION if word in function else WORD
        for word in mine.words | theirs.words
    }
    weights.update(dict.fromkeys(one.shared(other), SHARED))
    if len(mine.tokens) + len(theirs.tokens) > _MANY:
        # The time grows with the square of the weights.
        coarse = {word: weight // _COARSE for word, weight in weights.items()}
        if any(map(coarse.get, mine.words)) and any(map(coarse.get, theirs.words)):
            weights = coarse
    common = heaviest_common(mine.tokens, theirs.tokens, weights)
    return common, _sum(mine.tokens, weights), _sum(theirs.tokens, weights)


def _sum(words: Iterable[str], weights: Mapping[str, int]) -> int:
    return sum(map(weights.__getitem__, words))


def _function_words(language: str | None) -> frozenset[str]:
    return _NO_WORDS if language is None else FUNCTION_WORDS[language]


def _other_numbers(some: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether neither has all numbers of the other, or they are in no order."""
    if some == others or not some or not others:
        return False
    if sorted(some) == sorted(others):
        return True
    return not (set(some) <= set(others) or set(others) <= set(some))
