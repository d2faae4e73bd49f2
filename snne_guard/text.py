"""What a text shows: without its reasoning, on a terminal or a page, or nothing."""

from __future__ import annotations

from unicodedata import category

# Control characters of 7 and 8 bits, and those that turn the direction of writing.
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), 0xFFFD),
    **dict.fromkeys((0x200E, 0x200F, 0x061C), 0xFFFD),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_ALL_BUT_LINES = {code: seen for code, seen in _PICTURES.items() if code != ord("\n")}

# Letters or symbols according to Unicode, but invisible.
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0\ufffc")


def printable(text: str, *, lines: bool = False) -> str:
    """Return a text that cannot steer a terminal or turn a page's writing around.

    Control characters become pictures of themselves, all but line feeds with ``lines``,
    and what cannot be encoded a question mark.
    """
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return encodable.translate(_ALL_BUT_LINES if lines else _PICTURES)


def is_visible(text: str, /) -> bool:
    """Look for a visible character in a text."""
    return any(
        category(character)[0] not in "CMZ" and character not in _BLANK
        for character in text
    )


def without_reasoning(text: str, /) -> str:
    """Return a text without a block of reasoning that opens and closes at its start.

    A closing tag alone hides nothing: whether it ends reasoning is not to be seen.
    """
    start = text.lstrip()
    if not start.startswith("<think>"):
        return text
    _, closed, rest = start.partition("</think>")
    return rest.lstrip() if closed else text
