"""The words of an answer, and which of them matter whatever was asked."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from snne_guard.similarity._content_spelling import respelled
from snne_guard.similarity._function_words import (
    GRAMMAR,
    LETTERS,
    NEGATIONS,
    NUMBER_WORDS,
    OPPOSITES,
    PARTS_OF_NEGATIONS,
    QUALIFIERS,
    SPELLINGS,
    UNITS,
    YES,
)
from snne_guard.similarity.tokens import unicode_tokens

__all__ = ["Answer", "canonical_words", "names_in"]

_ESSENTIAL = NEGATIONS | YES | OPPOSITES | QUALIFIERS
_REWRITTEN = frozenset(NUMBER_WORDS) | {"cannot"}
_LONG = 3  # digits before the point, more than versions and chapters have
_SHARES = frozenset("%\u2030")
_CURRENCIES = frozenset("$\u20ac\u00a3\u00a5\u20b9")
_LETTERS = re.compile(r"[^\W\d_]+")
_CAPITAL = re.compile(r"[A-Z][A-Za-z]*+")
_ENDS = re.compile(r"[.!?:\n\u3002]")
_WHOLE = re.compile(r"(?<=\d)\.0+(?!\d)")
_LETTER = re.compile(r"(?<![\w'\u2019.])([^\W\d_])(?![\w'\u2019])")
# As an option of a command, or between operators: -a, b = a.
_OPERAND = re.compile(
    r"""(?:(?<![\w-])-|(?:^|[=<>+*/^:;,(\[!&|%-])\s*(?=[^\W\d_]\s*(?:$|[])=<>+*/^:;,!&|%-])))
        ([^\W\d_])(?![\w'\u2019])""",
    re.VERBOSE,
)
_ZEROS = re.compile(r"(\.\d*?[1-9])0+(?!\d)")


@dataclass(frozen=True, slots=True)
class Answer:
    """What one answer says.

    Attributes:
        text: All of it.
        tokens: The words in order.
        words: Each of them once.
        numbers: Those that hold a digit, in order.
        essential: Numbers, units, symbols, letters that stand alone and words that say
            yes or no, or have an opposite.
        names: Words with a capital that nothing else explains.
        qualifiers: Words that make another statement of what they stand beside.
        negated: Whether something turns the statement round.
    """

    text: str
    tokens: tuple[str, ...]
    words: frozenset[str]
    numbers: tuple[str, ...]
    essential: frozenset[str]
    names: frozenset[str]
    qualifiers: frozenset[str]
    negated: bool

    @classmethod
    def read(cls, text: str) -> Answer:
        """Return what a text says.

        Example:
            >>> answer = Answer.read("It wasn't Paris; it cost 5.0 million dollars")
            >>> answer.numbers, answer.negated, sorted(answer.names)
            (('5',), True, ['paris'])
            >>> sorted(answer.essential)
            ['$', '5', 'million', 'not']
        """
        tokens = tuple(canonical_words(text))
        words = frozenset(tokens)
        essential = words & _ESSENTIAL
        if 1 in map(len, words):
            essential |= words.intersection(_letters(text))
        numbers: tuple[str, ...] = ()
        # Most answers are letters alone.
        if not "".join(tokens).isalpha():
            odd = {word for word in words if not word.isalpha()}
            digits = {word for word in odd if _has_digit(word)}
            numbers = tuple([word for word in tokens if word in digits])
            symbols = {word for word in odd if not any(map(str.isalnum, word))}
            essential |= symbols.union(digits, _units(tokens, digits))
        return cls(
            text=text,
            tokens=tokens,
            words=words,
            numbers=numbers,
            essential=essential,
            names=frozenset(names_in(text)),
            qualifiers=words & QUALIFIERS,
            negated=not words.isdisjoint(NEGATIONS)
            or any(part in text for part in PARTS_OF_NEGATIONS),
        )


def canonical_words(text: str, /) -> list[str]:
    """Return the words of a text; numbers, units and negations spelled in one way.

    Example:
        >>> canonical_words("The U.S. can't pay 5.0 % or $20")
        ['the', 'us', 'can', 'not', 'pay', '5', '%', 'or', '20', '$']
    """
    words = unicode_tokens(respelled(text))
    if "".join(words).isalpha() and _REWRITTEN.isdisjoint(words):
        return words
    return list(_rewritten(words))


def _rewritten(words: Sequence[str]) -> Iterator[str]:
    before, held, measured = "", "", False
    for place, word in enumerate(words):
        plain = word.isalpha()
        if plain and not measured and word not in _REWRITTEN:
            yield word
        elif not plain and _has_digit(word):
            if word.isalnum():
                yield word
            else:
                yield from _number(word, before, words[place + 1 : place + 2])
            if held:
                yield held
            held, measured = "", True
        elif word == "$" and not held:
            held = word  # to come behind the number, so that $5 is 5 dollars
        elif word == "cannot":
            yield from ("can", "not")
        else:
            unit = SPELLINGS.get(word, word) if measured else word
            measured = word in NUMBER_WORDS or (measured and unit in UNITS)
            yield NUMBER_WORDS.get(unit, unit)
        before = word
    if held:
        yield held


def names_in(text: str, /) -> Iterator[str]:
    """Give the words whose capital is that of a name, casefolded.

    A word of grammar is one where no sentence starts with it, as in "World War I".

    Example:
        >>> list(names_in("He saw Queen Elizabeth I. The WHO and I agree"))
        ['queen', 'elizabeth', 'i', 'who']
    """
    shouted = text.isupper()
    for word, gap, after_capital in _capitals(text):
        folded = word.casefold()
        starts = not gap or _ENDS.search(gap) is not None
        pronoun = word == "I" and not after_capital
        if folded not in GRAMMAR or not (starts or shouted or pronoun):
            yield folded


def _capitals(text: str) -> Iterator[tuple[str, str, bool]]:
    """Give each word with a capital, what is before it, and whether a capital was.

    What is before it ends where another word does; it is empty where there is none.
    """
    if not text.isascii():
        yield from _any_capitals(text)
        return
    end = -1  # of the capitalised word before
    for found in _CAPITAL.finditer(text):
        start = place = found.start()
        if start and text[start - 1].isalpha():
            continue  # within a word
        while place and not text[place - 1].isalpha():
            place -= 1
        yield found[0], text[place:start] if place else "", place == end
        end = found.end()


def _any_capitals(text: str) -> Iterator[tuple[str, str, bool]]:
    capital, end = False, 0
    for found in _LETTERS.finditer(text):
        word = found[0]
        upper = word[0].isupper()
        if upper:
            yield word, text[end : found.start()] if end else "", capital
        capital, end = upper, found.end()


def _number(word: str, before: str, after: Sequence[str]) -> Iterator[str]:
    """Give a number without idle zeros, and a sign of shares behind it.

    Those of $5.50, 5.50 km and 1200.50 are idle, those of Python 3.10 perhaps not.
    """
    share = word[-1] if word[-1] in _SHARES else ""
    bare = word.removesuffix(share)
    if bare.count(".") == 1:
        bare = _WHOLE.sub("", bare)
        amount = before in _CURRENCIES or not UNITS.isdisjoint(after)
        if share or amount or bare.find(".") >= _LONG:
            bare = _ZEROS.sub(r"\1", bare)
    yield bare
    if share:
        yield share


def _has_digit(word: str) -> bool:
    return word[-1].isdigit() or any(map(str.isdigit, word))


def _letters(text: str) -> Iterator[str]:
    """Give the letters that stand alone and are no words of one letter."""
    for letter in _LETTER.findall(text):
        if letter.isalpha() and letter.casefold() not in LETTERS:
            yield letter.casefold()
    yield from map(str.casefold, _OPERAND.findall(text))


def _units(tokens: Sequence[str], digits: Collection[str]) -> Iterator[str]:
    """Give the units behind numbers, however many of them."""
    measured = False
    for word in tokens:
        if word in digits:
            measured = True
        elif measured and word.isalnum():
            measured = word in UNITS
            if measured:
                yield word
