"""The two tokenizers: rouge-score's, and this library's for text of every script.

The ``unicode`` tokenizer sees, in time linear in the text:

- **words** of every script after NFKC and case folding. Apostrophes and hyphens
  separate. Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut into letters;
- **numbers** as a whole: ``-5``, ``1.5``, ``50%`` (= ``50 %``), ``12:30``, ``1/2``.
  ``1,200``, ``1'200`` and ``1 200`` are ``1200``; ``1,5`` is ``1.5``; ``5.0`` is ``5``.
  Dates are three numbers;
- **symbols**: currencies (moved after their number), operators, emoji; ``C++`` and
  ``C#`` are words. Brackets, ``-``, ``*`` and ``/`` count only with another operator;
- **notation**: a run of ASCII with brackets or the like inside (``ln(x+1)``,
  ``./build/*``), a row of a table, and a fenced block of code are one token each, as
  written.

A text of punctuation alone is one token, so that ``?`` is not ``!``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = [
    "compatible",
    "is_notation",
    "is_visible",
    "rouge_tokens",
    "unicode_tokens",
]

_ROUGE = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ")
    for code in bytes(range(256)).lower()
)
# Text of these characters alone is words, and needs no grammar.
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r\n.,;:?!'\""
# Text of these characters alone is no notation.
_NO_CODE = _PLAIN.replace(b":", b"") + b"0123456789$#"

_CODE = r"""(?:
    [\w)\]'"] [(\[{] (?! s\) | \d{1,3}\] )   # f(x), but not option(s) or a source[1]
  | [)\]}] [\w^*/+=<>-]                      # (x)+1
  | [\\|@{}] | \w_\w | \*\.\w | // | && | -> | => | ~/
  | [A-Za-z.] / [\w.]++ /                    # a/b/c
  | (?<![!-~]) (?: --?[A-Za-z] | \.{0,2}/[\w*.] | <[A-Za-z/!] | :\w )   # -x, ./x, <b>
)"""
# A run of other characters than these; it dismisses most words at once.
_RUN = r"""(?<![!-~]) (?= [A-Za-z0-9.,;?!'"]*+ [^A-Za-z0-9.,;?!'"\s] )"""
_NOTATION = re.compile(
    rf"""(
        ```[^`]++```                                 # fenced code
      | ^[ \t]*+\|[^\n]++                            # a row of a table
      | [(\[] [-+\d.\s]++ [,:] [-+\d.\s]*+ [)\]]     # an interval, a slice
      | {_RUN} (?= [!-~]*? {_CODE} ) [!-~]++
    )""",
    re.VERBOSE | re.MULTILINE,
)
_CODE_CHUNK = re.compile(
    rf"""{_RUN} (?= [!-~]*? (?: {_CODE} | [=<>^&] | [\w)][*+][\w(] | [*%]\w ) )
         [!-~]++
      | (?<=[\w)]\ )[*+/](?=\ [\w(])""",
    re.VERBOSE,
)
_WORD = re.compile(r"(?<!\S)[\"'(]?[^\W\d_]{2,}+[\"').,;:?!]*+(?!\S)")
_INDENTED = re.compile(r"\n(?: {2,}+|\t)[\w@}]")

# Ranges, not categories: close enough, and nothing is built of all of Unicode.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fff\u3005-\u3007\u3040-\u312f"
    "\u31a0-\u31ff\u3400-\u9fff\ua000-\ua4cf\uf900-\ufaff\U00020000-\U0003ffff"
)
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06ed\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0980-\u0dff"
    "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e"
    "\u17b4-\u17d3\u3099\u309a"
)


