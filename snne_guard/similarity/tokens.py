"""The two tokenizers: rouge-score's, and this library's for text of every script.

The ``unicode`` tokenizer sees, in time linear in the text:

- **words** of every script after NFKC and case folding. Apostrophes and hyphens
  separate. Chinese, Japanese, Thai, Lao, Khmer and Burmese are cut into letters;
- **numbers** as a whole: ``-5``, ``1.5``, ``50%`` (= ``50 %``), ``12:30``, ``1/2``.
  ``1,200``, ``1'200`` and ``1 200`` are ``1200``; ``1,5`` is ``1.5``; ``5.0`` is ``5``,
  and ``7.50`` is ``7.5`` but where it may be a version (``Node 18.20``).
  Dates are three numbers;
- **signs**, which are what no prose has: currencies (moved after their number),
  operators, emoji, the ``!`` of ``!ready``, a lone ``.``, brackets of a call or a sum,
  primes. Marks of prose are left out, and so is Markdown; ``C++``, ``C#`` and ``OH-``
  are words;
- **code**: an option (``-v``), an address (``a@b.com``) and a fenced block are one
  token each, in their own case.

A text of punctuation alone is one token, so that ``?`` is not ``!``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.numbers import plain_numbers, with_plain_numbers

# For each byte the letter or digit that rouge-score sees in it, else a blank.
_ROUGE = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ")
    for code in bytes(range(256)).lower()
)

# -- Signs -----------------------------------------------------------------------------

_LETTER = r"[^\W\d_]"
_FORMULA = r"(?:[-+*][a-z\d]|\d[a-z])"  # the end of one, in brackets
# Where a mark of prose is a sign after all, seen from behind the mark. The text has a
# line feed before it, so that \n is its beginning too.
_MARK = rf"""
      (?<!{_LETTER}{_LETTER}!)(?<=!)(?=\s*[a-z\d(\[~$=+*/^\x01-])   # !ready, 5! ways
    | (?:(?<=\n[a-z\d]!)|(?<=\n\d[\d\ ]!))(?=\.?\s*\Z)        # 6!, 12!, 6 !; not Yes!
    | (?<={_FORMULA}\)!)                                      # (n-1)!
    | (?<=\W:[a-z]!) | (?<=\W:[a-z][a-z]!)                   # :q!, :wq!
    | (?<=\$[?!]) | (?<=\*\?)                                 # $?, .*?
    | (?<=[\s(][:?])(?=\w)                                    # :name, ?x
    | (?<=\w\?)(?=\w)                                         # colou?r
    | (?<={_LETTER}{_LETTER}\.)(?={_LETTER})                  # foo.bar; not J.R.R.
    | (?<=[\s*/]\.)\.?(?=[\s/*]|{_LETTER}|\Z)                 # add ., cd .., *.x
    | (?:(?<=\d')|(?<=[^\w'"]{_LETTER}'))'*(?!\w)             # 6', f''; not dogs'
    | (?<=\d")(?!\w) | (?<=\w")(?=\w)                         # 6", here"there
    | (?<=;) | (?<=:):                                        # x; y, std::sort
"""
# The hyphen of a grade, an ion or a rating: A-, Cl-, NO3-, BBB-.
_CHARGED = (
    r"(?:(?<=[^\w][A-Za-z]-)|(?<=\W[A-Z][a-z]-)|(?<=[A-Z][A-Z]-)|(?<=[A-Z]\d-))"
    r"(?=[^\w\s]|\s*\Z)"
)
# Where digits are more than words, and hyphens more than marks of prose.
_NUMERAL = rf"""
      (?<=\d)(?: (?=[^\s\d.,;:?!-]|[.,:]\d|\ [\d%p])          # 5%, 1.5, 5 percent
        | (?<=\.\d) | (?<=(?:inus|tive)\ \d) )                # .5, minus 5, negative 5
    | (?<=[^A-Za-z\d]-)(?=[A-Za-z\d.])                        # -5, -v; not 3-5
    | (?<=-)(?:{_CHARGED}|(?=\s*\Z))                          # (A-), A-
    | (?<=\n-)(?=-\s)                                         # -- drop it
"""
_SIGN = re.compile(rf"""[!?.;'":](?:{_MARK})""", re.VERBOSE)
_GRAMMAR = re.compile(rf"""[!?.;'":0-9-](?:{_MARK}|{_NUMERAL})""", re.VERBOSE)
# Text of these characters alone is words and marks of prose, and needs no grammar.
_PLAIN_WORD = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,;:?!'\""
_PLAIN = f"{_PLAIN_WORD}0123456789- \t\r\n".encode()
# What is cut apart from the rest: code, and for speed a long stretch of plain words,
# but for the words at its ends, which may belong to a number ("minus", "percent").
_CODE = r"""
      ```[^`]++```                                            # a fenced block
    | (?<!\S)--?[A-Za-z][!-~]*+                               # -v, --all
    | (?<![\w!-~])[\w.+-]++@[\w.-]*\w                         # a@b.com
"""
_ANY = f"[{_PLAIN_WORD}]"
_STRETCH = rf"(?<={_ANY}\ ){_ANY}[{_PLAIN_WORD} \t\r\n]{{30,}}(?=\ {_ANY}++\s)"
_CODE_APART = re.compile(f"({_CODE})", re.VERBOSE)
_APART = re.compile(f"({_CODE}|{_STRETCH})", re.VERBOSE)
_PLACE = "\x01"
_LANGUAGE = re.compile(r"\A```\w++\n")  # of a block of code
_PAIR = re.compile(r"(?<=[(\[]\d),(?=\d[)\]])")  # (3,4)

# -- Markdown, LaTeX's delimiters, quotes and brackets of prose ------------------------

_LINE_START = re.compile(
    r"""\n[^\S\n]*+(?:
        [-*\u2022]\ (?=\S)                                    # - one
      | \#{1,6}\ (?=[A-Z\d])                                  # # Title; not # comment
      | (\w{1,3})\)(?=\s)                                     # a) one, 12) one
    )""",
    re.VERBOSE,
)
_MARKED = re.compile(r"[*_$`\\]")
_MARKUP = re.compile(
    r"""(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,300})(?<=\S)\1(?![\w*])   # **bold**
      | (?<!\w)(__?)(?=[^\s_])([^_\n]{1,300})(?<=\S)\3(?!\w)            # _italic_
      | (?<![\w$])\$(?=\S)([^$\n]{1,300})(?<=\S)\$(?!\w)                # $formula$
      | \\[()\[\]] | \\(?=[$%&\#_]) | `                                 # \(, \$
    """,
    re.VERBOSE,
)
_BOXED = re.compile(r"\\boxed\{([^{}\n]{1,300})\}")
_QUOTES = re.compile(r"""(?<!\w)(["'])([^"'\n]{1,300})\1(?!\w)""")
_BRACKETS = re.compile(
    r"(?<![\w)\]])\(([^()\[\]{}=+*/<>^|&]{1,500})\)"
    rf"(?![\w(]|(?<={_FORMULA}\))!)"
)

