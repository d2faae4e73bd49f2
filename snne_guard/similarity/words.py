"""The words that ``content_f1`` weighs by, read from ``words.toml``."""

from __future__ import annotations

import tomllib
from pathlib import Path

__all__ = ["FUNCTION_WORDS", "NEGATIONS", "OPPOSITES", "OR", "SCALES", "SPELLINGS"]

_FILE = Path(__file__).with_name("words.toml")
_LISTS = tomllib.loads(_FILE.read_text(encoding="utf-8"))

FUNCTION_WORDS = frozenset(" ".join(_LISTS["function"].values()).split())
"""Articles, pronouns, auxiliaries, prepositions and conjunctions of nine languages."""

NEGATIONS = frozenset(_LISTS["negations"].split())
"""Words that negate a statement."""

_PAIRS = [pair.split("/") for pair in _LISTS["opposites"].split()]
OPPOSITES = dict(_PAIRS) | {second: first for first, second in _PAIRS}
"""Pairs of short words, such as "on" and "off", that make statements opposite."""

OR = frozenset(_LISTS["or"].split())
"""Words by which a question offers a choice."""

SCALES = frozenset(_LISTS["scales"].split())
"""Words that change the number beside them, such as "million" and "minus"."""

SPELLINGS = dict(pair.split("=") for pair in _LISTS["spellings"].split())
"""Spellings of small numbers and units: "two" is "2"."""
