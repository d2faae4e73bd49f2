"""The two ways to cut a text into the tokens that ROUGE-L compares."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from snne_guard.errors import ConfigurationError
from snne_guard.similarity._grammar import scan
from snne_guard.similarity._unicode import CURRENCY, SOLO, SYMBOL, mark, prepare

__all__ = ["TOKENIZERS", "TokenizerName", "rouge_tokens", "unicode_tokens"]

TokenizerName = Literal["unicode", "rouge"]
"""Name of a tokenizer: this library's own, or rouge-score's."""

_PLAIN = bytes(
    code if chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789" else ord(" ")
    for code in bytes(range(256)).lower()
)

# The grammar's own marks may not come from the text.
_NO_MARKS = str.maketrans(SYMBOL + CURRENCY + SOLO, "   ")

# A text of these alone holds nothing but words for the grammar; a text with others
# must hold one of the special ones where it matters.
_UNREMARKABLE = (
    b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ \t\r\n.,;:?'\"()[]{}_@`\\"
)
# Every alternative begins with one of the characters that are looked ahead for, which
# spares the others at all other places.
_SPECIAL = re.compile(
    r"(?=[-0-9$%+#<>=^|~*&!/)])"
    r"(?:(?<![A-Za-z0-9])[0-9]|[$%+#<>=^|~*]|&&|![\w(]|-[(]|(?<!\w)-\w|-(?!\w)|/[(0-9]|[0-9)]/)"
)


def rouge_tokens(text: str) -> list[str]:
    """Cut a text as rouge-score does without stemmer: lower case, ``[a-z0-9]+``.

    Source:
        ``rouge_score/tokenize.py`` of rouge-score 0.1.2.

    Example:
        >>> rouge_tokens("Don't say São Paulo, say -5%!")
        ['don', 't', 'say', 's', 'o', 'paulo', 'say', '5']
    """
    # Lower case first: the KELVIN SIGN becomes an ASCII letter by it.
    lowered = text if text.isascii() else text.lower()
    return lowered.encode("ascii", "replace").translate(_PLAIN).decode("ascii").split()


def unicode_tokens(text: str) -> list[str]:
    """Cut a text into words of any script, whole numbers and meaningful symbols.

    On plain English words it gives what :func:`rouge_tokens` gives. The rules are in
    the documentation of :mod:`snne_guard.similarity`; a token is to be compared, not
    to be shown.

    Args:
        text: Any text.

    Returns:
        The tokens in order; the whole text without spaces as one token where it holds
        nothing but punctuation; none for an empty or blank text.

    Example:
        >>> unicode_tokens("At -5 °C, 1,200 cafés don't open.")
        ['at', '-5', '°', 'c', '1200', 'cafés', 'don', 't', 'open']
        >>> unicode_tokens("C++ costs 5 €, 50 % less")
        ['c++', 'costs', '€', '5', '50%', 'less']
    """
    if text.isascii():
        raw = text.encode("ascii")
        if raw.translate(None, _UNREMARKABLE) and _SPECIAL.search(text):
            tokens = scan(text.lower().translate(_NO_MARKS))
        else:
            tokens = raw.translate(_PLAIN).decode("ascii").split()
    else:
        tokens = scan(mark(prepare(text)))
    return tokens or _whole(text)


def _whole(text: str) -> list[str]:
    """Return a text of mere punctuation as one token, so that ``?`` is not ``!``."""
    joined = "".join(text.split() if text.isascii() else prepare(text).split())
    return [joined] if joined else []


TOKENIZERS: Mapping[str, Callable[[str], list[str]]] = MappingProxyType(
    {"unicode": unicode_tokens, "rouge": rouge_tokens}
)
"""The tokenizers by name."""


def tokenizer(name: str) -> Callable[[str], list[str]]:
    """Return the tokenizer of that name.

    Raises:
        ConfigurationError: No tokenizer has that name.
    """
    try:
        return TOKENIZERS[name]
    except (KeyError, TypeError):
        msg = f"expected tokens to be one of {sorted(TOKENIZERS)}, got {name!r}"
        raise ConfigurationError(msg) from None
