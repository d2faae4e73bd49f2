"""Similarities: from ``n`` texts to an ``(n, n)`` matrix in [0, 1].

A similarity is any callable ``(texts, *, question=None)``; see ``types.Similarity``.
Those of this library are symmetric with diagonal 1, compare equal texts only once, and
raise InputError for anything but a sequence of strings. Most of them ignore the
question; the others say what they do with it.
"""

from snne_guard.similarity.content import ContentF1, content_f1
from snne_guard.similarity.cross_encoder import CrossEncoder
from snne_guard.similarity.embedding import Embedding
from snne_guard.similarity.judge import EntailmentJudge
from snne_guard.similarity.lexical import rouge_l, rouge_l_paper
from snne_guard.similarity.matches import (
    Match,
    exact,
    normalised,
    normalised_text,
    numeric,
)
from snne_guard.similarity.nli import NLI, entail_similarity, equivalence
from snne_guard.similarity.numbers import stated_number
from snne_guard.similarity.registry import SIMILARITIES, resolve_similarity
from snne_guard.similarity.tokens import unicode_tokens

__all__ = [
    "NLI",
    "SIMILARITIES",
    "ContentF1",
    "CrossEncoder",
    "Embedding",
    "EntailmentJudge",
    "Match",
    "content_f1",
    "entail_similarity",
    "equivalence",
    "exact",
    "normalised",
    "normalised_text",
    "numeric",
    "resolve_similarity",
    "rouge_l",
    "rouge_l_paper",
    "stated_number",
    "unicode_tokens",
]