# -- Tokens ----------------------------------------------------------------------------

# Letters of scripts without spaces between words, and the marks of all others.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\ua4cf\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_MARKS = "".join(
    letter for letter in map(chr, range(0x300, 0x1800)) if category(letter)[0] == "M"
)
_TOKEN = re.compile(
    rf"""(?=[^\s,]) (?:
        [^\W\d_{_UNSPACED}] (?:[^\W_{_UNSPACED}]|[{_MARKS}])*+     # a word
            (?: (?<=\d)(?:\.\d++)++ | \+\+ | [+#](?![\w+#])        # v1.2, C++, C#
              | -{_CHARGED} )?                                     # A-, NO3-
      | (?: (?<![A-Za-z\d)\]%°]) - )?                              # -5; not 3-5
            (?: (?<!/)\d++/\d++(?![/\d])                           # 1/2; not 1/2/2024
              | (?<![\w.])\.\d++ | \d++(?:[.,:'_]\d++)*+ )         # .5, 1,200, 12:30
            (?: [eE][+-]?\d++\b )?+ (?: \ ?% | \ percent\b )?+     # 1e5, 50 %
      | (?=\w)[{_UNSPACED}][{_MARKS}]*+                            # a letter of Chinese
      | [<>!=]= | ->
      | -(?!(?<={_LETTER}-){_LETTER})                              # a - b; not a-b
      | [!?.;'":] (?:{_MARK})
      | /(?!(?<=\d/)\d)                                            # km/h; not 2024/05
      | [^\w\s.,;:?!'"/-] | _                                      # any other sign
    )""",
    re.VERBOSE,
)
_ALIASES = {">=": "≥", "<=": "≤", "!=": "≠", "==": "=", "->": "→"}
# Without such a sign these are marks of prose: a dash, and a semicolon.
_OPERATORS, _LOOSE = frozenset("=+^<>≤≥≠→√∞|({"), frozenset("-;")
# With such a first word they are signs too.
_COMMAND = re.compile(
    r"""\s*(?:--|cat|cd|chmod|chown|cp|curl|docker|echo|exit|export|git|grep|kill|ls|make
        |mkdir|mv|npm|pip|print|python|return|rm|set|sudo|touch|wget)\s""",
    re.VERBOSE,
)
# Punctuation to Unicode, but signs to a reader.
_SIGNS = frozenset("\u2030\u2031\u2032\u2033\u2034\u00a7\u2020\u2021")
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
    """Cut a text into words of any script, whole numbers and signs.

    On plain English words it gives what ``rouge_tokens`` gives; the rules are those of
    this module. A blank text has no tokens.

    Example:
        >>> unicode_tokens("At -5 °C, C++ costs $1,200: don't.")
        ['at', '-5', '°', 'c', 'c++', 'costs', '1200', '$', 'don', 't']
    """
    return cut(text)[0]


