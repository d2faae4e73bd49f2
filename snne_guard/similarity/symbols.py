"""What two texts with the same words differ in: marks of prose, or symbols.

Marks of prose may be left out, so each rule here takes out those of one kind where they
stand as prose has them. What is left between the words are symbols: operators, the
``!`` of ``!ready``, a lone ``/`` or ``.``, brackets of a call or a sum, primes.
"""

from __future__ import annotations

import re
from unicodedata import category

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.tokens import rouge_tokens

_RUN = re.compile(r"[^\W_]+")
_LETTERS = r"[^\W\d_]"
_WORD = re.compile(rf"{_LETTERS}{{2}}")

# Other spellings of one sign, and signs that stand on either side of their number.
_ALIASES = ((">=", "\u2265"), ("<=", "\u2264"), ("!=", "\u2260"), ("==", "="))
_CURRENCY = re.compile(r"([$\u20ac\u00a3\u00a5\u20b9])\s?(-?\d[\d.,]*+)")

_MARKUP = tuple(
    (re.compile(pattern, re.MULTILINE), kept)
    for pattern, kept in (
        (r"^```[a-z]*$|`", ""),
        (r"^\s*+[-*\u2022] (?=\S)", ""),  # bullets
        (r"^#{1,6} (?=[A-Z\d])", ""),  # headings, but no comments
        # Emphasis, and LaTeX's signs around a formula.
        (r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,300})(?<=\S)\1(?![\w*])", r"\2"),
        (r"(?<!\w)(__?)(?=[^\s_])([^_\n]{1,300})(?<=\S)\1(?!\w)", r"\2"),
        (r"\\[()\[\]]|\\(?=[$%&#_])", ""),
        (r"(?<![\w$])\$(?=\S)([^$\n]{1,300})(?<=\S)\$(?!\w)", r"\1"),
    )
)
_PROSE = tuple(
    (re.compile(pattern), kept)
    for pattern, kept in (
        # Quotes around words, apostrophes; what is left are primes, feet and inches.
        (r'(?<!\d)"([^"]{0,500})"|(?<!\d)"', r"\1"),
        (r"(?<![\w')])'(?=\S)([^'\n]{1,300})'(?!\w)", r"\1"),
        (rf"(?<={_LETTERS})'(?={_LETTERS})|(?<={_LETTERS}{{2}})'(?![\w'])", " "),
        (rf"(?<!\w)'(?={_LETTERS})", " "),
        # ! and ? behind a word or, in French, apart from it before a capital.
        (rf"(?<={_LETTERS}{{2}})[!?]+(?=[\s\"')\].,;:*]|\Z)", " "),
        (rf"(?<={_LETTERS}{{2}})\s[!?]+(?=\s+[A-Z\u00c0-\u00de]|\s*\Z)", " "),
        (r"(?<=[\w)\"'%\u00b0])\?+(?=[\s\"')\].,;:*]|\Z)", " "),
        # Full stops, dots of initials, commas and colons.
        (r"\.{3,}|(?<=\b[^\W\d_])\.(?!\d)", " "),
        (r"(?<=[\w)\]\"'%\u00b0$\u20ac+#])[.,:]+(?=[\s\"')\]*]|\Z)", " "),
        (rf"(?<=\w),(?={_LETTERS})|(?<={_LETTERS}):(?=\w)", " "),
        (r"(?<=\d)[.,:'](?=\d)", " "),  # tokens compare numbers
        (r"\s[:,](?=\s|\Z)", " "),
        # Hyphens and dashes between words.
        (r"(?<=\w)-(?=\w\w)|(?<=\w\w)-(?=\w)|(?<=\d)-(?=\d)|(?<=\w)--+(?=\w)", " "),
        (rf"(?<={_LETTERS}{{2}})\s-{{1,3}}\s(?=[\"'(]?(?:{_LETTERS}{{2}}|I\b))", " "),
        (r"^(\w{1,3})\)(?=\s)", r"\1"),  # a)
        (r"\(s\)", "s"),
    )
)
_BRACKETS = re.compile(r"(?<![\w)\]])\(([^()]{0,500})\)(?![\w(])")
_OPERATOR = re.compile(r"[=+*/<>^~|&\[\]{}]|\s-\s")
_COMMAND = re.compile(
    r"""[={}<>|&\\]|(?<!\S)--?\w|\w\( | (?<!\S)[~/.]/?\w
      | ^\s*(?:cat|cd|chmod|chown|cp|curl|docker|echo|exit|export|git|grep|kill|ls|make
               |mkdir|mv|npm|pip|print|python|return|rm|set|sudo|touch|wget)\s""",
    re.VERBOSE,
)
_LAST = " \t\r\n.,;:!?"
# Punctuation to Unicode, but signs to a reader.
_SIGNS = frozenset("\u2030\u2031\u2032\u2033\u2034\u00a7\u2020\u2021")


def word_runs(text: str, /) -> list[str]:
    """Return the words and digits of a text, casefolded, without all that is between.

    Example:
        >>> word_runs("Rm a; b"), word_runs("3.5%")
        (['rm', 'a', 'b'], ['3', '5'])
    """
    if text.isascii():
        return rouge_tokens(text)
    return _RUN.findall(compatible(text).casefold())


def symbols(text: str, /) -> list[str]:
    """Return the symbols before, between and after the words, without marks of prose.

    Example:
        >>> symbols("Oh, it is **tin**!"), symbols("if (!open) close()")
        (['', '', '', '', ''], ['', '!', '', '()'])
    """
    text = compatible(text).strip()
    for spelling, sign in _ALIASES:
        text = text.replace(spelling, sign)
    for pattern, kept in _MARKUP:
        text = pattern.sub(kept, text)
    text = _CURRENCY.sub(r"\2\1", text).strip()
    bare = text.rstrip(_LAST)
    if bare and not _is_apart(text, text[len(bare) :]):
        text = bare
    for pattern, kept in _PROSE:
        text = pattern.sub(kept, text)
    if not _OPERATOR.search(text):
        text = _BRACKETS.sub(r"\1", text)
    if not _COMMAND.search(text):
        text = text.replace(";", "")
    return ["".join(filter(_is_symbol, between)) for between in _RUN.split(text)]


def _is_apart(text: str, marks: str) -> bool:
    """Return whether the marks at the end are an argument, or a sign of a number."""
    alone = marks[:1].isspace() and marks.strip() in {".", ".."}
    return alone or ("!" in marks and not _WORD.search(text))


def _is_symbol(letter: str) -> bool:
    if letter.isspace():
        return False
    return letter.isascii() or letter in _SIGNS or category(letter)[0] != "P"
