"""ROUGE-L between texts: as a matrix at once, or one text after another."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import cast

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from snne_guard.errors import InputError
from snne_guard.similarity.tokens import TokenizerName, tokenizer, unicode_tokens
from snne_guard.types import FloatArray

__all__ = ["LexicalPairs", "LexicalSet", "rouge_l", "rouge_l_paper"]

_SURROGATES = range(0xD800, 0xE000)  # no characters of their own in a str to compare


def rouge_l(
    texts: Sequence[str],
    /,
    *,
    tokens: TokenizerName = "unicode",
    question: str | None = None,
) -> FloatArray:
    r"""Compare every text with every other one by ROUGE-L F1.

    .. math:: f(a, b) = \frac{2 \, \mathrm{LCS}(a, b)}{|a| + |b|}

    where LCS is the length of the longest common subsequence of the tokens.

    Args:
        texts: The ``n`` texts. Equal texts are computed once.
        tokens: ``"unicode"`` compares words of every script, whole numbers and
            symbols that carry meaning; texts with the same tokens are 1, two empty
            ones too. ``"rouge"`` gives rouge-score's number for every pair of texts:
            it sees ``[a-z0-9]`` only, and texts without such a character are 0 to
            everything but themselves, also to their equals.
        question: Not used: ROUGE-L compares answers without it.

    Returns:
        ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1; higher is more
        alike.

    Raises:
        ConfigurationError: ``tokens`` names no tokenizer.
        InputError: ``texts`` is not a sequence of strings.

    Source:
        Lin (2004), ROUGE, https://aclanthology.org/W04-1013/, section 3; the paper of
        SNNE uses rouge-score's tokenizer without stemmer.

    Example:
        >>> rouge_l(["Paris.", "paris", "It is Paris", "-5", "5"])
        array([[1. , 1. , 0.5, 0. , 0. ],
               [1. , 1. , 0.5, 0. , 0. ],
               [0.5, 0.5, 1. , 0. , 0. ],
               [0. , 0. , 0. , 1. , 0. ],
               [0. , 0. , 0. , 0. , 1. ]])
    """
    del question
    cut = tokenizer(tokens)
    index = _distinct(texts)
    lists = [cut(text) for text in index]
    vocabulary = _grown({}, chain.from_iterable(lists))
    encoded = [_encode(tokens_, vocabulary) for tokens_ in lists]
    matrix = _f1(_lcs(encoded, encoded), encoded, encoded, paper=tokens == "rouge")
    if len(index) < len(texts):
        rows = np.array([index[text] for text in texts])
        matrix = matrix[rows[:, None], rows]
    if "" in encoded:
        np.fill_diagonal(matrix, 1.0)
    return matrix


def rouge_l_paper(
    texts: Sequence[str], /, *, question: str | None = None
) -> FloatArray:
    """Compare texts by ROUGE-L exactly as the paper does: rouge-score's tokens.

    Args:
        texts: The ``n`` texts.
        question: Not used.

    Returns:
        ``(n, n)`` float64 matrix in [0, 1], symmetric, diagonal 1.

    Raises:
        InputError: ``texts`` is not a sequence of strings.

    Example:
        >>> rouge_l_paper(["-5", "5", "São Paulo"])
        array([[1., 1., 0.],
               [1., 1., 0.],
               [0., 0., 1.]])
    """
    return rouge_l(texts, tokens="rouge", question=question)


class LexicalPairs:
    """ROUGE-L of two texts at a time, each text read once; for one call's use."""

    def __init__(self) -> None:
        self._tokens: dict[str, list[str]] = {}

    @staticmethod
    def distinct(texts: Sequence[str]) -> dict[str, int]:
        """Return each distinct text with its place among them.

        Raises:
            InputError: ``texts`` is not a sequence of strings.
        """
        return _distinct(texts)

    def __call__(self, one: str, other: str) -> float:
        """Return what ``rouge_l((one, other))`` says of the two."""
        left, right = self._read(one), self._read(other)
        total = len(left) + len(right)
        return 2 * LCSseq.similarity(left, right) / total if total else 1.0

    def _read(self, text: str) -> list[str]:
        if text not in self._tokens:
            self._tokens[text] = unicode_tokens(text)
        return self._tokens[text]


