"""The words of a text as ``content_f1`` sees them, and the lists it weighs them by."""

from __future__ import annotations

import re
from pathlib import Path

from snne_guard.similarity.tokens import unicode_tokens

__all__ = [
    "FUNCTION_WORDS",
    "NEGATIONS",
    "OPPOSITES",
    "OR",
    "SCALES",
    "content_words",
]


def _lists() -> dict[str, list[str]]:
    """Return the words of each list in ``words.txt``."""
    lists: dict[str, list[str]] = {}
    words: list[str] = []
    source = Path(__file__).with_name("words.txt")
    for line in source.read_text(encoding="utf-8").splitlines():
        if line.endswith(":"):
            words = lists[line[:-1]] = []
        elif not line.startswith("#"):
            words += line.split()
    return lists


_LISTS = _lists()

FUNCTION_WORDS = frozenset(
    word
    for name, words in _LISTS.items()
    if name.startswith("function.")
    for word in words
)
"""Articles, pronouns, auxiliaries, prepositions and conjunctions of nine languages."""

NEGATIONS = frozenset(_LISTS["negations"])
"""Words that turn a statement round."""

_PAIRS = [pair.split("/") for pair in _LISTS["opposites"]]
OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Short words of which one in place of the other turns a statement round."""

OR = frozenset(_LISTS["or"])
"""Words by which a question offers a choice."""

SCALES = frozenset(_LISTS["scales"])
"""Words that change the number beside them."""

_SPELLINGS = dict(pair.split("=") for pair in _LISTS["spellings"])
_SPELLED = frozenset(_SPELLINGS)
_US = re.compile(r"\bUS\b")  # not "us"


def content_words(text: str, /) -> list[str]:
    """Return the tokens of a text, with one spelling of negations and small numbers.

    Example:
        >>> content_words("It isn't two dollars in the U.S.")
        ['it', 'is', 'not', '2', '$', 'in', 'the', 'usa']
    """
    if "n't" in text or "n\u2019t" in text or "annot" in text:
        text = text.replace("\u2019", "'").replace("won't", "will not")
        text = text.replace("an't", "an not").replace("annot", "an not")
        text = text.replace("n't", " not")
    if ".S." in text or ".K." in text:
        text = text.replace("U.S.A.", "USA").replace("U.S.", "US").replace("U.K.", "UK")
    if "US" in text:
        text = _US.sub("USA", text)
    tokens = unicode_tokens(text)
    if _SPELLED.isdisjoint(tokens):
        return tokens
    return [_SPELLINGS.get(token, token) for token in tokens]
