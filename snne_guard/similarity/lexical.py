"""ROUGE-L, and the longest common subsequence that it counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from snne_guard.checks import check_choice
from snne_guard.similarity.pairs import distinct_texts, spread
from snne_guard.similarity.tokens import rouge_tokens, unicode_tokens
from snne_guard.types import FloatArray

ROUGE_L_TOKENS = 5_000
"""ROUGE-L compares the order of this many tokens of a text. After them common tokens
count in any order, which keeps time linear."""

ALMOST_ONE = 0.99
"""Upper limit for texts with different tokens whose order was not fully compared."""


_JSON_BRACKETS = frozenset("[]{}")


def _words_and_signs(text: str) -> list[str]:
    tokens = unicode_tokens(text)
    # Any two lists have brackets in common, whatever they list.
    return [token for token in tokens if token not in _JSON_BRACKETS] or tokens


_TOKENIZERS = {"unicode": _words_and_signs, "rouge": rouge_tokens}


def rouge_l(
    texts: Sequence[str],
    /,
    *,
    question: str | None = None,
    tokens: Literal["unicode", "rouge"] = "unicode",
) -> FloatArray:
    r"""Compare every text with every other one by ROUGE-L F1.

    .. math:: f(a, b) = \frac{2 \, \mathrm{LCS}(a, b)}{|a| + |b|}

    where LCS is the length of the longest common subsequence of the tokens. After the
    first ``ROUGE_L_TOKENS``, common tokens count in any order.

    Args:
        texts: The ``n`` texts.
        question: Not used.
        tokens: ``"unicode"`` compares words of every script, whole numbers and symbols
            but brackets of lists and objects; two texts with the same tokens score 1,
            and so do two empty ones.
            ``"rouge"`` gives rouge-score's number: it sees ``[a-z0-9]`` only, and a
            text without such a character scores 0 with everything but itself.

    Returns:
        ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1.

    Raises:
        ConfigurationError: ``tokens`` names no tokenizer.
        InputError: ``texts`` is not a sequence of strings.

    Source: Lin (2004), ROUGE, https://aclanthology.org/W04-1013/, section 3.

    Example:
        >>> rouge_l(["Paris.", "It is Paris", "5"])
        array([[1. , 0.5, 0. ],
               [0.5, 1. , 0. ],
               [0. , 0. , 1. ]])
    """
    del question
    check_choice(tokens, (*_TOKENIZERS,), what="tokens")
    cut = _TOKENIZERS[tokens]
    distinct = distinct_texts(texts)
    if not distinct:
        return np.zeros((0, 0))
    tokenized = [cut(text) for text in distinct]
    # One of 1.1 million characters for each token: rapidfuzz compares 64 at a step.
    vocabulary = set[str]().union(*tokenized)
    character = {token: chr(place) for place, token in enumerate(vocabulary)}
    encoded = ["".join([character[word] for word in words]) for words in tokenized]
    counts = np.array([*map(len, encoded)], dtype=np.float64)
    totals = counts[:, None] + counts
    if counts.max() > ROUGE_L_TOKENS:
        matrix = _common_lengths(encoded)
    else:
        matrix = cdist(encoded, encoded, scorer=LCSseq.similarity, dtype=np.float64)
    if not counts.all():
        empty = totals == 0
        matrix[empty], totals[empty] = 0.5 if tokens == "unicode" else 0.0, 1.0
    matrix *= 2.0
    matrix /= totals
    matrix = spread(matrix, distinct, texts)
    np.fill_diagonal(matrix, 1.0)  # of a text without rouge-score's tokens
    return matrix


def _common_lengths(encoded: Sequence[str]) -> FloatArray:
    """Return the overlap of long texts: less than all unless they are equal."""
    common: FloatArray = np.zeros((len(encoded), len(encoded)))
    for (i, a), (j, b) in combinations_with_replacement(enumerate(encoded), 2):
        most = (len(a) + len(b)) / 2 * (1.0 if a == b else ALMOST_ONE)
        common[i, j] = common[j, i] = min(common_length(a, b, ROUGE_L_TOKENS), most)
    return common


def common_length(a: str, b: str, limit: int, /) -> int:
    """Return the longest common subsequence's length; in any order after a limit."""
    shared: int = LCSseq.similarity(a[:limit], b[:limit])
    if len(a) <= limit >= len(b):
        return shared
    shared += (Counter(a[limit:]) & Counter(b[limit:])).total()
    return min(shared, len(a), len(b))


def rouge_l_paper(
    texts: Sequence[str], /, *, question: str | None = None
) -> FloatArray:
    """Compare texts by ROUGE-L as in SNNE's paper: on the tokens of rouge-score."""
    return rouge_l(texts, tokens="rouge", question=question)
