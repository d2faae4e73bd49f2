r"""The grammar of the ``unicode`` tokenizer: words, whole numbers, symbols.

It reads lower-case ASCII, or the marked text that ``_unicode`` makes, in which
``\x02`` stands before a symbol, ``\x03`` before a currency sign and ``\x04`` before a
letter of a script without spaces.
"""

from __future__ import annotations

import functools
import re

__all__ = ["scan"]

# What is neither ASCII nor space nor a word character is a combining mark.
_MARKS = r"[^\x00-\x7f\w\s]*"
_WORD = r"[^\W\d_] [^\x00-\x2f\x3a-\x60\x7b-\x7f\s]*"

# A minus sign, not a hyphen or the dash of a range: what stands before it decides.
_MINUS = r"""(?:
    (?<![\w)\]}%°′″-]) (?<!\d['"$]) (?<!\d\x03.)
  | (?<=\D\x04.)                          # Chinese puts no space before it
) - (?= (?:\$|\x03.)? \.?\d )"""

_NUMBER = r"""(?:
    \d+ (?: :\d+ )+                                               # 12:30, 16:9
  | (?<!\d/) \d+/\d+ (?! \d*/\d )                                 # 1/2, not a date
  | (?<!\d,) [1-9]\d{0,2} (?:,\d{3})+ (?:\.\d+)? (?! ,?\d )       # 1,200.50
  | (?<!\d,) [1-9]\d? (?:,\d\d)+ ,\d{3} (?:\.\d+)? (?! ,?\d )     # 1,00,000
  | [1-9]\d{0,2} (?:['_]\d{3})+ (?:\.\d+)? (?!\d)                 # 1'200
  | [1-9]\d{0,2} (?:\.\d{3})+ ,\d+ (?!\d)                         # 1.200,50
  | \d+ (?:\.\d+){2,}                                             # 1.2.3, 1.200.000
  | \d+ (?:\.\d+)? e[+-]?\d+ (?!\w)                               # 6.02e23
  | \d+\.\d+                                                      # 1.5
  | (?! (?: (?<=[(\[{]) | (?<=[(\[{]-) ) \d+,\d+ [)\]}] )         # (3,4) is a pair
    (?<!\d,) \d+,\d+ (?! ,?\d )                                   # 1,5
  | \d+ (?:st|nd|rd|th) (?!\w)                                    # 1st
  | [12]\d\d0s (?!\w)                                             # 1980s
  | \d+
  | (?<![\w.]) \.\d+                                              # .5
) (?: \x20?% | \x20?\x02[‰‱] )?"""

# The minus of a blood group, a grade or an ion, not the hyphen of "x- and y-axis".
_TRAILING_MINUS = r"""- (?:
    (?<=[^\w-][a-hj-z]-) | (?<=[^\w-](?:ab|cl|br|oh|cn)-) | (?<=[a-z]\d-)
) (?![\w-]) (?! \x20 (?:and|or|to|und|oder|et|ou|y|o|e)\b )"""

_TOKEN = rf"""
    {_WORD} (?: \+\+ | [+\#](?![\w+\#]) | {_TRAILING_MINUS} )?    # word, C++, C#, O-
  | \x04.{_MARKS}                                                 # Chinese, Thai, …
  | (?: {_MINUS} (?:\$|\x03.)? )? {_NUMBER}
  | \+/- | [<>!]= | [-=]> | (?<!=)={{1,3}}(?!=) | && | \|\|
  | (?<=[\w)]) \*\*? (?=[\w(-]) | (?<=[\w)]\x20) \* (?=\x20[\w(])  # not **bold**
  | (?<=[\d)]) / (?!\d) | (?<!\d) / (?=[\d(]) | (?<=\)) / (?=\d)
  | (?<=[\d)]\x20) / (?=\x20[\d(])
  | [+<>^%$] | \#(?=\w) | (?<!~)~(?!~) | \|(?=[\w(-]) | (?<=[\w)])\|
  | (?<=\^\d) - (?![\w-])                                          # SO4^2-
  | (?<![\w!)]) ! (?=[\w(])                                       # !x, not wow!
  | (?:\x02[\U0001F1E6-\U0001F1FF]){{2}}                          # a flag
  | [\x02\x03].{_MARKS}
  | [^\x00-\x7f\w\s]+                                             # marks of no letter
"""

_ALIASES = {
    ">=": "\x02≥",
    "<=": "\x02≤",
    "!=": "\x02≠",
    "==": "=",
    "===": "=",
    "->": "\x02→",
    "+/-": "\x02±",
    "~": "\x02≈",
    "*": "\x02×",
    "\x02⋅": "\x02×",
    "**": "^",
}

_NO_MARKS = dict.fromkeys((2, 3, 4))
_NUMBER_STARTS = frozenset("0123456789.")

_PLAIN_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMMA_GROUPS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}")
_DOT_GROUPS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}")


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
    amount = r"-?\d(?:[\d.,':]*\d)?(?:-\d(?:[\d.,':]*\d)?)?"
    return re.compile(rf"(?<![\w.,$-])({amount})\x20?(\$|\x03.)(?!\d)")


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
    # What looks behind finds a character also at the start of the text.
    found = _token_pattern().findall(f"  {text}")
    tokens: list[str] = []
    for token in found:
        if token.isalpha():
            tokens.append(token)
        else:
            tokens.extend(_canonical(token))
    return tokens


def _canonical(token: str) -> tuple[str, ...]:
    """Return the one spelling of a token; a currency sign leaves its number."""
    token = _ALIASES.get(token, token).translate(_NO_MARKS)
    if token[0] == "-" and len(token) > 1:
        currency = "" if token[1] in _NUMBER_STARTS else token[1]
        number = "-" + _number(token[1 + len(currency) :])
        return (currency, number) if currency else (number,)
    return (_number(token) if token[0] in _NUMBER_STARTS else token,)


def _number(written: str) -> str:
    """Return a number without grouping, with a decimal point.

    Example:
        >>> [_number(n) for n in ("1,200.50", "1.200,50", "1,5", "1.2.3", ".5 %")]
        ['1200.50', '1200.50', '1.5', '1.2.3', '0.5%']
    """
    if _PLAIN_NUMBER.fullmatch(written):
        return written
    digits = written.rstrip(" %‰‱")
    unit = written[len(digits) :].lstrip()
    digits = digits.replace("'", "").replace("_", "")
    if "," in digits:
        digits = _without_commas(digits)
    elif _DOT_GROUPS.fullmatch(digits):
        digits = digits.replace(".", "")
    return ("0" if digits[0] == "." else "") + digits + unit


def _without_commas(digits: str) -> str:
    if _COMMA_GROUPS.fullmatch(digits.partition(".")[0]):
        return digits.replace(",", "")
    return digits.replace(".", "").replace(",", ".")
