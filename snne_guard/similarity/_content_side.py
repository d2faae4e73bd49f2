"""One of two answers that are looked at for signs that they differ."""

from __future__ import annotations

from dataclasses import dataclass

from snne_guard.similarity._content_wording import Wording
from snne_guard.similarity._content_words import Answer

__all__ = ["Side"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two answers.

    Attributes:
        answer: What it says.
        wording: How.
        news: Its words that are more than grammar.
        language: The language of both, None where it is not known.
    """

    answer: Answer
    wording: Wording
    news: frozenset[str]
    language: str | None
