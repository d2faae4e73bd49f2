"""Exact matches: of the text, of the normalised text, or of the number it states."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from snne_guard.similarity.lexical import distinct_texts
from snne_guard.similarity.tokens import compatible, unicode_tokens
from snne_guard.types import BoolArray, FloatArray

__all__ = [
    "Match",
    "exact",
    "normalised",
    "normalised_text",
    "numeric",
    "stated_number",
]

# Brackets stay, since [3, 4) is not (3, 4], and so does the point of .5.
_OPENING = "\"'`*_ \u00a1\u00ab\u00bf\u2039\u300c\u300e"
_CLOSING = "\"'`*_.,;:!? \u00bb\u2026\u203a\u3001\u3002\u300d\u300f"

# Bounded, so that a long run of digits costs little time and memory.
_NUMBER = re.compile(
    r"(-?\d{1,400}(?:\.\d{1,400})?(?:e[+-]?\d{1,3})?|-?\d{1,400}/0*[1-9]\d{0,399})(%?)"
)


@dataclass(frozen=True, slots=True)
class Match:
    """A similarity of 0 and 1: whether two texts have the same key.

    It is transitive, so methods that group answers can use it too.

    Args:
        name: Its name.
        key: The key of a text. It must depend on the text alone.

    Example:
        >>> agrees = Match("agrees", lambda text: text.lower().startswith("yes"))
        >>> agrees(["Yes, it is", "yes", "no"])
        array([[1., 1., 0.],
               [1., 1., 0.],
               [0., 0., 1.]])
    """

    name: str
    key: Callable[[str], Hashable] = field(repr=False)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Return 1 for two texts with the same key, else 0."""
        return self.equivalent(texts, question=question).astype(np.float64)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts have the same key; a transitive relation."""
        del question
        keys = {text: self.key(text) for text in distinct_texts(texts)}
        same = [[keys[a] == keys[b] for b in texts] for a in texts]
        return np.array(same, dtype=np.bool_).reshape(len(texts), len(texts))


def normalised_text(text: str, /) -> str:
    """Return a text case-folded, with single spaces, without outer punctuation.

    Characters are normalised (NFKC), dashes and quotes to one kind each. Quotes and
    emphasis are stripped from both ends, sentence-ending marks from the right end. A
    text that consists of nothing else is kept.

    Example:
        >>> normalised_text("  “New\u00a0York.” "), normalised_text("?!")
        ('new york', '?!')
    """
    plain = " ".join(compatible(text).casefold().split())
    return plain.lstrip(_OPENING).rstrip(_CLOSING) or plain


def stated_number(text: str, /) -> tuple[Fraction, str] | None:
    """Return the number that an answer states: the last one in it, with its sign.

    Times, versions and powers do not count.

    Args:
        text: The answer.

    Returns:
        The exact value, and ``"%"`` where it is a percentage, else ``""``; None if the
        text states no number. Currencies and units are ignored.

    Example:
        >>> stated_number("6 * 3 = 18.0")
        (Fraction(18, 1), '')
        >>> stated_number("It cost $1,200.50!")
        (Fraction(2401, 2), '')
        >>> stated_number("18 percent"), stated_number("none")
        ((Fraction(18, 1), '%'), None)
    """
    tokens = unicode_tokens(text)
    for place in reversed(range(len(tokens))):
        number = _NUMBER.fullmatch(tokens[place])
        if number is None or tokens[place - 1 : place] == ["^"]:  # 25 m^2 states 25
            continue
        is_power = tokens[place + 1 : place + 2] == ["^"]
        return None if is_power else (Fraction(number[1]), number[2])
    return None


exact = Match("exact", str.strip)
"""The same text, character for character, but for white space around it."""

normalised = Match("normalised", normalised_text)
"""The same text after ``normalised_text``: case, spacing, outer punctuation."""

numeric = Match("numeric", lambda text: stated_number(text) or text.strip())
"""The same number, by ``stated_number``: of a date it sees the last number alone. Texts
without a number are compared as by ``exact``."""
