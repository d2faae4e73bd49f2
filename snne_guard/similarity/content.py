"""The default similarity: what two answers say beyond the question, by words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from snne_guard.similarity.lexical import (
    ALMOST_ONE,
    characters,
    common_length,
    distinct_texts,
    spread,
)
from snne_guard.similarity.structured import NOT_JSON, alike_values, read_json
from snne_guard.similarity.tokens import compatible, is_notation, unicode_tokens
from snne_guard.similarity.words import (
    FUNCTION_WORDS,
    NEGATIONS,
    OPPOSITES,
    OR,
    SCALES,
    SPELLINGS,
)
from snne_guard.types import BoolArray, FloatArray

__all__ = [
    "ASKED",
    "CONTENT_WEIGHT",
    "LONG_QUESTION",
    "WeighedWords",
    "asked_words",
    "content_f1",
    "structured",
]

LONG_QUESTION = 1_000
"""A question of this many characters or more is ignored: it probably holds the text to
answer from, whose words must count in full."""

CONTENT_WEIGHT = 5_000
"""The order of words is compared up to this weight, some 5,000 words of a long answer.
After it common words count in any order, which keeps time linear."""

ASKED = 2
"""Weight of a word of the question."""

_FUNCTION, _WORD, _HEAVY = 1, 8, 24
_HALF = 0.5
_COARSE, _MANY = 8, 200  # weights in pairs of more than 200 tokens are divided by 8
_NONE = frozenset[str]()
_CAPITALISED = re.compile(r"[^\W\d_a-z][^\W\d_]*+")
_SPELLED = frozenset(SPELLINGS)
_US = re.compile(r"\bUS\b")  # not "us"
_CONTRACTION = re.compile(
    r"\b(?:(?P<will>won['\u2019]t)|(?P<can>can(?:['\u2019]t|not)))\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_COUNTRIES = {"U.S.A.": "USA", "U.S.": "US", "U.K.": "UK"}
_OPERATOR = re.compile(r" ?([=+^<>]) ?")

_LABEL = re.compile(
    r"[A-Z](?:(?<=[\w:*,] .)|(?<=[°*(\"'`].)|(?<!\w.)(?=\W*\Z))"
    r"(?:(?<=[IVX])[IVX]*+)?\b(?!['\u2019])"
)
"""Capitals that tell things apart as numbers do: option A, World War II, 5 °C."""
_OPTION = re.compile(r"\((?<!\w\()([a-z])\)")  # option (b), but not option(s)
_UNIT = re.compile(r"\d ?([A-Z][A-Za-z]|[a-z][A-Z]|[kcmdM\u00b5]?[A-Za-z])\b")
"""Units in their own case: 5 MW is not 5 mW, and 5 km not 5 m."""

_SIGN = re.compile(
    r"~~[^~]+~~ | \[[ Xx]\] | (?<=\w)(?:[*+/]|\ [*+/]\ )(?=\w) | \n(?:\ {2,}|\t)\w+",
    re.VERBOSE,
)
"""Struck text, a check box, an operator between words, the indentation of a line."""
_SIGN_TOKENS = frozenset("*+/x")
_PRONOUN = frozenset({"I'"})


def content_f1(texts: Sequence[str], /, *, question: str | None = None) -> FloatArray:
    r"""Compare what every two texts say beyond the question.

    To "What is the capital of France?" the answers "The capital of France is Paris" and
    "The capital of France is Lyon" share six of seven words and agree on nothing. So
    words are weighted:

    - 24: a name (recognised by its capital letter), a number, a symbol or a negation;
    - 8: any other content word;
    - 2: a word of the question that both answers have;
    - 1: a function word of one of nine languages.

    In a pair of more than 200 tokens these weights are 3, 1, 0 and 0. The similarity is
    the mean of F1 and containment, times a factor c:

    .. math::
        f(a, b) = \frac{c}{2} \Big( \frac{L}{(|a| + |b|) / 2}
            + \frac{L}{\min(|a|, |b|)} \Big)

    where L is the weight of the heaviest common subsequence and \|a\| that of all words
    of an answer. c starts at 1 and is halved

    - where each answer has a content word that the other lacks;
    - where only one is negated, or each has a number that the other lacks;
    - where f is still above 0.5, but words are opposites ("on", "off"), or the same
      number has another scale ("million"), or the same content words have other signs:
      operators, check boxes, struck text, indentation, the order of numbers.

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

    Source:
        This library.

    Example:
        >>> answers = ["The capital of France is Paris", "Paris", "It is Lyon"]
        >>> content_f1(answers, question="What is the capital of France?").round(2)
        array([[1.  , 0.79, 0.03],
               [0.79, 1.  , 0.  ],
               [0.03, 0.  , 1.  ]])
    """
    distinct = distinct_texts(texts)
    answers = [_Answer(text) for text in distinct]
    pairs = _Pairs(answers, asked_words(question or ""))
    matrix: FloatArray = np.ones((len(answers), len(answers)))
    for i, j in combinations(range(len(answers)), 2):
        matrix[i, j] = matrix[j, i] = pairs.similarity(answers[i], answers[j])
    return spread(matrix, distinct, texts)


class WeighedWords:
    """The words of a text and what each weighs, whatever it is compared with.

    Attributes:
        tokens: Its words in order.
        words: Its distinct words.
        content: Those that are not function words.
        heavy: Names, numbers, symbols and negations.
        numbers: Numbers, and letters that tell things apart as numbers do.
        negated: Whether it has a negation.
        weights: What each word weighs.
    """

    def __init__(self, text: str) -> None:
        self.tokens = _words(text)
        self.words = frozenset(self.tokens)
        words = self.words
        self.content = words - FUNCTION_WORDS
        names = self.content & {*map(str.casefold, _CAPITALISED.findall(text))}
        symbols = [word for word in words if not word.isalpha()]
        negations = words & NEGATIONS
        self.negated = bool(negations)
        numbers = [word for word in symbols if word.lstrip("-")[:1].isdigit()]
        labels = _LABEL.findall(text) + _OPTION.findall(text)
        if numbers:
            labels += _UNIT.findall(text)
        self.numbers = frozenset(numbers).union([f"{label}'" for label in labels])
        self.heavy = names.union(symbols, negations)
        self.weights = dict.fromkeys(words, _FUNCTION)
        self.weights.update(dict.fromkeys(self.content, _WORD))
        self.weights.update(dict.fromkeys(self.heavy, _HEAVY))


class _Answer(WeighedWords):
    """What is compared of one text, whatever the others and the question are."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text
        self.value = (
            read_json(text) if text.lstrip()[:1] in {"{", "[", "`"} else NOT_JSON
        )
        self.notation = _exactly(text) if is_notation(text) else None

    def signs(self) -> list[str]:
        """Return the signs, then the numbers in the order of their first mention."""
        numbers = dict.fromkeys(word for word in self.tokens if word in self.numbers)
        return [*map(str.strip, _SIGN.findall(self.text)), *numbers]


