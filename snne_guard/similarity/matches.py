"""Exact matches: of the text, of the normalised text, or of the number it states."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.numbers import stated_number
from snne_guard.similarity.pairs import distinct_texts
from snne_guard.types import BoolArray, FloatArray

# Brackets stay, since [3, 4) is not (3, 4], and so does the point of .5.
_OPENING = "\"'`*_ \u00a1\u00ab\u00bf\u2039\u300c\u300e"
_CLOSING = "\"'`*_.,;:!? \u00bb\u2026\u203a\u3001\u3002\u300d\u300f"
_OPTION = re.compile(r"[(\[]?([^\W\d_])[)\]]")


@dataclass(frozen=True, slots=True)
class Match:
    """A similarity of 0 and 1: whether two texts have the same key.

    It is transitive, so methods that group answers can use it too. The key must depend
    on the text alone.

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
        """Return the relation of texts with the same key; it is transitive."""
        del question
        keys = {text: self.key(text) for text in distinct_texts(texts)}
        same = [[keys[a] == keys[b] for b in texts] for a in texts]
        return np.array(same, dtype=np.bool_).reshape(len(texts), len(texts))


def normalised_text(text: str, /) -> str:
    """Return a text case-folded, with single spaces, without outer punctuation.

    Characters are normalised (NFKC), dashes and quotes to one kind each. Quotes and
    emphasis are stripped from both ends, sentence-ending marks from the right end. A
    text that consists of nothing else is kept. A, (A), A. and A) are one option.

    Example:
        >>> normalised_text("  “New\u00a0York.” "), normalised_text("?!")
        ('new york', '?!')
    """
    plain = " ".join(compatible(text).casefold().split())
    bare = plain.lstrip(_OPENING).rstrip(_CLOSING) or plain
    option = _OPTION.fullmatch(bare)
    return option[1] if option else bare


exact = Match("exact", str.strip)
"""The same text, character for character, but for white space around it."""

normalised = Match("normalised", normalised_text)
"""The same text after ``normalised_text``: case, spacing, outer punctuation."""

numeric = Match("numeric", lambda text: stated_number(text) or text.strip())
"""The same number, by ``stated_number``: of a date it sees the last number alone. Texts
without a number are compared as by ``exact``."""
