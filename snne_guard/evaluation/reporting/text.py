"""How the report writes numbers and texts that nobody has checked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from snne_guard.evaluation.results import Metric

__all__ = [
    "Said",
    "clean",
    "clip",
    "interval",
    "moment",
    "number",
    "repeats",
    "share",
    "signed",
]

DASH = "\N{EN DASH}"
MINUS = "\N{MINUS SIGN}"

# What a browser would swallow or refuse is shown by the pictures that Unicode has.
_VISIBLE = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n"},
    0x7F: 0x2421,
}


def clean(text: str) -> str:
    r"""Return a text that any browser shows: no control characters, no half pairs.

    Example:
        >>> clean("a\x00b")
        'a␀b'
    """
    whole = text.replace("\r\n", "\n").encode("utf-8", "replace").decode("utf-8")
    return whole.translate(_VISIBLE)


def clip(text: str, limit: int, *, count: bool = True) -> str:
    """Return at most ``limit`` characters of a text, and how many are missing.

    Example:
        >>> clip("abcdef", 4), clip("abcdef", 4, count=False)
        ('abcd… (2 more characters)', 'abcd…')
    """
    if len(text) <= limit:
        return text
    if not count:
        return f"{text[:limit].rstrip()}…"
    return f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def number(value: float | None, places: int = 3) -> str:
    """Return a number as it stands in a table, an en dash where there is none.

    Example:
        >>> number(0.12345), number(float("inf")), number(1234.5, 0)
        ('0.123', '∞', '1,234')
    """
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    # Adding 0.0 makes a zero of a negative zero.
    return f"{round(value, places) + 0.0:,.{places}f}".replace("-", MINUS)


def signed(value: float | None, places: int = 3) -> str:
    """Return a difference, with its sign.

    Example:
        >>> signed(0.5), signed(0.0)
        ('+0.500', '0.000')
    """
    shown = number(value, places)
    positive = value is not None and round(value, places) > 0
    return f"+{shown}" if positive else shown


def interval(metric: Metric | None, *, sign: bool = False) -> str:
    """Return the ends of an interval, nothing where there is none.

    Example:
        >>> interval(Metric(value=0.5, low=0.4, high=0.6))
        '0.400 to 0.600'
    """
    if metric is None or metric.low is None or metric.high is None:
        return ""
    write = signed if sign else number
    return f"{write(metric.low)} to {write(metric.high)}"


def share(value: float | None) -> str:
    r"""Return a share in percent.

    Example:
        >>> share(0.125)
        '12.5\xa0%'
    """
    shown = number(None if value is None else value * 100, 1)
    finite = value is not None and math.isfinite(value)
    return f"{shown}\N{NO-BREAK SPACE}%" if finite else shown


class Said(NamedTuple):
    """A text, and how often it was said."""

    text: str
    times: int


def repeats(texts: Sequence[str], limit: int) -> list[Said]:
    """Return the different texts, the most frequent first.

    Example:
        >>> repeats(["a", "b", "b"], 9)
        [Said(text='b', times=2), Said(text='a', times=1)]
    """
    return [
        Said(clip(text, limit), times) for text, times in Counter(texts).most_common()
    ]


def moment(created: str) -> str:
    """Return a time of ISO 8601 as people write it, anything else as it is.

    Example:
        >>> moment("2026-11-21T20:15:00+00:00")
        '2026-11-21 20:15 UTC'
    """
    try:
        return f"{datetime.fromisoformat(created):%Y-%m-%d %H:%M %Z}".rstrip()
    except ValueError:
        return created
