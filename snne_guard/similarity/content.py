"""The default similarity: what two answers say beyond the question, by words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.json_values import NOT_JSON, alike_values, read_json
from snne_guard.similarity.letters import capital_labels, lone_letters
from snne_guard.similarity.lexical import (
    ALMOST_ONE,
    characters,
    common_length,
    distinct_texts,
    spread,
)
from snne_guard.similarity.symbols import RUN, notation, symbols_in
from snne_guard.similarity.tokens import is_plain, unicode_tokens
from snne_guard.similarity.words import FUNCTION_WORDS, NEGATIONS, OR, SPELLINGS
from snne_guard.types import BoolArray, FloatArray

LONG_QUESTION = 1_000
"""A question of this many characters or more is ignored: it probably holds the text to
answer from, whose words must count in full."""

CONTENT_WEIGHT = 5_000
"""The order of words is compared up to this weight, some 5,000 words of a long answer.
After it common words count in any order, which keeps time linear."""

ASKED = 2
"""Weight of a word of the question."""

OTHER_SYMBOL = 0.2
"""Most that two texts are alike which have the same words and another symbol."""

SAME_WORDS = 0.9
"""Least that two texts are alike which differ in marks of prose alone."""

_FUNCTION, _WORD, _HEAVY = 1, 8, 24
_KNOWN = dict.fromkeys(FUNCTION_WORDS, _FUNCTION) | dict.fromkeys(NEGATIONS, _HEAVY)
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_MANY, _COARSE = 200, 8  # with more tokens in a pair weights are divided, for speed
_Words = frozenset[str]
_NONE = _Words()

_CAPITALS = re.compile(r"[^\W\d_a-z][^\W\d_]*+")
_ASCII_CAPITALS = re.compile("[A-Z][A-Za-z]*+")
_NOT = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_AM = re.compile(r"['\u2019]m\b", re.IGNORECASE)


class ContentF1:
    r"""Compare what every two texts say beyond the question.

    To "What is the capital of France?" the answers "The capital of France is Paris" and
    "The capital of France is Lyon" share six of seven words and agree on nothing. So
    words are weighted:

    - 24: a name (a word with a capital letter), a lone letter that is no word (option
      a, gate 5a), a number, a symbol or a negation;
    - 8: any other content word;
    - 2: a word of the question that both answers have;
    - 1: a function word of one of nine languages.

    In a pair of more than 200 tokens these weights are 3, 1, 1 and 1. The similarity is
    the mean of F1 and containment, times a factor c:

    .. math::
        f(a, b) = \frac{c}{2} \Big( \frac{L}{(|a| + |b|) / 2}
            + \frac{L}{\min(|a|, |b|)} \Big)

    where L is the weight of the heaviest common subsequence and \|a\| that of all words
    of an answer. c is 1, halved where each answer has a content word that the other
    lacks, halved again where each has such a letter that the other lacks, and again
    where only one is negated, each has a number that the other lacks, or the same
    numbers stand in another order.

    Two texts with the same words are at least 0.9 alike where they differ in marks of
    prose alone, and at most 0.2 where one lacks another symbol (``!admin``, ``rm /``).

    Two JSON texts are compared value by value: the mean of all, halved if one is at
    most 0.5 alike. Two pieces of code, formulas, paths or tables are compared exactly,
    but for outer white space.

    Args:
        texts: The ``n`` texts.
        question: What was asked: the user's last words, without retrieved text. It is
            ignored if it has ``LONG_QUESTION`` characters or more, or offers a choice
            ("A or B?"), since its words are then the answers.

    Returns:
        ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1. A value depends on
        the pair and the question alone. It is 1 only where all tokens are the same, or
        all values of JSON.

    Raises:
        InputError: ``texts`` is not a sequence of strings.

    Example:
        >>> answers = ["The capital of France is Paris", "Paris", "It is Lyon"]
        >>> content_f1(answers, question="What is the capital of France?").round(2)
        array([[1.  , 0.79, 0.03],
               [0.79, 1.  , 0.  ],
               [0.03, 0.  , 1.  ]])
    """

    name = "content_f1"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one."""
        return _compare(texts, asked_words(question or ""))

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return the relation of the texts with the same words, or the same values."""
        same: BoolArray = self(texts, question=question) == 1.0
        return same


content_f1 = ContentF1()
"""The default similarity; ``ContentF1`` says what it compares."""


def _compare(texts: Sequence[str], asked: _Words) -> FloatArray:
    """Return the similarity of every two answers to one question."""
    distinct = distinct_texts(texts)
    answers = [*map(_Answer, distinct)]
    words = _NONE.union(*[each.words for each in answers])
    units = _Units(words, 1), _Units(words, _COARSE)
    matrix: FloatArray = np.ones((len(answers), len(answers)))
    for (i, a), (j, b) in combinations(enumerate(answers), 2):
        if a.value is not NOT_JSON and b.value is not NOT_JSON:
            alike = alike_values(
                a.value, b.value, lambda *pair: float(_compare(pair, asked)[0, 1])
            )
        else:
            alike = _alike(a, b, units[len(a.tokens) + len(b.tokens) > _MANY], asked)
        matrix[i, j] = matrix[j, i] = alike
    return spread(matrix, distinct, texts)


def _alike(a: _Answer, b: _Answer, units: _Units, asked: _Words) -> float:
    """Return the similarity of two texts that are not both JSON."""
    exact = bool(a.notation and b.notation)
    if exact:
        alike = float(a.notation == b.notation)
    elif a.tokens == b.tokens:
        alike = 1.0
    elif common := a.words & b.words:
        alike = units.overlap(a, b, common, asked) * _factor(a, b)
    else:
        return 0.0
    if (alike < 1 and a.plain and b.plain) or a.runs != b.runs:
        return alike
    if a.value is not NOT_JSON or b.value is not NOT_JSON:
        return alike
    if a.symbols != b.symbols:
        return min(alike, OTHER_SYMBOL)
    return alike if exact or a.numbers != b.numbers else max(alike, SAME_WORDS)


def _factor(a: _Answer, b: _Answer) -> float:
    """Return the factor c: a half for each kind of contradiction."""
    factor = 1.0
    if not (a.content <= b.words or b.content <= a.words):
        factor /= 2
    if not (a.letters <= b.words or b.letters <= a.words):
        factor /= 2
    known = [b.words.issuperset(a.numbers), a.words.issuperset(b.numbers)]
    reordered = all(known) and a.numbers != b.numbers
    if a.negated != b.negated or reordered or not any(known):
        factor /= 2
    return factor


class _Units:
    """Texts in letters, of each word as many as it weighs: rapidfuzz counts letters."""

    def __init__(self, words: _Words, scale: int) -> None:
        self._words = words
        self._scale = scale
        self._texts: dict[_Answer, str] = {}

    def overlap(self, a: _Answer, b: _Answer, common: _Words, asked: _Words) -> float:
        """Return the mean of F1 and containment, by weight; below 1."""
        one, other = self._text(a), self._text(b)
        least, most = ASKED // self._scale or 1, _HEAVY // self._scale
        # A common word weighs the same in both: as a name, or as one that was asked.
        for word in common & (asked | (a.names ^ b.names)):
            usual = self._usual[word]
            heavy = usual[0] * most
            unit = usual[0] * least if word in asked else heavy
            if usual != unit or heavy != unit:
                one = one.replace(heavy if word in a.names else usual, unit)
                other = other.replace(heavy if word in b.names else usual, unit)
        shared = common_length(one, other, CONTENT_WEIGHT)
        both, shorter = len(one) + len(other), min(len(one), len(other))
        return min(shared / both + shared / shorter / 2, ALMOST_ONE)

    def _text(self, answer: _Answer) -> str:
        if answer not in self._texts:
            most, units = _HEAVY // self._scale, self._usual
            names = {name: units[name][0] * most for name in answer.names}
            units = {**units, **names}
            self._texts[answer] = "".join([units[word] for word in answer.tokens])
        return self._texts[answer]

    @cached_property
    def _usual(self) -> dict[str, str]:
        """The letters of each word where it is no name."""
        return {
            word: letter * ((_KNOWN.get(word) or _weight(word)) // self._scale or 1)
            for word, letter in characters(self._words).items()
        }


class WeighedWords:
    """The words of a text and what each weighs, whatever it is compared with.

    Attributes:
        tokens: Its words in order, small numbers and units in one spelling.
        words: Its distinct words.
        content: Those that are no function words, or are names (the US, option A).
        names: Words with a capital letter, and lone letters that are no words.
        letters: Lone letters that are no words: of a vitamin, a gate, an option.
        numbers: Numbers, in the order of their first mention.
        negated: Whether it has a negation.
        plain: Whether it is ASCII words and marks of prose, and nothing else.
    """

    def __init__(self, text: str) -> None:
        self.tokens, self.words = tokens, words = _words(text)
        self.plain = plain = is_plain(text)
        self.letters, labels = _NONE, _NONE
        if not (text.isascii() and words.isdisjoint(_LETTERS)):
            self.letters = words & lone_letters(text)
        capitals = (_ASCII_CAPITALS if text.isascii() else _CAPITALS).findall(text)
        if not plain or any(map(str.isupper, capitals)):
            labels = words.intersection(map(str.casefold, capital_labels(text)))
        labels |= self.letters
        self.content = (words - FUNCTION_WORDS) | labels
        self.names = self.content.intersection(map(str.casefold, capitals)) | labels
        symbols = [word for word in words if not word.isalpha()]
        numbers = {word for word in symbols if word.lstrip("-")[:1].isdigit()}
        ordered = filter(numbers.__contains__, tokens) if numbers else ()
        self.numbers = [*dict.fromkeys(ordered)]
        self.negated = not words.isdisjoint(NEGATIONS)

    @property
    def weights(self) -> dict[str, int]:
        """What each of its words weighs."""
        weights = {word: _weight(word) for word in self.tokens}
        return {**weights, **dict.fromkeys(self.names, _HEAVY)}


def _weight(word: str) -> int:
    return _KNOWN.get(word) or (_WORD if word.isalpha() else _HEAVY)


class _Answer(WeighedWords):
    """What is compared of one text, whatever the others and the question are."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.value = read_json(text)
        self.text = text
        self.notation = notation(text)

    @cached_property
    def runs(self) -> list[str]:
        """Its words and digits, without all that is between."""
        return RUN.findall(compatible(self.text).casefold())

    @cached_property
    def symbols(self) -> list[str]:
        """The symbols between its words."""
        return symbols_in(self.text)


def asked_words(question: str) -> frozenset[str]:
    """Return the words of a question that hardly count in an answer."""
    if len(question) >= LONG_QUESTION:  # a text to answer from
        return _NONE
    _, words = _words(question)
    choice = "?" in question and not words.isdisjoint(OR)
    return _NONE if choice else words - NEGATIONS


def _words(text: str) -> tuple[list[str], _Words]:
    """Return the tokens of a text in one spelling, and the set of them."""
    if "'" in text or "\u2019" in text:
        text = _AM.sub(" am", _NOT.sub(" not", text))
    tokens = unicode_tokens(text)
    words = frozenset(tokens)
    if not words.isdisjoint(SPELLINGS):
        tokens = [*map(SPELLINGS.get, tokens, tokens)]
        words = frozenset(tokens)
    return tokens, words