class _Pairs:
    """Compares answers to one question."""

    def __init__(self, answers: Sequence[_Answer], asked: frozenset[str]) -> None:
        self._asked = asked
        self._character = characters(_NONE.union(*[each.words for each in answers]))

    def similarity(self, a: _Answer, b: _Answer) -> float:
        """Return how alike two answers are, in [0, 1]."""
        if a.value is not NOT_JSON and b.value is not NOT_JSON:
            return alike_values(a.value, b.value, self._strings)
        if a.notation and b.notation:
            return float(a.notation == b.notation)
        if a.words.isdisjoint(b.words):
            return float(a.tokens == b.tokens)
        value = 1.0 if a.tokens == b.tokens else self._overlap(a, b)
        if a.content - b.words and b.content - a.words:
            value /= 2
        numbers_differ = a.numbers - b.numbers and b.numbers - a.numbers
        if a.negated != b.negated or numbers_differ:
            value /= 2
        if value > _HALF and _contradict(a, b):
            value /= 2
        return value

    def _strings(self, a: str, b: str) -> float:
        """Return how alike two texts within JSON are."""
        texts = _Answer(a), _Answer(b)
        return _Pairs(texts, self._asked).similarity(*texts)

    def _overlap(self, a: _Answer, b: _Answer) -> float:
        """Return the mean of F1 and containment, by weight."""
        common = a.words & b.words
        changed = dict.fromkeys((a.heavy ^ b.heavy) & common, _HEAVY)
        for label in (a.numbers & b.numbers) - _PRONOUN:  # "A", where it is no article
            changed[label.rstrip("'").lower()] = _HEAVY
        changed.update(dict.fromkeys(self._asked & common, ASKED))
        scale = _COARSE if len(a.tokens) + len(b.tokens) > _MANY else 1
        sides = [self._encode(answer, changed, scale) for answer in (a, b)]
        if not all(sides):  # of function words alone
            sides = [self._encode(answer, changed, 1) for answer in (a, b)]
        shared = common_length(sides[0], sides[1], CONTENT_WEIGHT)
        of_a, of_b = map(len, sides)
        value = shared / (of_a + of_b) + shared / min(of_a, of_b) / 2
        return min(value, ALMOST_ONE)

    def _encode(self, answer: _Answer, changed: Mapping[str, int], scale: int) -> str:
        """Return an answer with a character for each unit of weight."""
        weights = {**answer.weights, **changed} if changed else answer.weights
        character = self._character
        if scale == 1:
            return "".join([character[word] * weights[word] for word in answer.tokens])
        units = {w: character[w] * (weights[w] // scale) for w in answer.words}
        return "".join([units[word] for word in answer.tokens])


class _Structured:
    """``content_f1`` for methods that group answers, too.

    A Markdown fence around JSON is ignored, and numbers are compared by value.

    Example:
        >>> structured(['{"city": "Paris", "n": 1}', '{"n": 1.0, "city": "Lyon"}'])
        array([[1.  , 0.25],
               [0.25, 1.  ]])
        >>> structured.equivalent(['{"a": 1, "b": 2}', '{"b": 2.0, "a": 1}'])
        array([[ True,  True],
               [ True,  True]])
    """

    name = "structured"

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one."""
        return content_f1(texts, question=question)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts are 1 alike: the same values, or the same words."""
        same: BoolArray = self(texts, question=question) == 1.0
        return same


structured = _Structured()
"""JSON and tool calls, compared value by value."""


def _contradict(a: _Answer, b: _Answer) -> bool:
    """Return whether answers of nearly the same words contradict each other."""
    only_a, only_b = a.words - b.words, b.words - a.words
    if any(OPPOSITES.get(word) in only_b for word in only_a):
        return True
    if a.numbers and a.numbers == b.numbers and SCALES & (only_a | only_b):
        return True
    return a.content ^ b.content <= _SIGN_TOKENS and a.signs() != b.signs()


def asked_words(question: str) -> frozenset[str]:
    """Return the words of a question that hardly count in an answer."""
    if len(question) >= LONG_QUESTION:  # a text to answer from
        return _NONE
    words = frozenset(_words(question))
    choice = "?" in question and not words.isdisjoint(OR)
    return _NONE if choice else words - NEGATIONS


def _exactly(text: str) -> str:
    """Return code or a formula as it is compared."""
    bare = compatible(text).strip().strip("`").rstrip(" .").strip()
    return bare if "\n" in bare else _OPERATOR.sub(r"\1", bare)


def _words(text: str) -> list[str]:
    """Return the tokens of a text, with one spelling of negations and small numbers."""
    if "'" in text or "\u2019" in text or "annot" in text.lower():
        text = _CONTRACTION.sub(lambda found: f"{found.lastgroup or ''} not", text)
    for written, meant in _COUNTRIES.items():
        text = text.replace(written, meant)
    if "US" in text:
        text = _US.sub("USA", text)
    tokens = unicode_tokens(text)
    if _SPELLED.isdisjoint(tokens):
        return tokens
    return [SPELLINGS.get(token, token) for token in tokens]
