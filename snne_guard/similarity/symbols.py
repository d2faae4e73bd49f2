"""What two texts with the same words differ in: marks of prose, or symbols.

Marks of prose may be left out, so each rule here takes out those of one kind where they
stand as prose has them. What is left between the words are symbols: operators, the
``!`` of ``!ready``, a lone ``/`` or ``.``, brackets of a call or a sum, primes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.tokens import ALIASES, is_plain

RUN = re.compile(r"[^\W_]+")
_LETTERS = r"[^\W\d_]"
_TWO_LETTERS = re.compile(rf"{_LETTERS}{{2}}")

# Other spellings of one sign, and signs that stand on either side of their number.
_CURRENCY = re.compile(r"([$\u20ac\u00a3\u00a5\u20b9])\s?(-?\d[\d.,]*+)")

_TICKS = re.compile(r"^```[a-z]*$|`", re.MULTILINE)
# What Markdown and LaTeX put around words, by lines: the groups are kept.
_MARKUP = re.compile(
    r"""^[^\S\n]*+[-*\u2022]\ (?=\S)              # bullets
      | ^\#{1,6}\ (?=[A-Z\d])                      # headings, but no comments
      | ^(\w{1,3})\)(?=\s)                         # a)
      | (?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,300})(?<=\S)\2(?![\w*])
      | (?<!\w)(__?)(?=[^\s_])([^_\n]{1,300})(?<=\S)\4(?!\w)
      | \\[()\[\]] | \\(?=[$%&\#_])
      | (?<![\w$])\$(?=\S)([^$\n]{1,300})(?<=\S)\$(?!\w)
    """,
    re.VERBOSE | re.MULTILINE,
)
_QUOTED = re.compile(
    r"""(?<!\d)"([^"]{0,500})" | (?<![\w')])'(?=\S)([^'\n]{1,300})'(?!\w)""", re.VERBOSE
)
_PROSE = re.compile(
    rf"""(?=[\s"'!?.,:-]) (?:
        (?<!\w)" | (?<!\d)"(?!\w)                  # behind digits: inches
      | (?<={_LETTERS})'(?={_LETTERS}) | (?<={_LETTERS}{{2}})'(?![\w'])
      | (?<!\w)'(?={_LETTERS})
        # ! and ? behind a word or, in French, apart from it before a capital
      | (?<={_LETTERS}{{2}})[!?]+(?=[\s"')\].,;:*]|\Z)
      | (?<={_LETTERS}{{2}})\s[!?]+(?=\s+[A-Z\u00c0-\u00de]|\s*\Z)
      | (?<=[\w)"'%\u00b0])\?+(?=[\s"')\].,;:*]|\Z)
        # full stops, dots of initials, commas and colons
      | \.{{3,}} | (?<=\b{_LETTERS})\.(?!\d)
      | (?<=[\w)\]"'%\u00b0$\u20ac+\#!?])[.,:]+(?=[\s"')\]*]|\Z)
      | (?<=\w),(?={_LETTERS}) | (?<={_LETTERS}):(?=\w)
      | (?<=\d)[.,:'](?=\d)                        # tokens compare numbers
      | \s[:,](?=\s|\Z)
        # hyphens and dashes between words
      | (?<=\w)-(?=\w\w) | (?<=\w\w)-(?=\w) | (?<=\d)-(?=\d) | (?<=\w)--+(?=\w)
      | (?<={_LETTERS}{{2}})\s-{{1,3}}\s(?=["'(]?(?:{_LETTERS}{{2}}|I\b))
    )""",
    re.VERBOSE,
)
_BRACKETS = re.compile(r"(?<![\w)\]])\(([^()]{0,500})\)(?![\w(])")
_OPERATOR = re.compile(r"[=+*/<>\u2192^~|&\[\]{}]|\s-\s")
_COMMAND = re.compile(
    r"""[&\u2192\u2260\u2264\u2265]
      | \A\s*(?:cat|cd|chmod|chown|cp|curl|docker|echo|exit|export|git|grep|kill|ls|make
             |mkdir|mv|npm|pip|print|python|return|rm|set|sudo|touch|wget)\s""",
    re.VERBOSE,
)
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
_SQL = re.compile(r"\s*(?:ALTER|CREATE|DELETE|DROP|INSERT|SELECT|UPDATE|WITH)\s")
_YAML = re.compile(r"\s*+(?:(?:- )*+[\w\"'./-]++:(?:\s.*)?|- \S++\s*+)")
_WORD = re.compile(r"(?<!\S)[\"'(]?[^\W\d_]{2,}+[\"').,;:?!]*+(?!\S)")
_INDENTED = re.compile(r"\n(?: {2,}+|\t)[\w@}`\"'$(\[{]")
_TABLE_ROW = re.compile(r"^[ \t]*+\|[^\n]++", re.MULTILINE)
_OPERATOR_SPACES = re.compile(r" ?([=+^<>]) ?")
# Punctuation to Unicode, but signs to a reader.
_SIGNS = frozenset("\u2030\u2031\u2032\u2033\u2034\u00a7\u2020\u2021")


