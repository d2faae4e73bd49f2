"""The one reader of numbers: what digits stand for, and the number an answer states."""

from __future__ import annotations

import re
from collections import deque
from fractions import Fraction
from typing import Final

from snne_guard.similarity.forms import compatible
from snne_guard.similarity.words import FUNCTION_WORDS

_PARTS = re.compile(r"(-?)(\.?\d[\d.,:/'_]*)(.*)", re.DOTALL)  # sign, digits, unit
# 1 200 000. The digit comes first, since a search for it is quick.
_SPACED = re.compile(r"[1-9](?<![\w.,:/'-].)\d{0,2}(?: \d{3})+(?![\w/])")
# 1,200,000.50 and 1'200, or 1,00,000 as in India.
_GROUPED = re.compile(r"[1-9]\d{0,2}(?:[,'_]\d{2,3})*[,'_]\d{3}(?:\.\d+)?")
# 1.200,50 and 1,5, or 1.200.000.
_EUROPEAN = re.compile(r"\d+(?:\.\d{3})*,\d+|[1-9]\d{0,2}(?:\.\d{3}){2,}")
# 7.50, but not 1.250: three digits behind a point may be thousands.
_LAST_ZEROS = re.compile(
    r"(?<![\w.,:/'])(?![1-9]\d{0,2}\.\d{3}(?!\d))"
    r"(\d{0,40}\.\d{0,40}?[1-9])0{1,40}(?![\w]|[.,:/]\d)"
)
_ZEROS = re.compile(r"\.\d{0,40}0")
_NAME_BEFORE = re.compile(r"([^\W\d_]{1,20})[ -]\Z")  # Node 18.20
_VERSIONED = frozenset(("version", "release", "section", "chapter", "python", "node"))
_IDLE_ZEROS = re.compile(r"\.(?!000\Z)0+\Z")  # 5.000 is also five thousand

# -- LaTeX, written out ----------------------------------------------------------------

_BOX = re.compile(r"\\f?box(?:ed)?\s*+(?=\{|\w)")
_WORDS_IN_MATH = re.compile(r"\\(?:text|mathrm|mbox|operatorname)\w*+\s*+\{([^{}]*+)\}")
_ROOT = re.compile(r"\\sqrt\s*+(?:\[[^\][]*+\])?")
_ROOT_OR_POWER = re.compile(r"(?<=[\u221a^])\{([^{}]*+)\}")
_ARGUMENT = r"\s*+(\{[^{}]*+\}|\\[A-Za-z]++|\w)"
_FRACTION = re.compile(rf"\s*+\\[dtc]?frac{_ARGUMENT}{_ARGUMENT}")
_GROUP_OF_DIGITS = re.compile(r"(?<=\d)(?:\{,\}|,?\\[,;:! ]|~)(?=\d{3}(?!\d))")
_COMMANDS = (
    (re.compile(r"\\(?:left|right|displaystyle|[,;:! ])|\\(?=[$%])|~"), " "),
    (re.compile(r"\\(?:times|cdot|ast)(?![A-Za-z])"), "*"),
    (re.compile(r"\\(?:approx|simeq|iff|implies|Rightarrow)(?![A-Za-z])"), "="),
    (re.compile(r"\\pi(?![A-Za-z])"), "\u03c0"),
    (re.compile(r"\^\s*+[{(]?\s*+\\circ(?![A-Za-z])\s*+[})]?"), "\u00b0 "),
    (re.compile(r"[{}\\]"), " "),
    (re.compile(r"\x02(?=\s*+(?:[%\u2030]|per))"), " "),
)
_MOST_NESTED = 4  # fractions within fractions
_BLANKS = re.compile(r"[^\S\n]+")
_UNIT = "\x02"  # before a word that stood in \text{}: a unit, never a variable

# -- Numbers ---------------------------------------------------------------------------

_SIGNED_MONEY = re.compile(r"-\s?[$\u20ac\u00a3\u00a5\u20b9]\s?(?=[\d.])|(?<==\s)-\s")
_MINUS = re.compile(r"(?<![\d)%]\s)\b(?:[Mm]inus|[Nn]egative)\s(?=[$\u20ac\u00a3\d.])")
# "24 tiles (8 + 16)" states 24: the bracket repeats how it came about.
_STEPS = re.compile(
    r"(\d[.,]?\d{0,20}%?(?:\ [^\W\d]{1,20}){0,2})\ \([^()\d]{0,40}\d[^()]{0,200}\)"
)
_NUMBER = re.compile(
    r"""(?P<sign> (?<![\w)\]%\u00b0]) - )?
        (?: (?<![\w.,/]) (?P<whole> \d{1,400}) \ (?=\d{1,9}/\d) )?
        (?<!\w) (?<!\w\.)
        (?: (?<!/) (?P<over> \d{1,400}) / (?P<under> 0{0,9}[1-9]\d{0,399}) (?!\.?\d|/)
          | (?P<body> \.\d++ | \d++ (?:[.,:'_]\d++)*+ )
            (?P<power> e[+-]?\d{1,3}\b | \ ?[*x]\ ?10\ ?\^\ ?\(?[+-]?\d{1,3}\)? )?+
        )
        (?: \ (?P<scale> thousand | million | billion | trillion )\b )?+
        \ ?(?P<unit> % | \u2030 | percent\b | per\ ?mill?e?\b | per\ cent\b )?+
    """,
    re.VERBOSE,
)
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LOOKED_AT = 100  # numbers, from the last one on
_PLAIN = re.compile(r"\d{1,400}(?:\.\d{1,400})?")
_POWER_OF_TEN = re.compile(r"\ ?\^\ ?\(?([+-]?\d{1,3})(?!\d)")

