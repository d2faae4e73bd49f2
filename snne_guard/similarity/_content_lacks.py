"""What one answer has besides the words of another that makes it say another thing."""

from __future__ import annotations

import re
from collections.abc import Sequence

from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_side import Side
from snne_guard.similarity._function_words import (
    COUNTRIES,
    GRAMMAR,
    MODIFIERS,
    THAN,
)

__all__ = ["lacks"]

_NO_WORDS = frozenset[str]()
_WHICH = re.compile(r"([^\W\d_]+), ([^\W\d_]+)")
_NO_OTHER_PLACE = COUNTRIES | GRAMMAR
_NEAR = 3  # words behind one that changes what they say
_HAN = 0x2E80  # from here on scripts without spaces have words of one character


def lacks(one: Side, other: Side, question: Question) -> bool:
    """Return whether the other has something that changes what the one says."""
    asked = question.words
    return (
        _qualified(one, other, asked)
        or _modified(one, other)
        or _compounded(one, other)
        or _placed(one, other, asked)
        or _compared(one, other, question)
        or _left_out(one, other, asked)
        or _goes_on(one, other)
    )


def _qualified(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether a phrase of the one has more words in the other: New York."""
    said, names = asked | one.answer.words, other.answer.names
    with_word: dict[str, list[Sequence[str]]] = {}
    for longer in other.wording.phrases - one.wording.phrases:
        if any(word not in said and _has_spaces(word) for word in longer):
            for word in frozenset(longer):
                with_word.setdefault(word, []).append(longer)
    return any(
        _names_more(frozenset(run), longer, names, asked)
        for run in (one.wording.phrases - other.wording.phrases if with_word else ())
        if not asked.issuperset(run) and not all(map(_is_number, run))
        for longer in with_word.get(run[0], ())
    )


def _names_more(
    run: frozenset[str],
    longer: Sequence[str],
    names: frozenset[str],
    asked: frozenset[str],
) -> bool:
    """Return whether a longer run of words names another thing than a shorter one.

    Where what comes behind is a verb, and a word of the question behind it, it is a
    sentence about the same thing: Shakespeare wrote Hamlet.
    """
    if not run.issubset(longer):
        return False
    last = max(place for place, word in enumerate(longer) if word in run)
    if longer[-1] not in asked or not (run | asked).issuperset(longer[:last]):
        return True
    behind = frozenset(longer[last + 1 :]) - asked
    return any(word in names or _is_number(word) for word in behind)


def _modified(one: Side, other: Side) -> bool:
    """Return whether the other changes what a word says by one before it: vice, ex."""
    found = (other.answer.words - one.answer.words) & MODIFIERS
    tokens = other.answer.tokens if found else ()
    for place, word in enumerate(tokens):
        if word in found:
            near = tokens[place + 1 : place + 1 + _NEAR]
            told = next((each for each in near if each in other.news), "")
            key = tokens[place - 1] if place else ""  # of C minor
            if told in one.answer.words or (len(key) == 1 and key in one.answer.words):
                return True
    return False


def _compounded(one: Side, other: Side) -> bool:
    """Return whether the other makes another word of one by a hyphen: re-elected."""
    words = one.answer.words
    return any(
        not words.issuperset(parts)
        and any(part in words and part in other.news for part in parts)
        for parts in other.wording.compounds
    )


def _placed(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether the other says behind a comma which one it is: Paris, Texas."""
    words, text = one.answer.words, other.answer.text
    return ", " in text and any(
        name.casefold() in words
        and which[0].isupper()
        and which.casefold() not in _NO_OTHER_PLACE
        and which.casefold() not in words | asked
        for name, which in _WHICH.findall(text)
    )


def _compared(one: Side, other: Side, question: Question) -> bool:
    """Return whether all that the one names is what the other compares with."""
    marks = THAN.get(one.language or "", _NO_WORDS)
    if marks.isdisjoint(other.answer.words):
        return False
    named = _named(one, question)
    tokens = other.answer.tokens
    where = next(place for place, word in enumerate(tokens) if word in marks)
    front, behind = frozenset(tokens[:where]), frozenset(tokens[where:])
    return (
        bool(named)
        and named <= behind
        and named.isdisjoint(front)
        and not front.isdisjoint(_named(other, question))
    )


def _named(side: Side, question: Question) -> frozenset[str]:
    """Return the names, numbers and choices of an answer, but for those asked about."""
    answer = side.answer
    named = answer.names.union(answer.numbers, answer.words & question.offered)
    return named - question.words


def _left_out(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether a list of the other has an item that the one leaves out."""
    said = asked | one.answer.words
    return any(
        any(item[0] not in said for item in items)
        and any(item[0] in one.news - asked for item in items)
        for items in other.wording.lists
    )


def _goes_on(one: Side, other: Side) -> bool:
    """Return whether a clause of the other ends with a particle more: go, go on."""
    return any(
        before in one.answer.words and (before, word) not in one.wording.particles
        for before, word in other.wording.particles
    )


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word))


def _has_spaces(word: str) -> bool:
    return len(word) > 1 or ord(word) < _HAN
