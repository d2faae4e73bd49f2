"""The default similarity: what two answers say beyond the question, by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property, partial
from itertools import combinations, pairwise

import numpy as np

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.json_values import NOT_JSON, alike_values, read_json
from snne_guard.similarity.lexical import ALMOST_ONE, common_length
from snne_guard.similarity.pairs import distinct_texts, spread
from snne_guard.similarity.tokens import cut, notation
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

OTHER_SIGN = 0.2
"""Most that two texts are alike which have the same words and another sign."""

_WORD, _HEAVY = 8, 24
_LIGHT = FUNCTION_WORDS.union("()[]{};")  # and signs that prose may have too
_KNOWN = dict.fromkeys(_LIGHT, 1) | dict.fromkeys(NEGATIONS, _HEAVY)
_MANY, _COARSE = 200, 8  # with more tokens in a pair weights are divided, for speed
_KNOWN_COARSELY = dict.fromkeys(_LIGHT, 1) | dict.fromkeys(NEGATIONS, _HEAVY // _COARSE)
_Words = frozenset[str]
_NONE = _Words()
_SPELT = frozenset(SPELLINGS)

_CAPITALS = re.compile(r"[^\W\d_a-z][^\W\d_]*+")
_ASCII_CAPITALS = re.compile("[A-Z][A-Za-z]*+")
_RUN = re.compile(r"[^\W_]+")
_NOT = re.compile(r"n['\u2019]t\b", re.IGNORECASE)
_AM = re.compile(r"['\u2019]m\b", re.IGNORECASE)

_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz").union(
    word for word in FUNCTION_WORDS if len(word) == 1
)
# A lone letter that is what was asked for, and no word: behind a digit, a capital, at
# the end of a clause or before a verb.
_LONE = re.compile(
    r"""[\W\d_](?<!['\u2019])([^\W\d_])(?![\w'\u2019])(?:
        (?<=\d.) | (?<=[B-HJ-Z]) | (?<=\w\ A)
      | (?=[^\w\s]|\s*\Z|[^\S\n]*\n|\ (?:is|was|because|since)\b) )""",
    re.VERBOSE,
)
# Or it follows one of these nouns, of which the second may be verbs before an article.
_NOUNS = """
    appendix block category choice class exit factor gate hepatitis influenza letter
    option platform section size team terminal variant vitamin zone
"""
_MAYBE_VERBS = """
    answer case figure grade group key line part plan room step table type
"""
_LETTERED = frozenset(_NOUNS.split())
_MAYBE_LETTERED = frozenset(_MAYBE_VERBS.split())
_LINKS = frozenset(("is", "was", "of"))


class ContentF1:
    r"""Compare what every two texts say beyond the question.

    To "What is the capital of France?" the answers "The capital of France is Paris" and
    "The capital of France is Lyon" share six of seven words and agree on nothing. So
    words are weighted:

    - 24: a name (a word with a capital letter, in one text or both), a lone letter that
      is no word (option a, gate 5a), a number, a sign or a negation;
    - 8: any other content word;
    - 2: a content word of the question that both answers have;
    - 1: a function word of one of nine languages, a bracket.

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

    Two texts that differ in marks of prose alone are 1 alike, and at most 0.2 those
    with the same words and other signs (``!admin``, ``rm /``).

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
    answers = [_Answer(text, asked) for text in distinct]
    weigh = cache(partial(_Weighing, answers))
    matrix: FloatArray = np.ones((len(answers), len(answers)))
    for (i, a), (j, b) in combinations(enumerate(answers), 2):
        if a.is_exact and b.is_exact:
            alike = _alike_forms(a, b, asked)
        elif a.tokens == b.tokens:
            alike = 1.0
        elif a.words.isdisjoint(b.words):
            alike = 0.0
        else:
            scale = _COARSE if len(a.tokens) + len(b.tokens) > _MANY else 1
            alike = weigh(scale).overlap(a, b) * _factor(a, b)
            if not (a.plain and b.plain) and a.runs == b.runs:
                alike = min(alike, OTHER_SIGN)
        matrix[i, j] = matrix[j, i] = alike
    return spread(matrix, distinct, texts)


def _alike_forms(a: _Answer, b: _Answer, asked: _Words) -> float:
    """Return the similarity of JSON, code, formulas or tables."""
    if a.value is NOT_JSON or b.value is NOT_JSON:
        return float(a.notation == b.notation)
    return alike_values(
        a.value, b.value, lambda *pair: float(_compare(pair, asked)[0, 1])
    )