_TOKEN = re.compile(
    rf"""(?=[^\s,;:?'"]) (?:
        [^\W\d_{_UNSPACED}] (?:[^\W_{_UNSPACED}]|[{_MARKS}])*+
            (?: (?<=\d)(?:\.\d++)++ | \+\+ | [+#](?![\w+#]) )?   # v1.2, C++, C#
      | (?: (?<![a-z\d)\]%°]) - )? (?: \d++(?:[.,:/'_]\d++)*+ | (?<![\w.])\.\d++ )
            (?: (?:st|nd|rd|th|s)\b | e[+-]?\d++\b )?+ (?: \ ?[%‰] | \ percent\b )?+
      | [{_UNSPACED}][{_MARKS}]*+ | [^\x00-\x7f\w\s]
      | [<>!=]= | -> | [-+=<>^$%()\[\]*/~]
    )""",
    re.VERBOSE,
)
_CURRENCY = re.compile("[$€£¥₹]")
_AMOUNT = re.compile(
    r"((?<![\w)%])-)?(?<!\d)(?<!\d )([$€£¥₹])\s?(-?\d++(?:[.,']\d++)*+"
    r"(?:\s(?:thousand|million|billion|trillion)\b)?+)"
)
_OPERATORS = frozenset("=+^<>≤≥≠→")
_NUMBER_STARTS = frozenset("-.0123456789")
_LOOSE = frozenset("-()[]*/~")
_ALIASES = {">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "->": "→"}

_SAME = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d", "-"),
        **dict.fromkeys("\u2018\u2019\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e", '"'),
        **dict.fromkeys("\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff\u00ad"),
        "\u2044": "/",
        "\u00b7": "*",
        "\u00d7": "*",
        "\u22c5": "*",
        "\u066a": "%",
        "\u066b": ".",
        "\u066c": ",",
    }
)
_GROUP_SPACE = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")
_SPACED = re.compile(r"(?<![\w.,:/'-])[1-9]\d{0,2}(?: \d{3})+(?![\w/])")
_RAISED = re.compile(r"(?<=[\w)])[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070-\u207f]+")
_NUMERAL = re.compile(r"[\u00bc-\u00be\u2150-\u215e\u2460-\u249b]")
_OTHER_DIGIT = re.compile(r"[^\D0-9]")

# Letters or symbols according to Unicode, but invisible.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")

_NUMBER = re.compile(r"(-?)([\d.,:/'_]*\d)(.*)", re.DOTALL)
_GROUPED = re.compile(r"([1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3})(\.\d+)?")
_OTHER_GROUPS = re.compile(r"[1-9]\d{0,2}(?:(?:'\d{3})+|(?:_\d{3})+|(?:\.\d{3}){2,})")
_DECIMAL_COMMA = re.compile(r"(\d+|[1-9]\d{0,2}(?:\.\d{3})+),(\d+)")
_IDLE_ZEROS = re.compile(r"\.(?!000\Z)0+\Z")  # 5.000 is also five thousand
_SEPARATOR = re.compile(r"[,/'_]")


def rouge_tokens(text: str, /) -> list[str]:
    """Cut a text as rouge-score does without a stemmer: lower case, ``[a-z0-9]+``.

    Source:
        ``rouge_score/tokenize.py`` of rouge-score 0.1.2.

    Example:
        >>> rouge_tokens("Don't say São Paulo, say -5%!")
        ['don', 't', 'say', 's', 'o', 'paulo', 'say', '5']
    """
    # Lower case first: the KELVIN SIGN becomes an ASCII letter by it.
    lowered = text if text.isascii() else text.lower()
    return lowered.encode("ascii", "replace").translate(_ROUGE).decode("ascii").split()


def unicode_tokens(text: str, /) -> list[str]:
    """Cut a text into words of any script, whole numbers, symbols and notation.

    On plain English words it gives what ``rouge_tokens`` gives. The rules are in
    the documentation of this module.

    Args:
        text: Any text.

    Returns:
        The tokens in order; none for a blank text.

    Example:
        >>> unicode_tokens("At -5 °C, 1,200 cafés don't open.")
        ['at', '-5', '°', 'c', '1200', 'cafés', 'don', 't', 'open']
        >>> unicode_tokens("C++ costs $5, 50 % less: f(x) = 2")
        ['c++', 'costs', '5', '$', '50%', 'less', 'f(x)', '=', '2']
    """
    if _consists_of(text, _PLAIN):
        tokens = rouge_tokens(text)
    else:
        tokens = []
        for place, piece in enumerate(_NOTATION.split(compatible(text))):
            tokens += [_bare(piece)] if place % 2 else _scan(piece.casefold())
    return tokens or ["".join(text.split())][: bool(text.strip())]


