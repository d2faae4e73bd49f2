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
from itertools import chain
from unicodedata import category

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.numbers import plain_numbers, with_plain_numbers

_ROUGE = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ")
    for code in bytes(range(256)).lower()
)
# Text of these characters alone is words, and needs no grammar.
_PLAIN_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,;:?!'\""
_PLAIN = f"{_PLAIN_WORD} \t\r\n".encode()
# Such a stretch within other text is set aside, but for the words at its ends: they may
# belong to a number ("minus", "percent").
_ANY = f"[{_PLAIN_WORD}]"
_STRETCH = re.compile(
    rf"(?<={_ANY} )({_ANY}[{_PLAIN_WORD}\s]{{30,}})(?= {_ANY}++\s)", re.ASCII
)
_ASIDE = "\x01"

_CODE = re.compile(
    r"(```[^`]++```|(?<!\S)--?[A-Za-z][!-~]*+|(?<![\w!-~])[\w.+-]++@[\w.-]*\w)"
)
_LANGUAGE = re.compile(r"\A```\w++\n")  # of a block of code
_PAIR = re.compile(r"(?<=[(\[]\d),(?=\d[)\]])")  # (3,4)

# Letters of scripts without spaces between words, and the marks of all others.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\ua4cf\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARKS = "".join(
    letter for letter in map(chr, range(0x300, 0x1800)) if category(letter)[0] == "M"
)
_TOKEN = re.compile(
    rf"""(?=[^\s,;:?'"]) (?:
        [^\W\d_{_UNSPACED}] (?:[^\W_{_UNSPACED}]|[{_MARKS}])*+
            (?: (?<=\d)(?:\.\d++)++ | \+\+ | [+#](?![\w+#]) )?    # v1.2, C++, C#
      | (?: (?<![a-z\d)\]%°]) - )?                                # a number
            (?: (?<!/)\d++/\d++(?![/\d]) | (?<![\w.])\.\d++ | \d++(?:[.,:'_]\d++)*+ )
            (?: e[+-]?\d++\b )?+ (?: \ ?% | \ percent\b )?+
      | (?=\w)[{_UNSPACED}][{_MARKS}]*+ | [^\x00-\x7f\w\s]
      | [<>!=]= | -> | [-+=<>^$%()\[\]*/~{_ASIDE}]
    )""",
    re.VERBOSE,
)
_OPERATORS = frozenset("=+^<>≤≥≠→")
_NUMBER_STARTS = frozenset("-.0123456789")
_LOOSE = frozenset("-()[]*/~")
ALIASES = {">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "->": "→"}
_CURRENCY = re.compile("[$€£¥₹]")
_AMOUNT = re.compile(
    r"((?<![\w)%])-)?([$€£¥₹])\s?(-?\d++(?:[.,']\d++)*+"
    r"(?:\s(?:thousand|million|billion|trillion)\b)?+)"
)


def rouge_tokens(text: str, /) -> list[str]:
    """Cut a text as rouge-score does without a stemmer: lower case, ``[a-z0-9]+``.

    Source: ``rouge_score/tokenize.py`` of rouge-score 0.1.2.
    """
    # Lower case first: the KELVIN SIGN becomes an ASCII letter by it.
    lowered = text if text.isascii() else text.lower()
    return lowered.encode("ascii", "replace").translate(_ROUGE).decode("ascii").split()


def unicode_tokens(text: str, /) -> list[str]:
    """Cut a text into words of any script, whole numbers and symbols.

    On plain English words it gives what ``rouge_tokens`` gives; the rules are those of
    this module. A blank text has no tokens.

    Example:
        >>> unicode_tokens("At -5 °C, C++ costs $1,200: don't.")
        ['at', '-5', '°', 'c', 'c++', 'costs', '1200', '$', 'don', 't']
    """
    if is_plain(text):
        tokens = rouge_tokens(text)
    else:
        text = text.replace(_ASIDE, " ")
        pieces = [text] if "```" in text else _STRETCH.split(text)
        tokens = _tokens(_ASIDE.join(pieces[::2]))
        if len(pieces) > 1:
            stretches = map(rouge_tokens, pieces[1::2])
            cut = [next(stretches) if word == _ASIDE else [word] for word in tokens]
            tokens = [*chain.from_iterable(cut)]
    return tokens or ["".join(text.split())][: bool(text.strip())]


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    text = _PAIR.sub(", ", with_plain_numbers(compatible(text)))
    for place, piece in enumerate(_CODE.split(text)):
        code = _LANGUAGE.sub("", piece).strip("` \t\r\n") or piece
        tokens += [code] if place % 2 else _scan(piece.casefold())
    return tokens


def is_plain(text: str, /) -> bool:
    """Return whether a text is ASCII words and marks of prose, and nothing else."""
    return text.isascii() and not text.encode("ascii").translate(None, _PLAIN)


def _scan(text: str) -> list[str]:
    """Return the tokens of case-folded text without notation."""
    if _CURRENCY.search(text):
        text = _AMOUNT.sub(r" \1\3 \2 ", text)
    written = _TOKEN.findall(text)
    if _OPERATORS.isdisjoint(written):
        written = [token for token in written if token not in _LOOSE]
    tokens: list[str] = []
    for token in written:
        if token.isalnum() or token in _LOOSE:
            tokens.append(token)
        elif token[0] in _NUMBER_STARTS and token not in ALIASES:
            tokens += plain_numbers(token)
        elif token.isascii() or len(token) > 1 or category(token)[0] in "LNS":
            tokens.append(ALIASES.get(token, token))
    return tokens
