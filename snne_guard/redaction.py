"""Keys and passwords left out of what is shown or stored."""

from __future__ import annotations

import os
import re

_SHORTEST_SECRET = 8
_SECRETS = (
    # Keys that show what they are, and web tokens with all their parts.
    (
        re.compile(
            r"\b(?:(?:(?:sk|gsk|xai|pplx|hf)[-_]|AIza)[\w-]{8,}"
            r"|eyJ[\w-]{8,}(?:\.[\w-]*)+|(?i:bearer)\s+[\w.~+/=-]{8,})"
        ),
        "***",
    ),
    # user:password@ in an address.
    (re.compile(r"://[^\s/]+@"), "://***@"),
    # What stands behind such a name, as in "x-api-key: ...", {'password': '...'},
    # ("api-key", "...") or ?key=...
    (
        re.compile(
            r"((?:(?:api|subscription)[-_ ]?key|authorization|password|secret|token"
            r"|(?<=[?&])key)(?: provided)?(?:(?:\\*[\"'])?\s*[:=]|\\*[\"']\s*,)"
            r"\s*(?:b?\\*[\"'])?(?:(?:basic|bearer|token|apikey)\s+)?)"
            r"(?:(?<=\")(?:[^\"\\\n]|\\(?!\"))+|(?<=')(?:[^'\\\n]|\\(?!'))+"
            r"|[^\s\"'\\,;&}]+)",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
)


def without_secrets(text: str) -> str:
    """Return a text with ``***`` in place of keys and passwords, as far as we see them.

    It knows the values of environment variables that are named after a key, the usual
    shapes of keys, what follows a name such as ``api_key``, and passwords in addresses.
    """
    for name, value in os.environ.items():
        named = name.upper().endswith(("KEY", "TOKEN", "SECRET", "PASSWORD"))
        if named and len(value) >= _SHORTEST_SECRET:  # a shorter one may be a word
            text = text.replace(value, "***")
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text
