"""One spelling for abbreviations, contractions, dates and numbered lists."""

from __future__ import annotations

import re

from snne_guard.similarity._function_words import CONTRACTIONS

__all__ = ["respelled"]

_DOTTED = re.compile(r"\. ?[^\W\d_]\.")
_ABBREVIATION = re.compile(r"\b(?:[^\W\d_]\. ?){2,}")
_MINUS = re.compile(r"(?<=[\w)]) - (?=(?:\d|\w\b|\())")
_CONTRACTED = re.compile(rf"\b({'|'.join(CONTRACTIONS)})['\u2019]t\b", re.IGNORECASE)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
_MONTH = "|".join(
    rf"{name[:3]}{'t?' * (name[2] == 'p')}(?:{name[3:]})?" for name in _MONTHS
)
_DIGIT = re.compile(r"\d")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b")
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.? (\d{{1,2}})(?:st|nd|rd|th)?\b")
_ITEM = re.compile(r"(?m)^[ \t]*\d{1,2}[.)][ \t]+(?=\S)")


def respelled(text: str) -> str:
    """Return a text with what is one word, date or list spelled in one way.

    Example:
        >>> respelled("The U.S. Congress didn't meet on the 4th of July")
        'The US  Congress did not meet on the July 4'
    """
    if "." in text and _DOTTED.search(text):
        text = _ABBREVIATION.sub(_joined, text)
    if " - " in text:
        text = _MINUS.sub(" minus ", text)
    if "'" in text or "\u2019" in text:
        text = _CONTRACTED.sub(_written_out, text)
    if _DIGIT.search(text):
        text = _DAY_FIRST.sub(lambda date: _day(date[2], date[1]), text)
        text = _MONTH_FIRST.sub(lambda date: _day(date[1], date[2]), text)
    if "\n" in text and len(_ITEM.findall(text)) > 1:
        text = _ITEM.sub("", text)
    return text


def _day(month: str, day: str) -> str:
    """Return 5th of Sept as September 5."""
    name = next(name for name in _MONTHS if name.startswith(month[:3]))
    return f"{name} {day}"


def _written_out(short: re.Match[str]) -> str:
    """Return isn't as two words."""
    return f"{CONTRACTIONS[short[1].casefold()]} not"


def _joined(letters: re.Match[str]) -> str:
    """Return U.S. and J. K. as one word."""
    return letters[0].replace(".", "").replace(" ", "") + " "
