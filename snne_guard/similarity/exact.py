"""Texts that are the same or not: as they stand, normalised, or by their number."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from snne_guard.similarity._unicode import prepare
from snne_guard.similarity.lexical import distinct_texts
from snne_guard.similarity.tokens import unicode_tokens
from snne_guard.types import BoolArray, FloatArray

__all__ = [
    "Match",
    "exact",
    "normalised",
    "normalised_text",
    "numeric",
    "stated_number",
]

# Brackets are no part of it, since [3, 4) is not (3, 4]; nor is a leading point: .5.
_OPENING = "\"'`*_\u00a1\u00ab\u00bf\u2018\u201a\u201c\u201e\u2039\u300c\u300e"
_CLOSING = "\"'`*_.,;:!?\u00bb\u2026\u2019\u201d\u203a\u3001\u3002\u300d\u300f"

# Bounded, so that a text of digits alone costs no time and no memory.
_NUMBER = re.compile(
    r"""(?P<value> -?\d{1,400} (?: (?:\.\d{1,400})? (?:e[+-]?\d{1,3})?
                               | /(?P<below>0*[1-9]\d{0,399}) ) )
        (?P<unit>[%‰‱]?)""",
    re.VERBOSE,
)
_UNIT = re.compile(r"[nµμcdk]?m|in|ft|yd|mi|s|sec|min|h|hr")
_WHOLE = re.compile(r"-?\d{1,400}")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_DATE = re.compile(
    rf"""(?<![\w./-]) (?:
        \d{{1,2}} ([/.-]) \d{{1,2}} \1 \d{{2,4}}    # 5/1/2024
      | \d{{4}} ([/.-]) \d{{1,2}} \2 \d{{1,2}}      # 2024-05-01
      | [12]\d{{3}}-(?:0[1-9]|1[0-2]) (?!\s*=)     # 2024-05
      | {_MONTH} \s* {_DAY} (?: ,?\s* \d{{4}} )?    # July 4, 1776
      | {_DAY} \s+ (?:of\s+)? {_MONTH} (?: ,?\s* \d{{4}} )?
      | {_MONTH} (?:\s+of)? ,?\s* \d{{4}}           # July 1776
    ) (?!\w | [./-]\d)""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Match:
    """Compares texts by a key: 1 where two texts have the same, 0 elsewhere.

    It is a similarity, and as an equivalence relation it forms clusters too.

    Args:
        name: What a method on it is called by, as in ``dse[exact]``.
        key: The key of a text. It must depend on the text alone.

    Example:
        >>> agrees = Match("agrees", lambda text: text.lower().startswith("yes"))
        >>> agrees(["Yes, it is", "yes", "no"])
        array([[1., 1., 0.],
               [1., 1., 0.],
               [0., 0., 1.]])
    """

    name: str
    key: Callable[[str], Hashable] = field(repr=False)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        """Compare every text with every other one.

        Args:
            texts: The ``n`` texts.
            question: Not used.

        Returns:
            ``(n, n)`` float64 matrix of 0 and 1, symmetric, diagonal 1.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        return self.equivalent(texts, question=question).astype(np.float64)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        """Return which texts are the same.

        Args:
            texts: The ``n`` texts.
            question: Not used.

        Returns:
            ``(n, n)`` booleans, an equivalence relation: symmetric, transitive,
            diagonal True.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        del question
        classes: dict[Hashable, int] = {}
        place = {
            text: classes.setdefault(self.key(text), len(classes))
            for text in distinct_texts(texts)
        }
        ids = np.array([place[text] for text in texts], dtype=np.intp)
        return np.equal.outer(ids, ids)


def normalised_text(text: str, /) -> str:
    """Return a text with its case, spacing and outer punctuation levelled.

    Compatible characters (NFKC), cases, kinds of dashes and apostrophes are one,
    every run of white space is a space, quotes and emphasis are taken off both ends,
    and the marks that end a sentence off the right one. Articles, brackets and what is
    inside the text stay. A text of nothing but such marks stays as it is.

    Example:
        >>> normalised_text("  “New\u00a0York.” "), normalised_text("?!")
        ('new york', '?!')
    """
    plain = " ".join(prepare(text).split())
    bare = plain.lstrip(f"{_OPENING} ").rstrip(f"{_CLOSING} ")
    return bare or plain


def stated_number(text: str, /) -> tuple[Fraction, str] | None:
    """Return the number that an answer states: the last one in it, with its sign.

    Numbers are read as the ``unicode`` tokenizer reads them: digits of every script,
    grouped or not, with a decimal point or comma, a fraction, a mixed number, an
    exponent. Times, dates, versions, ordinals and decades are no such numbers.

    Args:
        text: The answer.

    Returns:
        The exact value and ``"%"`` (or ``"‰"``, ``"‱"``) where it is one of a
        hundred, the exponent where its unit has one, as ``"^2"`` of ``25 m^2``, else
        ``""``; None where the text states no number, or a power. Currencies and other
        units are not looked at.

    Example:
        >>> stated_number("6 * 3 = 18.0")
        (Fraction(18, 1), '')
        >>> stated_number("It cost $1,200.50!")
        (Fraction(2401, 2), '')
        >>> stated_number("18 percent"), stated_number("none")
        ((Fraction(18, 1), '%'), None)
    """
    tokens = unicode_tokens(text)
    power = ""
    for place in reversed(range(len(tokens))):
        found = _NUMBER.fullmatch(tokens[place])
        if found is None:
            continue
        before = tokens[place - 1] if place else ""
        if before == "^":  # an exponent is not what the text states
            if place == 1 or not _UNIT.fullmatch(tokens[place - 2]):
                return None
            power = power or f"^{tokens[place]}"  # but a part of the unit: m^2
            continue
        percent = _is_percent(tokens[place + 1 : place + 3])
        unit = "%" if percent else found["unit"] or power
        value = Fraction(found["value"])
        if found["below"] and 0 < value < 1 and _WHOLE.fullmatch(before):
            whole = int(before)
            value = whole - value if before[0] == "-" else whole + value
        return value, unit
    return None


def _is_percent(tokens: Sequence[str]) -> bool:
    return tokens[:1] in (["percent"], ["pct"]) or tokens == ["per", "cent"]


def _number_or_text(text: str) -> Hashable:
    plain = " ".join(prepare(text).split())
    dates = list(_DATE.finditer(plain))
    if dates:  # the last number of a date is only a part of what it states
        return stated_number(plain[dates[-1].end() :]) or normalised_text(text)
    return stated_number(text) or text.strip()


exact = Match("exact", str.strip)
"""The same text, character for character, but for white space around it.

Example:
    >>> exact(["Paris", " Paris\\n", "paris"])
    array([[1., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
"""

normalised = Match("normalised", normalised_text)
"""The same text after :func:`normalised_text`: case, spacing, outer punctuation."""

numeric = Match("numeric", _number_or_text)
"""The same number by :func:`stated_number`; texts without one, as by ``exact``, and
texts in which a date comes last, as by ``normalised``."""