def symbols_in(text: str, /) -> list[str]:
    """Return the symbols before, between and after the words, without marks of prose.

    Example:
        >>> symbols_in("Oh, it is **tin**!"), symbols_in("if (!open) close()")
        (['', '', '', '', ''], ['', '!', '', '()'])
    """
    text = compatible(text).strip()
    for spelling, sign in ALIASES.items():
        text = text.replace(spelling, sign)
    text = _MARKUP.sub(r"\1\3\5\6", _TICKS.sub("", text))
    text = _CURRENCY.sub(r"\2\1", text).strip()
    bare = text.rstrip(" \t\r\n.,;:!?")
    if bare and not _is_apart(text, text[len(bare) :]):
        text = bare
    text = _PROSE.sub(" ", _QUOTED.sub(r"\1\2", text))
    if not _OPERATOR.search(text):
        text = _BRACKETS.sub(r"\1", text)
    if not (_COMMAND.search(text) or _SIGN.search(text)):
        text = text.replace(";", "")
    return ["".join(filter(_is_symbol, between)) for between in RUN.split(text)]


def notation(text: str, /) -> str:
    """Return code, a formula, a path or a table as it is compared; of prose nothing.

    It has more pieces with signs than words, or a sign and indented lines; or it is
    SQL, rows of cells, or keys with others beneath them.

    Example:
        >>> notation("ln(x+1)."), notation("x - 3 = 5"), notation("It is f(x)")
        ('ln(x+1)', 'x - 3=5', '')
    """
    code = bool(_SQL.match(text)) or (
        "\n" in text and _are_rows(text.strip().split("\n"))
    )
    if not (code or is_plain(text)):
        prose = _TABLE_ROW.sub("|", text.replace("**", ""))
        pieces, indented = prose.split(), bool(_INDENTED.search(prose))
        words = sum(len(piece) > 1 and piece.isalpha() for piece in pieces)
        if indented or 2 * words < len(pieces):  # else no sign can outweigh them
            least = 0 if indented else len(_WORD.findall(prose))
            code = len(_SIGN.findall(prose)) > least
    if not code:
        return ""
    bare = compatible(text).strip("` \t\r\n").rstrip(". \t\r\n")
    return bare if "\n" in bare else _OPERATOR_SPACES.sub(r"\1", bare)


def _are_rows(lines: Sequence[str]) -> bool:
    """Return whether lines are those of a CSV or TSV file, or of YAML."""
    commas = {line.count(",") - line.count(", ") for line in lines}
    tabs = {line.count("\t") for line in lines}
    # A single comma in each line may belong to a number or a phrase.
    if (len(commas) == 1 and min(commas) > 1) or (len(tabs) == 1 and min(tabs)):
        return True
    nested = any(line[:1].isspace() for line in lines)
    return nested and all(map(_YAML.fullmatch, lines))


def _is_apart(text: str, marks: str) -> bool:
    """Return whether the marks at the end are an argument, or a sign of a number."""
    alone = marks[:1].isspace() and marks.strip() in {".", ".."}
    return alone or ("!" in marks and not _TWO_LETTERS.search(text))


def _is_symbol(letter: str) -> bool:
    sign = letter.isascii() or letter in _SIGNS or category(letter)[0] != "P"
    return sign and not letter.isspace()
