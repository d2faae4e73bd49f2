"""Answers that have words of the question in common, or of what is no question."""

from __future__ import annotations

from collections.abc import Sequence

from snne_guard.similarity import content_f1
from snne_guard.types import FloatArray

__all__ = ["ASKED", "DIFFERENT", "EARLIER", "LAST", "THRESHOLD", "taken_for_question"]

LAST = "Who was the first owner of the old mill near Ghent?"
CONTEXT = "Mariette Vautrin founded the bakery on Rue Cler in Paris in 1931."
BEFORE = "Was the leaning tower of Pisa closed in the spring of 1990?"

ASKED = [
    ("system", f"Answer from this context. {CONTEXT}"),
    ("user", BEFORE),
    ("assistant", "It was."),
    ("user", LAST),
]
"""A conversation with a context in its system prompt; its last turn is the question."""

DIFFERENT = [
    f"The first owner of the old mill near Ghent was {name}."
    for name in ("Adam Smet", "Joris Claes", "Pieter Maes", "Lieve Wouters")
]
"""An answer and three samples that each name somebody else: 10 words of 12 are the
same, all of them the question's."""

THRESHOLD = 0.7
"""Accepts them where the words of the question count as what they say."""

EARLIER = {
    CONTEXT: [
        "Mariette Vautrin founded the bakery on Rue Cler in 1931",
        "Mariette Vautrin founded the bakery on Rue Cler with a friend",
    ],
    BEFORE: [
        "The leaning tower of Pisa was closed in the spring by Rossi",
        "The leaning tower of Pisa was closed in the spring by Bianchi",
    ],
}
"""Answers that agree in what they took from a context, or from an earlier turn."""


def taken_for_question(texts: Sequence[str], question: str) -> FloatArray:
    """Return how alike texts are to whom this, and nothing else, is the question."""
    return content_f1(texts, question=question)
