"""Numbers compared by their value, as answers to arithmetic are graded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from unicodedata import normalize

from snne_guard.errors import ConfigurationError
from snne_guard.evaluation.grading.reference_grader import ReferenceGrader
from snne_guard.similarity.exact import stated_number

__all__ = ["final_number", "numeric_grader", "numeric_match"]

_MARK = re.compile(
    r"""(?: \#\#\#\# | \\boxed \{
          | \b answer \W{0,3} (?: \s+ (?:is|was|will\s+be) \b | \s* [:=] ) ) \s*""",
    re.VERBOSE | re.IGNORECASE,
)
"""What announces the final answer in a solution that is written out."""

_CLAUSE_END = re.compile(
    r"\n | [.?!]+ (?:\s|$) | [;(}] | ,\s | \s (?:because|since|as|so|which) \s",
    re.VERBOSE | re.IGNORECASE,
)
_FRACTION = re.compile(r"\\[dt]?frac\s*\{([^{}]{1,400})\}\s*\{([^{}]{1,400})\}")
_LATEX = re.compile(r"\\text\w*|\\[,;!: ]|[{}\\$]")
_POWER = re.compile(
    r"(?<=\d)\s*(?:[\u00d7x*\u00b7]|\\times|\\cdot)\s*10\^\{?([-+\u2212]?)(\d{1,3})\b\}?"
)
_VULGAR = re.compile(r"(\d?)([\u00bc-\u00be\u2150-\u215e])")
_SPACED = re.compile(r"(?<![\d.,])(\d{1,3})((?:[ \u00a0\u202f]\d{3})+)(?!\d)")
_SIGNED_MONEY = re.compile(r"([-\u2212])\s?[$\u20ac\u00a3\u00a5](?=\d)")

_TOLERANCE = 1e-6


def final_number(text: str, /) -> tuple[Fraction, str] | None:
    r"""Return the number that a worked answer ends with.

    It is the one behind the last "####", "\\boxed", "answer is" or "answer:", up to the
    end of that clause; where there is none, the last number of the whole text. What
    counts as a number, ``snne_guard.similarity.exact.stated_number`` says; LaTeX
    fractions are read too.

    Returns:
        The exact value, and ``"%"`` where it is a percentage, else ``""``; None where
        there is no number.

    Example:
        >>> final_number("9 - 4 = 5 eggs, so 5 * 2 = 10 dollars.\n#### 10")
        (Fraction(10, 1), '')
        >>> final_number("The answer is 1,200, which is 3 times as much.")
        (Fraction(1200, 1), '')
        >>> final_number("\\boxed{\\frac{3}{4}}")
        (Fraction(3, 4), '')
    """
    text = _plain(text)
    until = len(text)
    for mark in reversed([*_MARK.finditer(text)]):
        end = _CLAUSE_END.search(text, mark.end(), until)
        clause = text[mark.end() : end.start() if end else until]
        if (number := stated_number(_LATEX.sub(" ", clause))) is not None:
            return number
        until = mark.start()
    return stated_number(_LATEX.sub(" ", text))


def _plain(text: str) -> str:
    """Write fractions, powers of ten, digits and signed amounts the usual way."""
    text = _VULGAR.sub(_vulgar, text)
    text = _POWER.sub(lambda by: f"e{'' if by[1] in {'', '+'} else '-'}{by[2]}", text)
    text = _FRACTION.sub(r" \1/\2 ", text)
    text = _SIGNED_MONEY.sub(r"\1", text)
    return _SPACED.sub(lambda found: "".join(found.group().split()), text)


def _vulgar(found: re.Match[str]) -> str:
    fraction = normalize("NFKC", found[2]).replace("\u2044", "/")
    return f"{found[1]} {fraction}" if found[1] else fraction


def numeric_match(
    answer: str, references: Sequence[str], /, *, tolerance: float = _TOLERANCE
) -> float | None:
    """Return 1.0 if an answer ends with the number of one of the references.

    ``18.0``, ``18``, ``$18`` and ``18 apples`` are the same; ``1,200`` is ``1200``;
    ``1/2`` is ``0.5``; ``-5`` is not ``5``. Currencies and other units are not looked
    at. Where one side alone is a percentage, ``18%`` is the same as ``18`` and as
    ``0.18``.

    Args:
        answer: The text to grade; its number is that of ``final_number``.
        references: Texts with a number, also worked solutions.
        tolerance: Largest difference that counts as none, as a share of the
            reference. The default forgives the digits that a float loses in print and
            no rounding to two places: with 0.01, 33.3 is 33 1/3.

    Returns:
        1.0 or 0.0; None where no reference has a number.

    Raises:
        ConfigurationError: The tolerance is not in [0, 1).

    Example:
        >>> numeric_match("That makes $1,200.00.", ["1200"])
        1.0
        >>> numeric_match("none", ["1200"]), numeric_match("1200", ["many"])
        (0.0, None)
    """
    _check_tolerance(tolerance)
    known = [number for text in references if (number := final_number(text))]
    if not known:
        return None
    stated = final_number(answer)
    if stated is None:
        return 0.0
    return float(any(_same(stated, number, tolerance) for number in known))


def numeric_grader(*, tolerance: float = _TOLERANCE) -> ReferenceGrader:
    """Return the grader of arithmetic; registered as ``numeric``.

    Args:
        tolerance: As in ``numeric_match``.

    Raises:
        ConfigurationError: The tolerance is not in [0, 1).
    """
    _check_tolerance(tolerance)
    usual = tolerance == _TOLERANCE
    return ReferenceGrader(
        name="numeric" if usual else f"numeric[tolerance={tolerance}]",
        measure=partial(numeric_match, tolerance=tolerance),
        lexical=False,
    )


def _check_tolerance(tolerance: float) -> None:
    if not 0 <= tolerance < 1:
        msg = f"expected a tolerance in [0, 1), got {tolerance}"
        raise ConfigurationError(msg)


def _same(
    stated: tuple[Fraction, str], reference: tuple[Fraction, str], tolerance: float
) -> bool:
    (value, unit), (target, target_unit) = stated, reference
    readings = [value * _PARTS[target_unit] / _PARTS[unit]]
    if not (unit and target_unit):
        readings.append(value)
    allowed = Fraction(tolerance) * abs(target)
    return any(abs(reading - target) <= allowed for reading in readings)


_PARTS = {"": 1, "%": 100, "\u2030": 1000, "\u2031": 10000}
