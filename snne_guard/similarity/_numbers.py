"""One spelling for a number, however it was grouped or pointed."""

from __future__ import annotations

import re

__all__ = ["canonical_number"]

# The body is digits with what may stand between them; the rest is its suffix.
_BODY = "0123456789.,:/'_"
_WHOLE = re.compile(
    r"""  \d+ (?:\.\d+)*                        # 12, 1.5, version 1.2.3
        | \d+ (?::\d+)+ (?:\.\d+)?              # 12:30, 16:9
        | \d+/\d+                               # 1/2
    """,
    re.VERBOSE,
)
_DOT_GROUPS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3}){2,}")
_GROUPED = re.compile(
    r"""( [1-9]\d{0,2} (?:,\d{3})+              # 1,200
        | [1-9]\d? (?:,\d\d)+ ,\d{3}            # 1,00,000
        | [1-9]\d{0,2} (?:'\d{3})+              # 1'200
        | [1-9]\d{0,2} (?:_\d{3})+              # 1_200
        ) (\.\d+)?
    """,
    re.VERBOSE,
)
_DECIMAL_COMMA = re.compile(r"(\d+|[1-9]\d{0,2}(?:\.\d{3})+),(\d+)")  # 1,5 and 1.200,5
_NO_GROUPING = str.maketrans("", "", ",'_")


def canonical_number(written: str) -> list[str]:
    """Return the numbers that digits with points, commas, colons and slashes are.

    Args:
        written: Starts with a digit or with a point before one; may end in a suffix
            such as ``%``, ``th`` or an exponent, which stays with the last number.

    Example:
        >>> canonical_number("1,200.50"), canonical_number("1.200,50")
        (['1200.50'], ['1200.50'])
        >>> canonical_number("2,3,5"), canonical_number("1,5"), canonical_number(".5 %")
        (['2', '3', '5'], ['1.5'], ['0.5%'])
        >>> canonical_number("5/1/2024"), canonical_number("1/2")
        (['5', '1', '2024'], ['1/2'])
    """
    suffix = written.lstrip(_BODY)
    body = written[: len(written) - len(suffix)]
    numbers = _numbers("0" + body if body[0] == "." else body)
    numbers[-1] += suffix.lstrip()
    return numbers


def _numbers(body: str) -> list[str]:
    if _WHOLE.fullmatch(body):
        return [body.replace(".", "") if _DOT_GROUPS.fullmatch(body) else body]
    if grouped := _GROUPED.fullmatch(body):
        return [grouped[1].translate(_NO_GROUPING) + (grouped[2] or "")]
    if comma := _DECIMAL_COMMA.fullmatch(body):
        return [f"{comma[1].replace('.', '')}.{comma[2]}"]
    return _split(body)


def _split(body: str) -> list[str]:
    """Return the numbers of a list, a date or a quotient."""
    separator = next(mark for mark in "/,:'_" if mark in body)
    parts = [_numbers(part) for part in body.split(separator)]
    if separator == "/" and len(parts) == 2:  # noqa: PLR2004 - a quotient has two sides
        parts.insert(1, ["/"])
    return [number for part in parts for number in part]