# Beside one of these a number is a factor or a term, not a value.
_NAMED = r"[\u221a\u03c0\u221e]|(?<![a-z])(?:sqrt|pi|ln|log|sin|cos|tan|exp)(?![a-z])"
_TERM_BEFORE = re.compile(
    rf"(?:{_NAMED}|\broots?\ of|\d[xyzn](?!\w))[^\s=,;:~\u2248]{{0,30}}\s?[*/(+-]?\s?\Z"
)
_TERM_AFTER = re.compile(rf"[\s)]?\s?[*/]?\s?(?:{_NAMED})|[xyzni](?!\w)|\ ?\^")
_VARIABLE = re.compile(r"(?<![^\W_])[a-z](?![^\W_])")
_DEGREES = re.compile(r"\u00b0\s?[cf](?!\w)")
_NO_VALUE = re.compile(r"[\u221a\u03c0\u221e\u00b1+*!<>\u2264\u2265\u2208|]")

_MARK = re.compile(r"####|\banswer\s*(?:is|was|:|=)", re.IGNORECASE)
_CLAUSE_END = re.compile(r"\n|[.;!?](?:\s|$)|,\s")

_NONE: Final = None, True
_Found = tuple[tuple[Fraction, str] | None, bool]
"""A number, and whether to look on for another one."""


def plain_numbers(written: str, /) -> list[str]:
    """Return the number or numbers that digits with marks between them stand for.

    Example:
        >>> plain_numbers("-1,200.50"), plain_numbers("1,5"), plain_numbers("1,2,3")
        (['-1200.50'], ['1.5'], ['1', '2', '3'])
    """
    sign, body, suffix = _PARTS.findall(written)[0]
    if _GROUPED.fullmatch(body):
        body = re.sub("[,'_]", "", body)
    elif _EUROPEAN.fullmatch(body):
        body = body.replace(".", "").replace(",", ".")
    *others, last = re.split("[,'_]", f"0{body}" if body[0] == "." else body)
    if last.count(".") == 1:
        last = _IDLE_ZEROS.sub("", last)
    numbers = [*others, last + suffix.strip().replace("percent", "%")]
    return [sign + numbers[0], *numbers[1:]]


def with_plain_numbers(text: str, /) -> str:
    """Return a text with one spelling of its numbers, in place.

    1 200 is 1200, 7.50 is 7.5 and minus 5 is -5. What follows a name may be a version,
    of which 3.10 is not 3.1.
    """
    text = _SPACED.sub(lambda number: number[0].replace(" ", ""), text)
    if _ZEROS.search(text):
        text = _LAST_ZEROS.sub(_decimal, text)
    return _MINUS.sub("-", text) if "inus " in text or "egative " in text else text


def _decimal(number: re.Match[str]) -> str:
    """Return a number without zeros at its end, unless it may be a version."""
    name = _NAME_BEFORE.search(
        number.string, max(0, number.start() - 30), number.start()
    )
    if name is None or (word := name[1]).casefold() in FUNCTION_WORDS:
        return number[1]
    named = word[0].isupper() and not word.endswith("ly")
    return number[0] if named or word in _VERSIONED else number[1]


def stated_number(text: str, /) -> tuple[Fraction, str] | None:
    r"""Return the number that an answer states, with its sign.

    It is what stands in the last ``\boxed{}``; else the last number of the clause after
    the last "####", "answer is" or "answer:"; else the last number of the text. LaTeX,
    powers of ten, mixed numbers, "million" and "minus" are read. Times, versions and
    exponents do not count, nor does a bracket that repeats the steps.

    Args:
        text: The answer.

    Returns:
        The exact value, and ``"%"`` or ``"\u2030"`` where it has such a sign, else
        ``""``; None if the text states no number, or one beside a root, a variable or
        pi, which is not a number's value. Currencies and units are ignored.

    Example:
        >>> stated_number("It cost $1,200.50!"), stated_number("18 percent")
        ((Fraction(2401, 2), ''), (Fraction(18, 1), '%'))
        >>> stated_number("\\boxed{-\\frac25} of 9"), stated_number("4\\sqrt{3}")
        ((Fraction(-2, 5), ''), None)
    """
    boxes = [*_BOX.finditer(text)]
    if boxes:
        return _boxed(_plain(_braced(text[boxes[-1].end() :])))
    *before, last = _MARK.split(text)
    clause = _CLAUSE_END.split(last.lstrip(), maxsplit=1)[0] if before else ""
    for part in (clause, text):
        found, look_on = _last(_plain(part))
        if not look_on:
            return found
    return None


