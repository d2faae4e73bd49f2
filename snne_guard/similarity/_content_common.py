"""The heaviest common subsequence of the words of two long texts."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from rapidfuzz.distance import LCSseq

__all__ = ["heaviest_common", "nth_character"]

_SURROGATES = range(0xD800, 0xE000)  # no characters of their own in a str to compare
_NARROW = 256  # characters that rapidfuzz looks up at once
# What is cheaper is a guess from times: a step of rapidfuzz compares a character with
# 64 others, one of our own a word with its like.
_STEP = 64
_WIDE_STEPS, _OWN_STEPS = 10, 500


def nth_character(n: int) -> str:
    """Return a character that stands for the n-th word, counted from 0."""
    return chr(n + len(_SURROGATES) * (n >= _SURROGATES.start))


def heaviest_common(
    left: Sequence[str], right: Sequence[str], weights: Mapping[str, int]
) -> int:
    """Return the weight of the heaviest common subsequence of two lists of words.

    Args:
        left: Words.
        right: Other words.
        weights: What each word weighs, at least 0.

    Source:
        Where words repeat much, the longest common subsequence of characters, a word
        as often as it weighs; else Hunt and Szymanski (1977),
        https://doi.org/10.1145/359581.359603, with weights.

    Example:
        >>> weights = {"a": 3, "b": 1, "c": 1}
        >>> heaviest_common(["a", "b", "c"], ["b", "c", "a"], weights)
        3
    """
    common = {word for word in {*left} & {*right} if weights[word]}
    one = [word for word in left if word in common]
    other = [word for word in right if word in common]
    if not common:
        return 0
    unit = math.gcd(*map(weights.__getitem__, common))
    size = sum(map(weights.__getitem__, one)) // unit
    steps = size * (sum(map(weights.__getitem__, other)) // unit // _STEP + 1)
    if len(common) > _NARROW:
        steps *= _WIDE_STEPS
    counts, others = Counter(one), Counter(other)
    if steps < _OWN_STEPS * sum(n * others[word] for word, n in counts.items()):
        return unit * _repeated(one, other, weights, unit)
    return _met(one, other, weights)


def _repeated(
    one: Sequence[str], other: Sequence[str], weights: Mapping[str, int], unit: int
) -> int:
    """Compare a character a unit of weight."""
    heavy = {
        word: nth_character(n) * (weights[word] // unit)
        for n, word in enumerate(dict.fromkeys(one))
    }
    piece = heavy.__getitem__
    return LCSseq.similarity("".join(map(piece, one)), "".join(map(piece, other)))


def _met(one: Sequence[str], other: Sequence[str], weights: Mapping[str, int]) -> int:
    """Go through all that meets: a word of the one with each of its like."""
    places: dict[str, list[int]] = {}
    for place in range(len(other) - 1, -1, -1):
        places.setdefault(other[place], []).append(place)
    # Of what was seen: how far into the other one must go for how much, both rising.
    ends, best = [-1], [0]
    for word in one:
        for place in places[word]:  # backwards, for the word may be met once
            at = bisect_left(ends, place)
            found, stop = best[at - 1] + weights[word], at
            while stop < len(best) and best[stop] <= found:
                stop += 1
            ends[at:stop], best[at:stop] = [place], [found]
    return best[-1]
