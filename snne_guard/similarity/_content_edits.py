"""Where the words of one answer turn into those of another, and what that changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from rapidfuzz.distance import Levenshtein

from snne_guard.similarity._function_words import NEGATIONS

__all__ = ["repeated_otherwise", "replaced"]

Words = Sequence[str]


def replaced(
    one: Words, other: Words, news: Collection[str], asked: Collection[str]
) -> bool:
    """Return whether a word of one gave way to a word that the other has besides.

    Two answers with the same words may have them another number of times: each of "two
    tablets in the morning, two in the evening" and "two, three". Or one has another
    "not" than the other, or two words stand in each other's place.

    Args:
        one: The words of an answer in order.
        other: Those of another.
        news: The words that are more than grammar, of both.
        asked: The words of the question.

    Example:
        >>> replaced("a 2 b 2".split(), "a 2 b 3".split(), {"2", "3"}, ())
        True
        >>> replaced("in 1821 he died".split(), "he died in 1821".split(), {"1821"}, ())
        False
    """
    counts, others = Counter(one), Counter(other)
    if counts == others:
        return _exchanged(one, other, {*news})
    more, less = {*counts - others}, {*others - counts}
    turned = not NEGATIONS.isdisjoint(more | less)
    if not (more and less) and not turned:
        return False
    known = {*news, *asked}
    for left, right in _changes(one, other):
        gone, come = known & more & {*left}, known & less & {*right}
        if gone and come and not gone | come <= {*asked}:
            return True
        if turned and _turned(left, right, known):
            return True
    return False


def repeated_otherwise(one: Words, other: Words) -> bool:
    """Return whether two answers repeat their words another number of times in a row.

    Example:
        >>> repeated_otherwise("o o o".split(), "o o".split())
        True
        >>> repeated_otherwise("o o".split(), "x o".split())
        False
    """
    return one != other and _once(one) == _once(other)


def _once(words: Words) -> list[str]:
    return [word for word, _ in groupby(words)]


def _exchanged(one: Words, other: Words, news: set[str]) -> bool:
    """Return whether words of two places stand in each other's."""
    changed = [
        (news.intersection(left), news.intersection(right))
        for left, right in _changes(one, other)
        if len(left) == len(right)
    ]
    return any(
        gone and come and gone.isdisjoint(come) and (come, gone) in changed
        for gone, come in changed
    )


def _turned(left: Words, right: Words, known: Collection[str]) -> bool:
    """Return whether a change is that of a "not", with a word of grammar beside."""
    beside = [
        [word for word in side if word not in NEGATIONS] for side in (left, right)
    ]
    if any(len(words) > 1 for words in beside) or not NEGATIONS & {*left, *right}:
        return False
    return not any(word in known for words in beside for word in words)


def _changes(one: Words, other: Words) -> Iterator[tuple[Words, Words]]:
    """Give what stands in the one and in the other between words of both."""
    left, right = 0, 0
    for block in Levenshtein.editops(one, other).as_matching_blocks():
        if block.a > left or block.b > right:
            yield one[left : block.a], other[right : block.b]
        left, right = block.a + block.size, block.b + block.size
