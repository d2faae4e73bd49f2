"""Numbers compared by value, as answers to arithmetic are graded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from snne_guard.similarity import stated_number

__all__ = ["final_number", "numeric_match"]

# What announces the final answer of a worked solution.
_MARK = re.compile(r"####|\\boxed\s*\{|\banswer\s*(?:is|was|:|=)", re.IGNORECASE)
_CLAUSE_END = re.compile(r"\n|[.;!?](?:\s|$)|,\s")
_LATEX_FRACTION = re.compile(r"\\[dt]?frac\s*\{(-?\d{1,50})\}\s*\{(\d{1,50})\}")
_LATEX = re.compile(r"\\text\w*|[{}\\$]")
_POWER_OF_TEN = re.compile(r"\s?[x\u00d7*\u00b7]\s?10\^\{?([-+]?\d{1,3})\}?")
_SIGNED_MONEY = re.compile(r"([-\u2212])[$\u20ac\u00a3\u00a5](?=\d)")
_TOLERANCE = Fraction(1, 10**6)


def final_number(text: str, /) -> Fraction | None:
    r"""Return the number that a worked answer ends with.

    It is the last number of the clause behind the last "####", "\\boxed{", "answer is"
    or "answer:"; without such a clause it is the last number of the text. What counts
    as a number, ``snne_guard.similarity.stated_number`` says; LaTeX fractions and
    powers of ten are read too.

    Returns:
        The exact value, None where there is no number.

    Example:
        >>> final_number("9 - 4 = 5 eggs, so 5 * 2 = 10 dollars.\n#### 10")
        Fraction(10, 1)
        >>> final_number("The answer is $1,200, which is 3 times as much.")
        Fraction(1200, 1)
        >>> final_number("\\boxed{\\frac{3}{4}}"), final_number("none")
        (Fraction(3, 4), None)
    """
    plain = _LATEX_FRACTION.sub(r" \1/\2 ", text)
    plain = _POWER_OF_TEN.sub(r"e\1", plain)
    plain = _SIGNED_MONEY.sub(r"\1", plain)
    marks = list(_MARK.finditer(plain))
    if marks:
        clause = _CLAUSE_END.split(plain[marks[-1].end() :].lstrip(), maxsplit=1)[0]
        if (number := stated_number(_LATEX.sub(" ", clause))) is not None:
            return number[0]
    number = stated_number(_LATEX.sub(" ", plain))
    return None if number is None else number[0]


def numeric_match(answer: str, references: Sequence[str], /) -> float | None:
    """Return 1.0 if an answer ends with the number of one of the references.

    ``18.0``, ``$18``, ``18%`` and ``18 apples`` are the same; so are ``1,200`` and
    ``1200``, and ``1/2`` and ``0.5``. A difference of a millionth counts as none.

    Returns:
        1.0 or 0.0; None where no reference has a number.

    Example:
        >>> numeric_match("That makes $1,200.00.", ["1200"])
        1.0
        >>> numeric_match("none", ["1200"]), numeric_match("1200", ["many"])
        (0.0, None)
    """
    numbers = (final_number(text) for text in references)
    known = [number for number in numbers if number is not None]
    if not known:
        return None
    stated = final_number(answer)
    if stated is None:
        return 0.0
    return float(any(abs(stated - one) <= _TOLERANCE * abs(one) for one in known))
