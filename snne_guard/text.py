"""Text from models, servers and files, made fit to be shown or stored."""

from __future__ import annotations

import os
import re

__all__ = ["printable", "without_secrets"]

# Control characters of 7 and 8 bits, and those that turn the direction of writing.
_PICTURES = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), 0x2028, 0x2029), 0xFFFD),
    **dict.fromkeys((0x200E, 0x200F, 0x061C), 0xFFFD),
    **dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
_ALL_BUT_LINES = {code: seen for code, seen in _PICTURES.items() if code != ord("\n")}

_SHORTEST_SECRET = 8
_SECRETS = (
    # Keys that show what they are.
    (re.compile(r"\b(?:(?:sk|gsk|xai|pplx|hf)[-_]|AIza|Bearer )[\w-]{8,}"), "***"),
    # user:password@ in an address.
    (re.compile(r"://[^\s/]+@"), "://***@"),
    # What stands behind such a name, as in "x-api-key: ..." or {'password': '...'}.
    (
        re.compile(
            r"((?:api[-_ ]?key|authorization|password|secret|token)"
            r"(?: provided)?[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|token) )?)"
            r"[^\s\"',;&}]+",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
)


def printable(text: str, *, lines: bool = False) -> str:
    r"""Return a text that cannot steer a terminal or turn a page's writing around.

    Args:
        text: Any text; control characters become pictures of themselves, and what
            cannot be encoded a question mark.
        lines: Whether line feeds stay.

    Example:
        >>> printable("a\x1b[2J")
        'a␛[2J'
    """
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    return encodable.translate(_ALL_BUT_LINES if lines else _PICTURES)


def without_secrets(text: str) -> str:
    """Return a text with ``***`` in place of keys and passwords, as far as we see them.

    It knows the values of environment variables that are named after a key, the usual
    shapes of keys, what follows a name such as ``api_key``, and passwords in addresses.

    Example:
        >>> without_secrets("401 from http://me:pw@host: bad 'api_key': 'abc'")
        "401 from http://***@host: bad 'api_key': '***'"
    """
    for name, value in os.environ.items():
        named = name.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
        if named and len(value) >= _SHORTEST_SECRET:  # a shorter one may be a word
            text = text.replace(value, "***")
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
