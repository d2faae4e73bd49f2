r"""The grammar of the ``unicode`` tokenizer: words, whole numbers, symbols.

It reads lower-case ASCII, or the marked text that ``_unicode`` makes, in which
``\x02`` stands before a symbol, ``\x03`` before a currency sign and ``\x04`` before a
letter of a script without spaces.
"""

from __future__ import annotations

import functools
import re

from snne_guard.similarity._numbers import canonical_number

__all__ = ["scan"]

# Each alternative begins with what can be seen at once and looks behind it afterwards:
# so most of them are dismissed at the first character.

# What is neither ASCII nor space nor a word character is a combining mark.
_MARKS = r"[^\x00-\x7f\w\s]*+"
_WORD = r"[^\W\d_] [^\x00-\x2f\x3a-\x60\x7b-\x7f\s]*+"

# A minus sign, not a hyphen or the dash of a range: what stands before it decides.
_MINUS = r"""- (?= (?:\$|\x03.)? \.?\d ) (?:
    (?<![\w)\]}%°\u2032-]-) (?<!\d['"$.]-) (?<!\d\x03.-)
    (?<!\d\x20\$-) (?<!\d\x20\x03.-)
  | (?<=\D\x04.-)                           # Chinese puts no space before it
)"""

# Digits with what may stand between them; ``_numbers`` tells which numbers they are.
_NUMBER = r"""(?: \d++ (?: [.,:/'_]\d++ )*+ | \.(?<![\w.]\.)\d++ ) (?:
    e[+-]?\d++ (?!\w) | (?:st|nd|rd|th) (?!\w) | (?<=[12]\d\d0)s (?!\w)
)?+ (?: \x20?% | \x20?\x02[‰‱] )?+"""

# The minus of a blood group, a grade or an ion, not the hyphen of "x- and y-axis".
_TRAILING_MINUS = r"""- (?:
    (?<=[^\w-][a-hj-z]-) | (?<=[^\w-](?:ab|cl|br|oh|cn)-) | (?<=[a-z]\d-)
) (?![\w>-]) (?! \x20 (?:and|or|to|und|oder|et|ou)\b )"""

_TOKEN = rf"""\x20*+ (
    {_WORD} (?:                                                   # v1.2, C++, C#, O-
        (?<=\d) (?:\.\d++)++ | \+\+ | [+\#](?![\w+\#]) | {_TRAILING_MINUS}
    )?+
  | \x04.{_MARKS}                                                 # Chinese, Thai, …
  | {_NUMBER}
  | {_MINUS} (?:\$|\x03.)? {_NUMBER}
  | [(\[{{] -?\d++,\d++ [)\]}}]                                     # a pair
  | [<>!]= | [-=]> | \+/- | = (?<!==) (?:==?)? (?!=) | && | \|\|
  | \* (?: (?<=[\w)]\*) \*? (?=[\w(-]) | (?<=[\w)]\x20\*) (?=\x20[\w(]) )  # no **bold**
  | / (?: (?<=[\d)]/) | (?<=[\d)]\x20/) (?=\x20) | (?=[\d(]) )     # 1/x, not and/or
  | [+<>^%$] | \#(?=\w) | ~(?<!~~)(?!~)
  | \| (?: (?<=[\w)]\|) | (?=[\w(-]) )                             # |x|, not a table
  | - (?<=\^\d-) (?![\w-])                                        # SO4^2-
  | - (?<![\w)\]}}%°\u2032-]-) (?= [^\W\d_](?![^\W_]) | \x02 | \( )  # -x, -∞
  | ! (?<![\w!)]!) (?=[\w(])                                      # !x, not wow!
  | (?:\x02[\U0001F1E6-\U0001F1FF]){{2}}                          # a flag
  | [\x02\x03].{_MARKS}
  | [^\x00-\x7f\w\s]++                                            # marks of no letter
)"""

_ALIASES = {
    ">=": "\x02≥",
    "<=": "\x02≤",
    "!=": "\x02≠",
    "==": "=",
    "===": "=",
    "->": "\x02→",
    "+/-": "\x02±",
    "~": "\x02≈",
    "*": "\x02\u00d7",
    "\x02⋅": "\x02\u00d7",
    "**": "^",
}

_SPACES = re.compile(r"\x20{3,}+")
_NO_MARKS = str.maketrans("", "", "\x02\x03\x04")
_NUMBER_STARTS = frozenset("0123456789.")


@functools.cache
def _token_pattern() -> re.Pattern[str]:
    # Compiled at first use, so that importing the package stays quick.
    return re.compile(_TOKEN, re.VERBOSE)


@functools.cache
def _latex_pattern() -> re.Pattern[str]:
    # Inline mathematics by pandoc's rule, which leaves "$5 and $6" alone.
    return re.compile(r"\$(?=\S)([^$\n]*[^$\s])\$(?!\d)")


@functools.cache
def _amount_pattern() -> re.Pattern[str]:
    amount = r"\d++(?:[.,':]\d++)*+"
    before = r"(?<![\w.,$-])(?<!\d[':])"
    return re.compile(rf"{before}(-?{amount}(?:-{amount})?+)\x20?(\$|\x03.)(?!\d)")


def scan(text: str) -> list[str]:
    """Return the tokens of a lower-case ASCII text or of a marked one.

    Example:
        >>> scan("from 3-5 c++ jobs at $1,200 to -$5 in 1980s")
        ['from', '3', '5', 'c++', 'jobs', 'at', '$', '1200', 'to', '$', '-5',
         'in', '1980s']
    """
    if "$" in text or "\x03" in text:
        text = _latex_pattern().sub(r" \1 ", text)
        text = _amount_pattern().sub(r"\2\1", text)
    if "   " in text:  # or each of many spaces would look through all the others
        text = _SPACES.sub("  ", text)
    # What looks behind finds a character also at the start of the text.
    found = _token_pattern().findall(f"  {text}")
    tokens: list[str] = []
    for token in found:
        if token.isalnum():
            tokens.append(token)
        else:
            tokens.extend(_canonical(token))
    return tokens


def _canonical(token: str) -> list[str]:
    """Return the one spelling of a token; a currency sign leaves its number."""
    token = _ALIASES.get(token, token).translate(_NO_MARKS)
    if token[0] in _NUMBER_STARTS:
        return canonical_number(token)
    if token[0] == "-" and len(token) > 1:
        currency = [] if token[1] in _NUMBER_STARTS else [token[1]]
        first, *others = canonical_number(token[1 + len(currency) :])
        return [*currency, f"-{first}", *others]
    if token[0] in "([{":
        return token[1:-1].split(",")
    return [token]