@dataclass(frozen=True, slots=True)
class LexicalSet:
    """Texts with their ROUGE-L matrix, to which a text is added for one row's work.

    It is never changed: :meth:`add` returns a new set.

    Attributes:
        texts: The ``n`` texts.
        matrix: ``(n, n)`` float64, what :func:`rouge_l` gives for them; read-only.
        tokens: Name of the tokenizer.

    Example:
        >>> grown = LexicalSet.of(["Paris"]).add("It is Paris").add("Lyon")
        >>> grown.texts
        ('Paris', 'It is Paris', 'Lyon')
        >>> grown.matrix
        array([[1. , 0.5, 0. ],
               [0.5, 1. , 0. ],
               [0. , 0. , 1. ]])
    """

    texts: tuple[str, ...] = field(repr=False)
    matrix: FloatArray = field(repr=False, compare=False)
    tokens: TokenizerName
    _encoded: tuple[str, ...] = field(repr=False, compare=False)
    _vocabulary: Mapping[str, str] = field(repr=False, compare=False)

    @classmethod
    def of(
        cls, texts: Sequence[str] = (), /, *, tokens: TokenizerName = "unicode"
    ) -> LexicalSet:
        """Build a set from all the texts that are there already.

        Args:
            texts: The ``n`` texts, none by default.
            tokens: As for :func:`rouge_l`.

        Raises:
            ConfigurationError: ``tokens`` names no tokenizer.
            InputError: ``texts`` is not a sequence of strings.
        """
        cut = tokenizer(tokens)
        matrix = _read_only(rouge_l(texts, tokens=tokens))
        lists = [cut(text) for text in texts]
        vocabulary = _grown({}, chain.from_iterable(lists))
        encoded = tuple(_encode(tokens_, vocabulary) for tokens_ in lists)
        return cls(tuple(texts), matrix, tokens, encoded, vocabulary)

    def add(self, text: str, /) -> LexicalSet:
        """Return the set with one more text; only its row is computed.

        Raises:
            InputError: ``text`` is not a string.
        """
        _distinct((text,))
        n = len(self.texts)
        cut = tokenizer(self.tokens)(text)
        vocabulary = _grown(self._vocabulary, cut)
        encoded = (_encode(cut, vocabulary),)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = self.matrix
        lcs = _lcs(encoded, self._encoded)
        row = _f1(lcs, encoded, self._encoded, paper=self.tokens == "rouge")
        matrix[n, :n] = matrix[:n, n] = row[0]
        return LexicalSet(
            (*self.texts, text),
            _read_only(matrix),
            self.tokens,
            self._encoded + encoded,
            vocabulary,
        )


def _distinct(texts: Sequence[str]) -> dict[str, int]:
    """Return each distinct text with its place among them."""
    if isinstance(texts, str):
        msg = "expected a sequence of texts, got one str"
        raise InputError(msg)
    for text in cast("Sequence[object]", texts):
        if not isinstance(text, str):
            msg = f"expected every text to be a str, got {type(text).__name__}"
            raise InputError(msg)
    return {text: place for place, text in enumerate(dict.fromkeys(texts))}


def _grown(known: Mapping[str, str], tokens: Iterable[str]) -> dict[str, str]:
    """Return a vocabulary, one character a token, that holds these tokens too.

    Raises:
        InputError: There are more distinct tokens than characters.
    """
    new = [token for token in dict.fromkeys(tokens) if token not in known]
    codes = chain(range(_SURROGATES.start), range(_SURROGATES.stop, sys.maxunicode + 1))
    characters = map(chr, islice(codes, len(known), None))
    vocabulary = {**known, **dict(zip(new, characters, strict=False))}
    if len(vocabulary) < len(known) + len(new):
        msg = f"expected at most {len(vocabulary)} distinct tokens, got more"
        raise InputError(msg)
    return vocabulary


def _encode(tokens: Iterable[str], vocabulary: Mapping[str, str]) -> str:
    return "".join(map(vocabulary.__getitem__, tokens))


def _lcs(queries: Sequence[str], choices: Sequence[str]) -> FloatArray:
    """Return the LCS lengths of encoded texts, ``(len(queries), len(choices))``."""
    if not queries or not choices:
        return np.zeros((len(queries), len(choices)))
    return cdist(queries, choices, scorer=LCSseq.similarity, dtype=np.float64)


def _f1(
    lcs: FloatArray, rows: Sequence[str], columns: Sequence[str], *, paper: bool
) -> FloatArray:
    """Turn LCS lengths of encoded texts into F1, in place."""
    counts = np.array([*map(len, columns)], np.float64)
    if rows is columns:
        totals = counts[:, None] + counts
    else:
        totals = np.array([[len(row)] for row in rows], np.float64) + counts
    if "" in rows:
        neither = totals == 0
        # rouge-score says 0 where neither side has a token.
        lcs[neither] = 0.0 if paper else 0.5
        totals[neither] = 1.0
    lcs *= 2.0
    lcs /= totals
    return lcs


def _read_only(matrix: FloatArray) -> FloatArray:
    matrix.setflags(write=False)
    return matrix
