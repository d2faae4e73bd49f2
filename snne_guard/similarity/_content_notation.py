"""What is lost on the way from a text to its words, where it tells answers apart."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from snne_guard.similarity._function_words import GRAMMAR, LETTERS, NEGATIONS, YES

__all__ = ["Notation"]

_SPACES = re.compile(r"\s+")
_SIGNS: tuple[re.Pattern[str], ...] = (
    # A minus before a name: -sin(x), but no dash and no item of a list.
    re.compile(r"(?:^|(?<=[\s=(\[,+*/^]))[-\u2212](?=[^\W\d_]|\(|\u221e)"),
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
    # Options and escapes: -D, \s, %M.
    re.compile(r"(?<![\w-])-[^\W\d_](?!\w)|[\\%][^\W\d_](?![^\W\d_])"),
    # Redirections and shifts, where a path begins, pointers and patterns of names.
    re.compile(r"[<>]+|(?<![\w./])\.{0,2}/(?=\w)|//"),
    re.compile(r"(?<![\w*&])(?:\*{1,2}|&)(?=\.?[^\W\d_])(?![^*\n]*[^\s*]\*)"),
)
# Few are not many, a few are some.
_QUANTITY = re.compile(
    r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\bhis )(?<!\bher )"
    r"\b(?:a\s+)?(?:few|little)\b|\b(?:a|the)\s+number\s+of\b"
)
_DIGIT = re.compile(r"\d")
# What comes before a version: 1.9.0-rc1, 3.13.0a2, 2.0 beta.
_PRERELEASE = re.compile(
    r"(?<=\d)(?:[-. ]?(?:rc|alpha|beta|dev|snapshot|preview|nightly)|[ab](?=\d))"
    r"(?:[-. ]?\d+)?\b"
)
_FEW = re.compile("few|little|number")
_SHORT = re.compile(r"(?<![^\W_])[^\W\d_]{1,2}(?![^\W_])")
_WITHIN = re.compile(r"[a-z0-9][A-Z]")
_CAPITAL_WITHIN = re.compile(r"(?<![^\W_])(?=\w*[a-z0-9][A-Z])[^\W_]{3,}")
_CHOICES = frozenset("abcde")  # also where nothing is to be chosen
_OFTEN = GRAMMAR | NEGATIONS | YES
_MARKS = frozenset("-\u2212'\u2032\u2019!=`[(\\%<>/*&")


@dataclass(frozen=True, slots=True)
class Notation:
    """How an answer is written.

    Attributes:
        signs: Signs that mean the opposite, or another thing, where they are missing.
        written: Operators, intervals, code, options and paths as they stand there, and
            quantities.
        capitals: How letters that stand alone are written, and words of two letters
            that have a capital, or with one within, by what they are without; none of
            grammar.
    """

    signs: tuple[list[str], ...]
    written: tuple[list[str], ...]
    capitals: Mapping[str, set[str]]

    @classmethod
    def read(cls, text: str) -> Notation:
        """Return how a text is written.

        Example:
            >>> Notation.read("f'(x) = -sin(x) in [0, 1)").signs
            (['-'], ["f'"], [], [])
            >>> [one for found in Notation.read("x = [0, 1)").written for one in found]
            ['=', '[0,1)']
        """
        capitals: dict[str, set[str]] = defaultdict(set)
        words = _SHORT.findall(text)
        if _WITHIN.search(text):
            words += _CAPITAL_WITHIN.findall(text)
        for word in words:
            plain = word.casefold()
            if len(word) == 1:
                told = plain not in LETTERS and plain not in _CHOICES
            else:
                told = not word.islower() and plain not in _OFTEN
            if told:
                capitals[plain].add(word)
        folded = text.casefold()
        versions = _PRERELEASE.findall(folded) if _DIGIT.search(text) else []
        quantities = _QUANTITY.findall(folded) if _FEW.search(folded) else []
        return cls(
            signs=(*_found(_SIGNS, text), versions),
            written=(*_found(_WRITTEN, text), quantities),
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
