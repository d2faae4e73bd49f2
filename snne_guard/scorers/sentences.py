"""Answers sentence by sentence, for methods that compare their sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from snne_guard.types import IntArray

__all__ = ["sentence_owners", "sentences_of", "split_sentences"]

_END = re.compile(
    r"(?<=[.!?…])\s+|(?<=[.!?…][\"'”’)\]])\s+|(?<=[。！？])|\n"  # noqa: RUF001 - marks of other scripts
)


def split_sentences(text: str, /) -> tuple[str, ...]:
    """Return the sentences of a text, at least one.

    A sentence ends at ``. ! ? …`` before white space, at the full stops of Chinese and
    Japanese, and with a line. An abbreviation ends one too: "Dr. No" is two.

    Example:
        >>> split_sentences("He won. Did she? Yes, 3.5 times!")
        ('He won.', 'Did she?', 'Yes, 3.5 times!')
        >>> split_sentences("")
        ('',)
    """
    found = (one.strip() for one in _END.split(text))
    return tuple(one for one in found if one) or (text,)


def sentences_of(texts: Sequence[str], /) -> list[str]:
    """Return all sentences of all texts, one after the other."""
    return [sentence for text in texts for sentence in split_sentences(text)]


def sentence_owners(texts: Sequence[str], /) -> IntArray:
    """Return which text each of ``sentences_of`` is in.

    Example:
        >>> sentence_owners(["Yes. No.", "Yes."]).tolist()
        [0, 0, 1]
    """
    counts = [len(split_sentences(text)) for text in texts]
    return np.repeat(np.arange(len(texts), dtype=np.intp), counts)
