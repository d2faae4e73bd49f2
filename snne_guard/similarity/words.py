"""The words that ``content_f1`` weighs by, read from ``words.txt``."""

from __future__ import annotations

from pathlib import Path

__all__ = ["FUNCTION_WORDS", "NEGATIONS", "OPPOSITES", "OR", "SCALES", "SPELLINGS"]


def _lists() -> dict[str, list[str]]:
    """Return the words of each list."""
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
"""Words that negate a statement."""

_PAIRS = [pair.split("/") for pair in _LISTS["opposites"]]
OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Pairs of short words, such as "on" and "off", that make statements opposite."""

OR = frozenset(_LISTS["or"])
"""Words by which a question offers a choice."""

SCALES = frozenset(_LISTS["scales"])
"""Words that change the number beside them, such as "million" and "minus"."""

SPELLINGS = dict(pair.split("=") for pair in _LISTS["spellings"])
"""Spellings of small numbers and units: "two" is "2"."""