def _braced(text: str) -> str:
    """Return the content of the brace that a text begins with, to its match."""
    if not text.startswith("{"):
        return text[:1]
    depth = 0
    for brace in re.finditer(r"[{}]", text):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[1 : brace.start()]
    return text[1:]


def _plain(text: str) -> str:
    """Return a text in lower case with LaTeX written out and "minus" as a sign."""
    plain = compatible(text)
    if "\\" in plain or "{" in plain:
        plain = _without_latex(plain)
    plain = with_plain_numbers(_BLANKS.sub(" ", plain)).casefold()
    plain = _SIGNED_MONEY.sub("-", plain)
    return plain.replace("$", " ")


def _without_latex(text: str) -> str:
    text = _GROUP_OF_DIGITS.sub("", text)
    text = _WORDS_IN_MATH.sub(rf"{_UNIT} \1", text)
    text = _ROOT.sub("\u221a", text)
    for _ in range(_MOST_NESTED):
        text = _ROOT_OR_POWER.sub(r"(\1)", text)
        text, changed = _FRACTION.subn(_quotient, text)
        if not changed:
            break
    for command, meaning in _COMMANDS:
        text = command.sub(meaning, text)
    return text


def _quotient(fraction: re.Match[str]) -> str:
    r"""Return a/b for \frac{a}{b}, and (a)/(b) where one of them is no number."""
    over, under = (part.strip("{} ").replace(",", "") for part in fraction.groups())
    sign = "-" if (over[:1] == "-") != (under[:1] == "-") else ""
    numbers = over.removeprefix("-"), under.removeprefix("-")
    # What stands before a fraction: a digit makes it a mixed number, a sign negates it.
    digit = fraction.string[fraction.start() - 1 : fraction.start()].isdigit()
    space = " " if digit or fraction[0][0].isspace() else ""
    if all(number.isdecimal() for number in numbers):
        return f"{space}{sign}{'/'.join(numbers)}"
    return f"{space}({over})/({under})"


def _boxed(text: str) -> tuple[Fraction, str] | None:
    """Return the number of a box that holds one number and perhaps its unit."""
    result = text.rpartition("=")[2].strip().replace("- ", "-")
    result = _DEGREES.sub("\u00b0", result)
    value, _, unit = result.partition(_UNIT)
    numbers = [found for each in _NUMBER.finditer(result) if (found := _read(each))[0]]
    if len(numbers) != 1 or _NO_VALUE.search(value) or _NO_VALUE.search(unit):
        power = _NUMBER.fullmatch(value.strip())  # 6 * 10^4
        return _read(power)[0] if power else None
    return None if _VARIABLE.search(value) else numbers[0][0]


def _last(text: str) -> _Found:
    """Return the last number of a text, and whether another text may have one."""
    numbers = _NUMBER.finditer(_STEPS.sub(r"\1 ", text))
    for number in reversed(deque(numbers, maxlen=_LOOKED_AT)):
        found, look_on = _read(number)
        if not look_on:
            return found, False
    return _NONE


def _read(number: re.Match[str]) -> _Found:
    """Return the value of one number; look on at a time, a version or an exponent."""
    before = number.string[max(0, number.start() - 40) : number.start()]
    after = number.string[number.end() : number.end() + 12]
    if before.rstrip(" (+").endswith("^"):  # 25 m^2 states 25
        return _NONE
    if number["under"]:
        value = Fraction(int(number["over"]), int(number["under"]))
    else:
        *_, body = plain_numbers(number["body"])
        if not _PLAIN.fullmatch(body):
            return _NONE
        value = Fraction(body)
        if number["power"]:
            exponent = number["power"].lstrip(" *x").removeprefix("e")
            value *= Fraction(10) ** int(exponent.rpartition("^")[2].strip(" ()"))
        elif body == "10" and (power := _POWER_OF_TEN.match(after)):
            value, after = Fraction(10) ** int(power[1]), after[power.end() :]
    if _TERM_BEFORE.search(before) or _TERM_AFTER.match(after):
        return None, False
    value += int(number["whole"] or 0)
    value *= 10 ** _SCALES.get(number["scale"] or "", 0)
    unit = (number["unit"] or "").replace(" ", "")
    unit = "\u2030" if unit.startswith("permil") else unit and unit[0].replace("p", "%")
    return (-value if number["sign"] else value, unit), False
