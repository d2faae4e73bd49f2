"""One form of every character: NFKC, one kind of dash, quote and digit."""

from __future__ import annotations

import re
from unicodedata import decimal, normalize

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("\u2018\u2019", "'"),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff\u00ad"),
        **dict.fromkeys("\u00b7\u00d7\u22c5", "*"),
        "\u2044": "/",
    }
)
_RAISED = re.compile(r"[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070-\u207f]+")
_APART = re.compile(
    r"(?<=\w)(?=[\u00bc-\u00be\u2150-\u215e])|(?<=[\u00bc-\u00be\u2150-\u215e])(?=\w)"
    r"|(?<=[\u00b2\u00b3\u00b9\u2070-\u207f])(?=[^\W\u00b2\u00b3\u00b9\u2070-\u207f])"
)
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_MARK_RUN = re.compile(r"[^\w\s\x00-\x7f]{30}")
_JOINER = "\u034f"  # combining grapheme joiner, which nobody sees


def compatible(text: str, /) -> str:
    r"""Return a text in NFKC, with one kind of dash, quote and digit.

    Exponents survive it: 10² becomes ``10^2`` and not 102.

    Example:
        >>> compatible("10\u00b2, \u201cja\u201d, \u0663 \uff21")
        '10^2, "ja", 3 A'
    """
    if text.isascii():
        return text
    # Normalising sorts runs of marks, in time quadratic in their length (UAX #15).
    text = _MARK_RUN.sub(rf"\g<0>{_JOINER}", text)
    text = _APART.sub(" ", _RAISED.sub(r"^\g<0>", text))
    text = normalize("NFKC", text).translate(_SAME).replace(_JOINER, "")
    return _OTHER_DIGIT.sub(lambda digit: str(decimal(digit[0])), text)