class _Weighing:
    """Answers in letters, of each word as many as it weighs: rapidfuzz counts letters.

    Weights are divided by ``scale``.
    """

    def __init__(self, answers: Sequence[_Answer], scale: int) -> None:
        words = _NONE.union(*[each.words for each in answers])
        self._heavy, self._asked = _HEAVY // scale, ASKED // scale or 1
        usual, known = _WORD // scale, _KNOWN if scale == 1 else _KNOWN_COARSELY
        self._units = units = {
            word: chr(place)
            * (known.get(word) or (usual if word.isalpha() else self._heavy))
            for place, word in enumerate(words)
        }
        self._texts: dict[_Answer, str] = {}
        for each in answers:
            text = "".join([units[word] for word in each.tokens])
            self._texts[each] = self._reweighed(text, each.names, self._heavy)

    def overlap(self, a: _Answer, b: _Answer) -> float:
        """Return the mean of F1 and containment, by weight; below 1."""
        one, other = self._texts[a], self._texts[b]
        if asked := a.asked & b.asked:
            one = self._reweighed(one, asked, self._asked, a.names)
            other = self._reweighed(other, asked, self._asked, b.names)
        # A name in one of them is one in both.
        one = self._reweighed(one, b.names & a.others, self._heavy)
        other = self._reweighed(other, a.names & b.others, self._heavy)
        shared = common_length(one, other, CONTENT_WEIGHT)
        both, shorter = len(one) + len(other), min(len(one), len(other))
        return min(shared / both + shared / shorter / 2, ALMOST_ONE)

    def _reweighed(
        self, text: str, words: _Words, weight: int, names: _Words = _NONE
    ) -> str:
        """Return a text in which words weigh another weight."""
        for word in words:
            unit = self._units[word]
            before = unit[0] * self._heavy if word in names else unit
            text = text.replace(before, unit[0] * weight)
        return text


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
        tokens, self.plain = _words(text)
        self.tokens = tokens
        self.words = words = frozenset(tokens)
        self.letters = _NONE
        if not words.isdisjoint(_LETTERS):
            found = {*map(str.casefold, _LONE.findall(f"\n{text}"))}
            if not (words.isdisjoint(_LETTERED) and words.isdisjoint(_MAYBE_LETTERED)):
                found |= _LETTERS.intersection(_letters_behind_nouns(tokens))
            self.letters = words & found
        capitals = (_ASCII_CAPITALS if text.isascii() else _CAPITALS).findall(text)
        acronyms = [word.casefold() for word in capitals if word[1:].isupper()]
        sure_names = self.letters.union(words.intersection(acronyms))
        self.content = (words - _LIGHT) | sure_names
        self.names = self.content.intersection(map(str.casefold, capitals)) | sure_names
        self.numbers: list[str] = []
        if not "".join(words).isalpha():
            signs = {word for word in words if not word.isalpha()}
            digits = {word for word in signs if word.lstrip("-")[:1].isdigit()}
            self.numbers = [*dict.fromkeys(filter(digits.__contains__, tokens))]
        self.negated = not words.isdisjoint(NEGATIONS)

    @property
    def weights(self) -> dict[str, int]:
        """What each of its words weighs."""
        weights = {word: _weight(word) for word in self.tokens}
        return {**weights, **dict.fromkeys(self.names, _HEAVY)}


def _letters_behind_nouns(tokens: Iterable[str]) -> Iterator[str]:
    """Yield the letters of: vitamin a, the answer is c."""
    for noun, letter in pairwise(word for word in tokens if word not in _LINKS):
        if noun in _LETTERED or (noun in _MAYBE_LETTERED and letter not in "ai"):
            yield letter


def _weight(word: str) -> int:
    return _KNOWN.get(word) or (_WORD if word.isalpha() else _HEAVY)


class _Answer(WeighedWords):
    """What is compared of one text: with words that were asked for, and all others."""

    def __init__(self, text: str, asked: _Words) -> None:
        super().__init__(text)
        self.text = text
        self.asked = self.content & asked
        self.others = self.words - self.names - self.asked
        self.value = read_json(text)
        self.notation = notation(text, plain=self.plain)
        self.is_exact = bool(self.notation) or self.value is not NOT_JSON

    @cached_property
    def runs(self) -> list[str]:
        """Its words and digits, without any signs."""
        return _RUN.findall(compatible(self.text).casefold())


def asked_words(question: str) -> frozenset[str]:
    """Return the words of a question that hardly count in an answer."""
    if len(question) >= LONG_QUESTION:  # a text to answer from
        return _NONE
    words = frozenset(_words(question)[0])
    choice = "?" in question and not words.isdisjoint(OR)
    return _NONE if choice else words - NEGATIONS


def _words(text: str) -> tuple[list[str], bool]:
    """Return the tokens of a text in one spelling, and whether it is plain."""
    if "'" in text or "\u2019" in text:
        text = _AM.sub(" am", _NOT.sub(" not", text))
    tokens, plain = cut(text)
    if not _SPELT.isdisjoint(tokens):
        tokens = [*map(SPELLINGS.get, tokens, tokens)]
    return tokens, plain
