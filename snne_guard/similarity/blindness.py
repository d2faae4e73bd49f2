"""What of some answers a similarity cannot see, whoever wrote it."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from snne_guard.errors import InputError
from snne_guard.similarity.lexical import rouge_l_paper
from snne_guard.similarity.tokens import rouge_tokens
from snne_guard.types import Similarity

__all__ = ["blind_spots", "is_unseen"]


def blind_spots(
    similarity: Similarity, texts: Sequence[str], /, *, question: str | None = None
) -> tuple[str, ...]:
    """Return why what a similarity says of some texts tells less than it seems.

    Any similarity may have a method ``blind_spots`` that is called as the similarity
    is and returns reason codes; one without it has none to tell of.

    Args:
        similarity: What compares the texts.
        texts: The ``n`` texts.
        question: What was asked.

    Returns:
        Reason codes, such as ``answers_cut``; ``tokenless_answers`` where rouge-score
        sees nothing in an answer of letters, digits or symbols.

    Raises:
        InputError: What the similarity says of its blind spots are no codes.

    Example:
        >>> blind_spots(rouge_l_paper, ["Tokyo", "東京"])
        ('tokenless_answers',)
    """
    if similarity is rouge_l_paper:
        return ("tokenless_answers",) if any(map(is_unseen, texts)) else ()
    tell = getattr(similarity, "blind_spots", None)
    if not callable(tell):
        return ()
    found: Any = tell(texts, question=question)
    if isinstance(found, str) or not all(isinstance(code, str) for code in found):
        msg = f"expected reason codes from blind_spots, got {found!r}"
        raise InputError(msg)
    return tuple(found)


def is_unseen(text: str, /) -> bool:
    """Return whether rouge-score's tokenizer sees none of a text's letters and symbols.

    Example:
        >>> is_unseen("東京"), is_unseen("Tokyo 東京"), is_unseen("?!")
        (True, False, False)
    """
    if rouge_tokens(text):
        return False
    return any(unicodedata.category(one)[0] in "LNS" for one in text)