def is_notation(text: str, /) -> bool:
    """Return whether a text is code, a formula, a path or a table rather than prose.

    It has more runs of code than words, or code and indented lines.

    Example:
        >>> is_notation("ln(x+1)"), is_notation("x - 3 = 5"), is_notation("It is f(x)")
        (True, True, False)
        >>> is_notation("AT&T (USA) grew by 5%")
        False
    """
    if _consists_of(text, _NO_CODE):
        return False
    bare = text.replace("**", "")
    runs = len(_CODE_CHUNK.findall(bare))
    if not runs:
        return False
    return runs > len(_WORD.findall(bare)) or _INDENTED.search(text) is not None


def _consists_of(text: str, characters: bytes) -> bool:
    return text.isascii() and not text.encode("ascii").translate(None, characters)


def is_visible(text: str, /) -> bool:
    r"""Return whether a text has a visible character.

    Example:
        >>> is_visible("Paris"), is_visible("\u200b \u3164")
        (True, False)
    """
    return any(
        unicodedata.category(character)[0] not in "CMZ" and character not in _BLANK
        for character in text
    )


_JOINER = "\u034f"  # combining grapheme joiner, which nobody sees
_MARK_RUN = re.compile(r"[^\w\s\x00-\x7f]{30}")


def compatible(text: str, /) -> str:
    r"""Return a text in NFKC, with one kind of dash, quote and digit.

    Exponents survive it: 10² becomes ``10^2`` and not 102.

    Example:
        >>> compatible("10\u00b2, \u201cja\u201d, \u0663 \uff21")
        '10^2 , "ja", 3 A'
    """
    if text.isascii():
        return text
    # Normalising sorts runs of marks, in time quadratic in their length (UAX #15).
    text = _MARK_RUN.sub(rf"\g<0>{_JOINER}", text)
    text = _GROUP_SPACE.sub("", unicodedata.normalize("NFC", text))
    text = _RAISED.sub(r"^\g<0> ", text)
    text = _NUMERAL.sub(r" \g<0> ", text).translate(_SAME)
    text = unicodedata.normalize("NFKC", text).translate(_SAME).replace(_JOINER, "")
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _bare(notation: str) -> str:
    """Take off a fence, quotes around and the marks that end a sentence."""
    if notation.startswith("```"):
        language, newline, body = notation.strip("`").partition("\n")
        named = newline and language.strip().isalnum()
        return body.strip() if named else notation.strip("`\n ")
    bare = notation.strip().lstrip("\"'`").rstrip("\"'`.,;:!?")
    if bare[:1] == bare[-1:] == "$":
        bare = bare.strip("$")
    return bare or notation


def _scan(text: str) -> list[str]:
    """Return the tokens of case-folded text without notation."""
    text = _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
    if _CURRENCY.search(text):
        text = _AMOUNT.sub(r" \1\3 \2 ", text)
    written = _TOKEN.findall(text)
    if "".join(written).isalnum():
        return written
    if _OPERATORS.isdisjoint(written):
        written = [token for token in written if token not in _LOOSE]
    tokens: list[str] = []
    for token in written:
        if token.isalnum() or token in _LOOSE:
            tokens.append(token)
        elif token[0] in _NUMBER_STARTS and token not in _ALIASES:
            tokens += _numbers(token)
        elif token.isascii() or _is_seen(token):
            tokens.append(_ALIASES.get(token, token))
    return tokens


def _is_seen(token: str) -> bool:
    """Return whether a token is more than punctuation."""
    return len(token) > 1 or unicodedata.category(token)[0] in "LNS"


def _numbers(written: str) -> Iterator[str]:
    """Yield the number or numbers that digits with marks between them stand for."""
    sign, body, suffix = _NUMBER.findall(written)[0]
    suffix = suffix.strip().replace("percent", "%")
    if body[0] == ".":
        body = f"0{body}"
    if grouped := _GROUPED.fullmatch(body):
        body = grouped[1].replace(",", "") + (grouped[2] or "")
    elif _OTHER_GROUPS.fullmatch(body):
        body = "".join(filter(str.isdigit, body))
    elif comma := _DECIMAL_COMMA.fullmatch(body):
        body = f"{comma[1].replace('.', '')}.{comma[2]}"
    elif body.count("/") != 1:
        first, *others = _SEPARATOR.split(body)
        yield from [f"{sign}{first}", *others[:-1]] if others else []
        body, sign = (others[-1], "") if others else (first, sign)
    if body.count(".") == 1:
        body = _IDLE_ZEROS.sub("", body)
    yield f"{sign}{body}{suffix}"