def cut(text: str, /) -> tuple[list[str], bool]:
    """Return the tokens of a text, and whether it is plain words and marks of prose."""
    text = compatible(text).strip()
    prose = _BRACKETS.sub(r"\1", text) if "(" in text else text
    plain = (
        prose.isascii()
        and not prose.encode("ascii").translate(None, _PLAIN)
        and not _GRAMMAR.search(f"\n{prose}")
    )
    tokens = rouge_tokens(prose) if plain else _tokens(text)
    if text and not tokens:  # nothing but marks of prose
        tokens = ["".join(text.split())]
    return tokens, plain


def _tokens(text: str) -> list[str]:
    """Return the tokens of text that is not plain."""
    text = with_plain_numbers(text.replace(_PLACE, " "))
    pattern = _CODE_APART if _SIGN.search(f"\n{text}") else _APART
    pieces = pattern.split(text)
    apart = iter(pieces[1::2])
    tokens: list[str] = []
    has_code = bool(_COMMAND.match(text))
    for token in _scan(_PLACE.join(pieces[::2])):
        if token != _PLACE:
            tokens.append(token)
        elif (piece := next(apart))[0] in "`-" or "@" in piece:
            has_code = True
            tokens.append(_LANGUAGE.sub("", piece).strip("` \t\r\n") or piece)
        else:
            tokens += rouge_tokens(piece)
    if has_code or not _OPERATORS.isdisjoint(tokens):
        return tokens
    return [token for token in tokens if token not in _LOOSE]


