"""Normalisation of a text before the grammar reads it, and marks for its characters.

Characters are looked at once and remembered, so that no table of all of Unicode is
built and no text pays for scripts that it does not use.
"""

from __future__ import annotations

import functools
import re
import unicodedata

__all__ = ["CURRENCY", "SOLO", "SYMBOL", "mark", "normalise", "prepare"]

# Control characters that stand before a character and say what it is.
SYMBOL, CURRENCY, SOLO = "\x02", "\x03", "\x04"
_MARKS = frozenset(SYMBOL + CURRENCY + SOLO)
_FEW = 12

# Default_Ignorable_Code_Point without the tags, which tell one flag from another;
# and the enclosing keycap, which is decoration of a digit.
_IGNORED = """
    00ad-00ad 034f-034f 061c-061c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e
    2060-206f 20e3-20e3 3164-3164 fe00-fe0f feff-feff ffa0-ffa0 fff0-fff8
    1bca0-1bca3 1d173-1d17a e0100-e01ef
"""
# Scripts written without spaces between words: Thai, Lao, Burmese, Khmer, Tai,
# Balinese, Javanese, Chinese and Japanese with all their extensions, Yi.
_UNSPACED = """
    0e01-0e3a 0e40-0e4e 0e80-0ecf 0edc-0eff 1000-103f 104a-108f 109a-109f a9e0-a9ef
    a9fa-a9ff aa60-aa7f 1780-17da 1950-19df 1a20-1aaf 1b00-1b4f a980-a9cf aa80-aadf
    2e80-2fdf 3005-3007 3021-3029 3031-3035 303b-303c 3040-312f 31a0-31bf 31f0-31ff
    3400-4dbf 4e00-9fff a000-a4cf f900-faff 16fe0-18dff 1aff0-1b2ff 20000-3ffff
"""

_SPACES = dict.fromkeys("\u00a0\u2007\u2008\u2009\u202f", "\u00a0")
_DASHES = dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe58\ufe63\uff0d", "-")
_QUOTES = dict.fromkeys("\u2018\u2019\u00b4", "'")
_ARABIC = {"\u066a": "%", "\u066b": ".", "\u066c": ","}
_FIRST = {**_SPACES, **_DASHES, **_QUOTES, **_ARABIC}
_LAST = {"\u2044": "/", "\u2215": "/", "\u2010": "-", "\u2212": "-"}
_SYMBOL_CATEGORIES = frozenset({"Sm", "Sk", "So", "Cn", "Co"})
_KEPT_PUNCTUATION = frozenset("\u2030\u2031\u2032\u2033\u2034")

_FULL_WIDTH_COMMA = re.compile("(?<=[0-9])\uff0c")
_DASH_AND_MINUS = re.compile("[\u2012\u2013](?=[\u2212-])")
_SPACED_GROUPS = re.compile("(?<![0-9])[1-9][0-9]{0,2}(?:\u00a0[0-9]{3})+(?![0-9])")
_SUPERSCRIPT = re.compile(
    "(?:(?<=[^\\W_])|(?<=[)]))"
    "[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079\u207f]+[\u207a\u207b]?"
)
_RAISED_OR_LOWERED = frozenset(
    "\u00b2\u00b3\u00b9\u2070\u2074\u2079\u207f\u2080\u2081\u2082\u2083\u2084"
    "\u2075\u2076\u2077\u2078\u2085\u2086\u2087\u2088\u2089"
)
_SUBSCRIPT_THEN_DIGIT = re.compile("(?<=[\u2080-\u2089])(?=[0-9])")
_MIDDLE_DOT = re.compile("(?<=[0-9]) ?\u00b7 ?(?=[0-9])")


class _FirstTable(dict[int, str]):
    """Raw character to what normalisation shall see, found when first met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _first(chr(code))
        return found


class _MarkTable(dict[int, str]):
    """Normalised character to itself with its mark, found when first met."""

    def __missing__(self, code: int) -> str:
        found = self[code] = _marked(chr(code))
        return found


def _first(char: str) -> str:
    if char in _FIRST:
        return _FIRST[char]
    if _is_in(char, _IGNORED):
        return ""
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    # A vulgar fraction or a circled number must not grow into its neighbours.
    if category in {"No", "So"} and not _SUPERSCRIPT.match(f"x{char}", 1):
        compatible = unicodedata.normalize("NFKC", char)
        if re.search("[0-9]", compatible) and not "\u2080" <= char <= "\u2089":
            return f" {char} "
    return char


def _marked(char: str) -> str:
    if char.isascii() or char in _LAST:
        return " " if char in _MARKS else _LAST.get(char, char)
    category = unicodedata.category(char)
    if category == "Sc":
        return CURRENCY + char
    # Not assigned: an emoji younger than this Python.
    if category in _SYMBOL_CATEGORIES or char in _KEPT_PUNCTUATION:
        return SYMBOL + char
    if category[0] in "PZ" or category in {"Cc", "Cs"}:
        return " "
    solo = category[0] != "M" and _is_in(char, _UNSPACED)
    return SOLO + char if solo else char


def _is_in(char: str, ranges: str) -> bool:
    return any(ord(char) in span for span in _spans(ranges))


@functools.cache
def _spans(ranges: str) -> tuple[range, ...]:
    ends = (span.split("-") for span in ranges.split())
    return tuple(range(int(low, 16), int(high, 16) + 1) for low, high in ends)


_FIRST_TABLE = _FirstTable()
_MARK_TABLE = _MarkTable()


def normalise(text: str) -> str:
    r"""Return NFKC_Casefold of a text: compatible forms and cases are one.

    Source:
        Unicode 15, section 3.13, D145 to D147.

    Example:
        >>> normalise("CAFE\u0301 \ufb01n Straße")
        'café fin strasse'
    """
    folded = unicodedata.normalize("NFD", text).casefold()
    folded = unicodedata.normalize("NFKC", folded)
    again = folded.casefold()
    return folded if again == folded else unicodedata.normalize("NFKC", again)


def prepare(text: str) -> str:
    """Normalise a text without losing what normalisation is blind to.

    ``10²`` must not become ``102``, nor ``1½`` become ``11/2``, nor a thousands space
    become a plain one.
    """
    if "\uff0c" in text:
        text = _FULL_WIDTH_COMMA.sub(", ", text)
    if "\u2013" in text or "\u2012" in text:
        text = _DASH_AND_MINUS.sub(" ", text)
    text = _translated(text, _FIRST_TABLE)
    if "\u00a0" in text:
        text = _SPACED_GROUPS.sub(lambda found: found[0].replace("\u00a0", ""), text)
    if "\u00b7" in text:
        text = _MIDDLE_DOT.sub("*", text)
    if not _RAISED_OR_LOWERED.isdisjoint(text):
        text = _SUPERSCRIPT.sub(lambda found: f"^{found[0]} ", text)
        text = _SUBSCRIPT_THEN_DIGIT.sub(" ", text)
    return normalise(text)


def mark(text: str) -> str:
    """Put its mark before each symbol, currency sign and unspaced letter."""
    return _translated(text, _MARK_TABLE)


def _translated(text: str, table: dict[int, str]) -> str:
    """Return ``text.translate(table)``, quicker where few characters change."""
    changed = [char for char in set(text) if table[ord(char)] != char]
    if len(changed) > _FEW or not _MARKS.isdisjoint(changed):
        return text.translate(table)
    for char in changed:
        text = text.replace(char, table[ord(char)])
    return text
