"""The two tokenizers: rouge-score's, and this library's for text of every script.

The ``unicode`` tokenizer sees, in time linear in the text:

- **words** of every script after NFKC and case folding. Apostrophes and hyphens
  separate. Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut into letters;
- **numbers** as a whole: ``-5``, ``1.5``, ``50%`` (= ``50 %``), ``12:30``, ``1/2``.
  ``1,200``, ``1'200`` and ``1 200`` are ``1200``; ``1,5`` is ``1.5``; ``5.0`` is ``5``,
  and ``7.50`` is ``7.5`` but where it may be a version (``Node 18.20``).
  Dates are three numbers;
- **symbols**: currencies (moved after their number), operators, emoji; ``C++`` and
  ``C#`` are words. Brackets and ``-`` count only beside another operator;
- **code**: an option (``-v``), an address (``a@b.com``) and a fenced block are one
  token each, in their own case. What else code differs in, `symbols` sees.

A text of punctuation alone is one token, so that ``?`` is not ``!``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.numbers import plain_numbers, with_plain_numbers

_ROUGE = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ")
    for code in bytes(range(256)).lower()
)
# Text of these characters alone is words, and needs no grammar.
_PLAIN = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r\n.,;:?!'\""

_CODE = re.compile(
    r"(```[^`]++```|(?<!\S)--?[A-Za-z][!-~]*+|(?<![\w!-~])[\w.+-]++@[\w.-]*\w)"
)
_LANGUAGE = re.compile(r"\A```\w++\n")  # of a block of code
_PAIR = re.compile(r"(?<=[(\[]\d),(?=\d[)\]])")  # (3,4)

# A piece of text that no prose has.
_SIGN = re.compile(
    r"""(?<=[\w)]\ )[-+*/](?=\ [\w(])                  # a sign between words
      | (?<!\S)(?:--?[A-Za-z]|\.{0,2}/[\w*.])\S*+       # -x, ./x
      | (?<!\S)[(\[][-+\d.\s]++[,:][-+\d.\s]*+[)\]]    # an interval, a slice
      | (?<!\S)\S*?(?:
            [=<>^{}\\|@\u03c0\u221a\u221e] | && | // | [~*]/ | \*\.\w | \w_\w
          | [\w)][*+][\w(]
          | [\w)\]'"][(\[](?!s\)|\d{1,3}\])            # f(x), not option(s), source[1]
          | [)\]][\w*/+-]                             # (x)+1
          | [A-Za-z.]/[\w.]++/                        # a/b/c
        )\S*+""",
    re.VERBOSE,
)
_SQL = re.compile(
    r"\s*(?:ALTER|CREATE|DELETE FROM|DROP|INSERT INTO|SELECT|UPDATE|WITH)\s"
)
_YAML = re.compile(r"\s*+(?:(?:- )*+[\w\"'./-]++:(?:\s.*)?|- \S++\s*+)")
_CELL = re.compile(r",(?! )")
_WORD = re.compile(r"(?<!\S)[\"'(]?[^\W\d_]{2,}+[\"').,;:?!]*+(?!\S)")
_INDENTED = re.compile(r"\n(?: {2,}+|\t)[\w@}`]")

# Letters of scripts without spaces between words, and the marks of all others.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\ua4cf\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARKS = "".join(
    letter for letter in map(chr, range(0x300, 0x1800)) if category(letter)[0] == "M"
)
_WORD_END = r"(?: (?<=\d)(?:\.\d++)++ | \+\+ | [+#](?![\w+#]) )?"  # v1.2, C++, C#
_NUMBER = r"""
    (?: (?<![a-z\d)\]%°]) - )?
        (?: (?<!/)\d++/\d++(?![/\d]) | (?<![\w.])\.\d++ | \d++(?:[.,:'_]\d++)*+ )
        (?: e[+-]?\d++\b )?+ (?: \ ?% | \ percent\b )?+
"""
_SYMBOL = r"[<>!=]= | -> | [-+=<>^$%()\[\]*/~]"
_TOKEN = re.compile(
    rf"""(?=[^\s,;:?'"]) (?:
        [^\W\d_{_UNSPACED}] (?:[^\W_{_UNSPACED}]|[{_MARKS}])*+ {_WORD_END}
      | {_NUMBER}
      | (?=\w)[{_UNSPACED}][{_MARKS}]*+ | [^\x00-\x7f\w\s]
      | {_SYMBOL}
    )""",
    re.VERBOSE,
)
# The same for ASCII, in half the time.
_ASCII_TOKEN = re.compile(
    rf"[a-z][a-z0-9]*+ {_WORD_END} | {_NUMBER} | {_SYMBOL}", re.VERBOSE
)
_OPERATORS = frozenset("=+^<>≤≥≠→")
_NUMBER_STARTS = frozenset("-.0123456789")
_LOOSE = frozenset("-()[]*/~")
_ALIASES = {">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "->": "→"}
_CURRENCY = re.compile("[$€£¥₹]")
_AMOUNT = re.compile(
    r"((?<![\w)%])-)?([$€£¥₹])\s?(-?\d++(?:[.,']\d++)*+"
    r"(?:\s(?:thousand|million|billion|trillion)\b)?+)"
)


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
    """Cut a text into words of any script, whole numbers and symbols.

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
        ['c++', 'costs', '5', '$', '50%', 'less', 'f', '(', 'x', ')', '=', '2']
    """
    if is_plain(text):
        tokens = rouge_tokens(text)
    else:
        tokens = []
        text = _PAIR.sub(", ", with_plain_numbers(compatible(text)))
        for place, piece in enumerate(_CODE.split(text)):
            tokens += [_code(piece)] if place % 2 else _scan(piece.casefold())
    return tokens or ["".join(text.split())][: bool(text.strip())]


def is_plain(text: str, /) -> bool:
    """Return whether a text is ASCII words and marks of prose, and nothing else."""
    return text.isascii() and not text.encode("ascii").translate(None, _PLAIN)


def is_notation(text: str, /) -> bool:
    """Return whether a text is code, a formula, a path or a table rather than prose.

    It has more runs of code and signs than words, or code and indented lines; or it is
    SQL, rows of cells, or keys with others beneath them.

    Example:
        >>> is_notation("ln(x+1)"), is_notation("x - 3 = 5"), is_notation("It is f(x)")
        (True, True, False)
        >>> is_notation("AT&T (USA) grew by 5%")
        False
    """
    if _SQL.match(text) or ("\n" in text and _are_rows(text.strip().split("\n"))):
        return True
    if is_plain(text):
        return False
    text = text.replace("**", "")
    signs = len(_SIGN.findall(text))
    indented = bool(signs) and bool(_INDENTED.search(text))
    return indented or signs > len(_WORD.findall(text))


def _are_rows(lines: Sequence[str]) -> bool:
    """Return whether lines are those of a CSV or TSV file, or of YAML."""
    commas = {len(_CELL.findall(line)) for line in lines}
    tabs = {line.count("\t") for line in lines}
    # A single comma in each line may belong to a number or a phrase.
    if (len(commas) == 1 and min(commas) > 1) or (len(tabs) == 1 and min(tabs)):
        return True
    nested = any(line[:1].isspace() for line in lines)
    return nested and all(map(_YAML.fullmatch, lines))


def _code(written: str) -> str:
    """Return code without the fence and the name of its language."""
    if not written.startswith("```"):
        return written
    return _LANGUAGE.sub("", written).strip("` \t\r\n") or written


def _scan(text: str) -> list[str]:
    """Return the tokens of case-folded text without notation."""
    if _CURRENCY.search(text):
        text = _AMOUNT.sub(r" \1\3 \2 ", text)
    written = (_ASCII_TOKEN if text.isascii() else _TOKEN).findall(text)
    if "".join(written).isalnum():
        return written
    if _OPERATORS.isdisjoint(written):
        written = [token for token in written if token not in _LOOSE]
    tokens: list[str] = []
    for token in written:
        if token.isalnum() or token in _LOOSE:
            tokens.append(token)
        elif token[0] in _NUMBER_STARTS and token not in _ALIASES:
            tokens += plain_numbers(token)
        elif token.isascii() or len(token) > 1 or category(token)[0] in "LNS":
            tokens.append(_ALIASES.get(token, token))
    return tokens