def _scan(text: str) -> list[str]:
    """Return the tokens of a text, with the place of each piece that was cut apart."""
    text = _LINE_START.sub(r"\n\1", f"\n{text}")
    if _MARKED.search(text):
        text = _MARKUP.sub(r"\2\4\5", _BOXED.sub(r"\1", text))
    if "'" in text or '"' in text:
        text = _QUOTES.sub(r"\2", text)
    if "(" in text or "[" in text:
        text = _BRACKETS.sub(r"\1", _PAIR.sub(", ", text))
    if _CURRENCY.search(text):
        text = _AMOUNT.sub(r" \1\3 \2", text)
    tokens: list[str] = []
    for token in _TOKEN.findall(text):
        if token.isalnum():
            tokens.append(token.casefold())
        elif token.lstrip("-.")[:1].isdigit():
            tokens += plain_numbers(token.casefold())
        elif token.isascii() or category(token[0])[0] in "LNS" or token in _SIGNS:
            tokens.append(_ALIASES.get(token, token.casefold()))
    return tokens


# -- Code ------------------------------------------------------------------------------

# A piece of text that no prose has.
_CODE_PIECE = re.compile(
    r"""(?<=[\w)]\ )[-+*/](?=\ [\w(])                  # a sign between words
      | (?<!\S)(?:--?[A-Za-z]|\.{0,2}/[\w*.])\S*+       # -x, ./x
      | (?<!\S)\S*?(?:
            [=<>^{}\\|@\u03c0\u221a\u221e]
          | // | [~*]/ | \*\.\w | \w_\w               # ~/x, *.py, a_b
          | [\w)][*+][\w(]                           # a*b
          | [\w)\]'"][(\[](?!s\)|\d{1,3}\])            # f(x), not option(s), source[1]
          | [)\]][\w*/+-]                             # (x)+1
          | [A-Za-z.]/[\w.]++/                        # a/b/c
        )\S*+""",
    re.VERBOSE,
)
_SQL = re.compile(r"\s*(?:ALTER|CREATE|DELETE|DROP|INSERT|SELECT|UPDATE|WITH)\s")
_YAML = re.compile(r"\s*+(?:(?:- )*+[\w\"'./-]++:(?:\s.*)?|- \S++\s*+)")
_AROUND = "\"'().,;:?!"
_INDENTED = re.compile(r"\n(?: {2,}+|\t)[\w@}`\"'$(\[{]")
_TABLE_ROW = re.compile(r"^[ \t]*+\|[^\n]++", re.MULTILINE)
_OPERATOR_SPACES = re.compile(r" ?([=+^<>]) ?")


def notation(text: str, /, *, plain: bool = False) -> str:
    """Return code, a formula, a path or a table as it is compared; of prose nothing.

    It has more pieces with signs than words, or a sign and indented lines; or it is
    SQL, rows of cells, or keys with others beneath them.

    Example:
        >>> notation("ln(x+1)."), notation("x - 3 = 5"), notation("It is f(x)")
        ('ln(x+1)', 'x - 3=5', '')
    """
    lines = text.strip().split("\n") if "\n" in text else ()
    if not (_SQL.match(text) or _are_rows(lines) or (not plain and _is_code(text))):
        return ""
    bare = compatible(text).strip("` \t\r\n").rstrip(". \t\r\n")
    return bare if "\n" in bare else _OPERATOR_SPACES.sub(r"\1", bare)


def _is_code(text: str) -> bool:
    """Recognise signs that outweigh words, or stand among indented lines."""
    text = _TABLE_ROW.sub("|", text.replace("**", ""))
    pieces, indented = text.split(), bool(_INDENTED.search(text))
    words = sum(
        len(word := each.strip(_AROUND)) > 1 and word.isalpha() for each in pieces
    )
    if 2 * words >= len(pieces) and not indented:  # no sign can outweigh them
        return False
    return len(_CODE_PIECE.findall(text)) > (0 if indented else words)


def _are_rows(lines: Sequence[str]) -> bool:
    """Recognise the lines of a CSV or TSV file, or of YAML."""
    if not lines:
        return False
    commas = {line.count(",") - line.count(", ") for line in lines}
    tabs = {line.count("\t") for line in lines}
    # A single comma in each line may belong to a number or a phrase.
    if (len(commas) == 1 and min(commas) > 1) or (len(tabs) == 1 and min(tabs)):
        return True
    nested = any(line[:1].isspace() for line in lines)
    return nested and all(map(_YAML.fullmatch, lines))
