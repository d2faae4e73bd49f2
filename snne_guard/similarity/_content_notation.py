"""What is lost on the way from a text to its words, where it tells answers apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snne_guard.similarity._function_words import GRAMMAR, NEGATIONS, YES

__all__ = ["Notation"]

_SPACES = re.compile(r"\s+")
_SIGNS: tuple[re.Pattern[str], ...] = (
    # A minus before a name: -sin(x), but no dash and no item of a list.
    re.compile(r"(?:^|(?<=[\s=(\[,+*/^]))[-\u2212](?=[^\W\d_]|\()"),
    # Derivatives: f'(x), f''.
    re.compile(r"(?<![^\W_])[^\W\d_]['\u2032\u2019]+(?![^\W_])"),
    # Factorials; behind a number at the end it is an exclamation.
    re.compile(r"(?<![\w!])(?:\d+!(?=\s*\S)|[^\W\d_]!)(?!=)"),
)
_WRITTEN: tuple[re.Pattern[str], ...] = (
    re.compile(r"[=!<>~]*="),
    # Intervals and slices: [0, 1), a[:1].
    re.compile(r"[\[(][-+\u2212\d.\s\u221e]*[,:][-+\u2212\d.\s\u221e]*[\])]"),
    re.compile(r"(?<=`)[^`\n]+(?=`)"),
)
_SHORT = re.compile(r"(?<![^\W_])(?:[^\W\d_]{2})(?![^\W_])")
_OFTEN = GRAMMAR | NEGATIONS | YES
_MARKS = frozenset("-\u2212'\u2032\u2019!=`[(")


@dataclass(frozen=True, slots=True)
class Notation:
    """How an answer is written.

    Attributes:
        signs: Signs that mean the opposite, or another thing, where they are missing.
        written: Operators, intervals and code as they stand there.
        capitals: How words of two letters are written that have a capital, by what they
            are without; none of grammar.
    """

    signs: tuple[list[str], ...]
    written: tuple[list[str], ...]
    capitals: Mapping[str, set[str]]

    @classmethod
    def read(cls, text: str) -> Notation:
        """Return how a text is written.

        Example:
            >>> Notation.read("f'(x) = -sin(x) in [0, 1)").signs
            (['-'], ["f'"], [])
            >>> Notation.read("f'(x) = -sin(x) in [0, 1)").written
            (['='], ['[0,1)'], [])
        """
        capitals: dict[str, set[str]] = defaultdict(set)
        for word in _SHORT.findall(text):
            if not word.islower() and word.casefold() not in _OFTEN:
                capitals[word.casefold()].add(word)
        return cls(
            signs=_found(_SIGNS, text),
            written=_found(_WRITTEN, text),
            capitals=capitals,
        )

    def differs(self, other: Notation) -> bool:
        """Return whether the same words written in two ways say different things.

        Example:
            >>> CO, Co = Notation.read("It is CO"), Notation.read("It is Co")
            >>> CO.differs(Co), CO.differs(Notation.read("it is co"))
            (True, False)
        """
        if self.signs != other.signs:
            return True
        # What one of them spells out in words is no other thing.
        written = zip(self.written, other.written, strict=True)
        if any(mine and theirs and mine != theirs for mine, theirs in written):
            return True
        return any(
            written.isdisjoint(other.capitals[word])
            for word, written in self.capitals.items()
            if word in other.capitals
        )


def _found(patterns: Sequence[re.Pattern[str]], text: str) -> tuple[list[str], ...]:
    if _MARKS.isdisjoint(text):
        return tuple([] for _ in patterns)
    return tuple(
        [_SPACES.sub("", found) for found in pattern.findall(text)]
        for pattern in patterns
    )
