"""Signs that two answers differ although the one has all words of the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snne_guard.similarity._content_wording import Wording
from snne_guard.similarity._content_words import Answer
from snne_guard.similarity._function_words import CASES, GRAMMAR, RESERVES

__all__ = ["Side", "differ"]

_HAN = 0x2E80  # from here on scripts without spaces have words of one character


@dataclass(frozen=True, slots=True)
class Side:
    """One of two answers.

    Attributes:
        answer: What it says.
        wording: How.
        news: Its words that are more than grammar.
    """

    answer: Answer
    wording: Wording
    news: frozenset[str]


def differ(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether two answers to the same question differ.

    Args:
        one: An answer.
        other: Another one.
        asked: The words of the question, of which none is news.
    """
    reserved = (one.answer.words ^ other.answer.words) & RESERVES
    return (
        not asked.issuperset(reserved)
        or _bound_otherwise(one.wording, other.wording)
        or _in_capitals(one.answer, other.answer)
        or _roles_swapped(one, other, asked)
        or _cases_swapped(one.answer, other.answer)
        or _qualified(one, other, asked)
        or _qualified(other, one, asked)
        or _left_out(one, other, asked)
        or _left_out(other, one, asked)
    )


def _bound_otherwise(one: Wording, other: Wording) -> bool:
    """Return whether each has another word of grammar of one kind: in, on."""
    if one.binding == other.binding:
        return False
    mine = {kind for kind, _ in one.binding - other.binding}
    return any(kind in mine for kind, _ in other.binding - one.binding)


def _in_capitals(one: Answer, other: Answer) -> bool:
    """Return whether a word of grammar is an abbreviation in one of them: us, US."""
    return any(
        len(word) > 1 and word in one.words and word in other.words
        for word in (one.names ^ other.names) & GRAMMAR
        if word.upper() in (one if word in one.names else other).text
    )


def _roles_swapped(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether the same words come in another order, in the active voice.

    Or in the same order where one of the two is in the passive voice.
    """
    both = one.news & other.news
    new = both - asked
    same = _order(one.answer, new) == _order(other.answer, new)
    if one.wording.passive != other.wording.passive:
        passive, active = one.wording.binding, other.wording.binding
        if other.wording.passive:
            passive, active = active, passive
        verbs = any(kind == "verb" for kind, _ in passive - active)
        return same and verbs and len(new) > 1
    if one.news != other.news:
        return False
    return not same or _order(one.answer, both - new) != _order(
        other.answer, both - new
    )


def _cases_swapped(one: Answer, other: Answer) -> bool:
    """Return whether the same words have each other's articles: der Hund, den Hund."""
    if one.words != other.words or one.words.isdisjoint(CASES):
        return False
    mine = [word for word in one.tokens if word in CASES]
    return mine != [word for word in other.tokens if word in CASES]


def _order(answer: Answer, words: frozenset[str]) -> Sequence[str]:
    return [*dict.fromkeys([word for word in answer.tokens if word in words])]


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


def _left_out(one: Side, other: Side, asked: frozenset[str]) -> bool:
    """Return whether a list of the other has an item that the one leaves out."""
    said = asked | one.answer.words
    return any(
        any(item[0] not in said for item in items)
        and any(item[0] in one.news - asked for item in items)
        for items in other.wording.lists
    )


def _is_number(word: str) -> bool:
    return any(map(str.isdigit, word))


def _has_spaces(word: str) -> bool:
    return len(word) > 1 or ord(word) < _HAN
