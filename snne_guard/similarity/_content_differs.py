"""Signs that two answers differ although the one has all words of the other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from snne_guard.similarity._content_edits import repeated_otherwise, replaced
from snne_guard.similarity._content_lacks import lacks
from snne_guard.similarity._content_question import Question
from snne_guard.similarity._content_side import Side
from snne_guard.similarity._content_wording import Wording
from snne_guard.similarity._content_words import Answer, canonical_words
from snne_guard.similarity._function_words import (
    AGENTS,
    CASES,
    GRAMMAR,
    OPENERS,
    RESERVES,
)

__all__ = ["differ", "fronted", "in_capitals"]

_NO_WORDS = frozenset[str]()


def differ(one: Side, other: Side, question: Question) -> bool:
    """Return whether two answers to the same question differ.

    Args:
        one: An answer.
        other: Another one.
        question: What was asked, the words of which are no news.
    """
    asked = question.words
    reserved = (one.answer.words ^ other.answer.words) & RESERVES
    return (
        not asked.issuperset(reserved)
        or _bound_otherwise(one.wording, other.wording)
        or in_capitals(one.answer, other.answer)
        or _roles_swapped(one, other, asked)
        or _cases_swapped(one.answer, other.answer)
        or _persons_swapped(one.wording, other.wording)
        or _repeated(one, other, asked)
        or _names_swapped(one, other)
        or _chosen_otherwise(one.answer, other.answer, question.choices)
        or lacks(one, other, question)
        or lacks(other, one, question)
    )


def _bound_otherwise(one: Wording, other: Wording) -> bool:
    """Return whether each has another word of grammar of one kind: in, on."""
    if one.binding == other.binding:
        return False
    mine = {kind for kind, _ in one.binding - other.binding}
    return any(kind in mine for kind, _ in other.binding - one.binding)


def fronted(one: Answer, other: Answer) -> bool:
    """Return whether one begins with the clause that ends the other.

    "On Sundays, it is closed" is "It is closed on Sundays".
    """
    if one.words != other.words:
        return False
    return _fronted(one, other.tokens) or _fronted(other, one.tokens)


def _fronted(answer: Answer, tokens: Sequence[str]) -> bool:
    clause, comma, _ = answer.text.partition(",")
    before = len(canonical_words(clause)) if comma else 0
    if not before or answer.tokens[0] not in OPENERS:
        return False
    return (*answer.tokens[before:], *answer.tokens[:before]) == tokens


def in_capitals(one: Answer, other: Answer) -> bool:
    """Return whether a word of grammar is an abbreviation in one of them: us, US."""
    return any(
        len(word) > 1 and word in one.words and word in other.words
        for word in (one.names ^ other.names) & GRAMMAR
        if _in_capitals_alone(word, one.text, other.text)
        or _in_capitals_alone(word, other.text, one.text)
    )


def _in_capitals_alone(word: str, one: str, other: str) -> bool:
    return word.upper() in one and re.search(rf"\b{word}\b", other) is not None


def _roles_swapped(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether the same words come in another order, in the active voice.

    Or in the same order where one of the two is in the passive voice.
    """
    both = one.news & other.news
    new = both - asked
    same = _order(one.answer, new) == _order(other.answer, new)
    if one.wording.passive != other.wording.passive:
        passive, active = (one, other) if one.wording.passive else (other, one)
        return same and len(new) > 1 and _in_the_active(passive, active)
    if one.news != other.news:
        return False
    return not same or _order(one.answer, both - new) != _order(
        other.answer, both - new
    )


def _in_the_active(passive: Side, active: Side) -> bool:
    """Return whether what was done, in the passive voice, is done in the active one."""
    bound = passive.wording.binding - active.wording.binding
    agents = AGENTS.get(passive.language or "", _NO_WORDS)
    tokens = passive.answer.tokens
    return any(kind == "verb" for kind, _ in bound) and any(
        verb in active.answer.words
        for verb, agent in pairwise(tokens)
        if agent in agents
    )


def _cases_swapped(one: Answer, other: Answer) -> bool:
    """Return whether the same words have each other's articles: der Hund, den Hund."""
    if one.words != other.words or one.words.isdisjoint(CASES):
        return False
    mine = [word for word in one.tokens if word in CASES]
    return mine != [word for word in other.tokens if word in CASES]


def _persons_swapped(one: Wording, other: Wording) -> bool:
    """Return whether the same persons come in another order: he told her, she him."""
    mine, theirs = one.persons, other.persons
    return mine != theirs and sorted(mine) == sorted(theirs)


def _repeated(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether a word that comes twice gave way to another, or comes once."""
    mine, theirs = one.answer, other.answer
    if len(mine.tokens) == len(mine.words) and len(theirs.tokens) == len(theirs.words):
        return False
    if repeated_otherwise(mine.tokens, theirs.tokens):
        return True
    return replaced(mine.tokens, theirs.tokens, one.news | other.news, asked)


def _names_swapped(one: Side, other: Side) -> bool:
    """Return whether the words of a name change places: University of Washington."""
    names = one.answer.names & other.answer.names
    return len(names) > 1 and any(
        len(run) > 1
        and names.issuperset(run)
        and any(
            len(run) == len(found) and run != found and sorted(run) == sorted(found)
            for found in other.wording.phrases
        )
        for run in one.wording.phrases
    )


def _chosen_otherwise(one: Answer, other: Answer, choices: frozenset[str]) -> bool:
    """Return whether another choice of the question comes first."""
    if not choices:
        return False
    mine = next(filter(choices.__contains__, one.tokens), "")
    theirs = next(filter(choices.__contains__, other.tokens), "")
    return mine != theirs and "" not in {mine, theirs}


def _order(answer: Answer, words: frozenset[str]) -> Sequence[str]:
    return [*dict.fromkeys([word for word in answer.tokens if word in words])]
