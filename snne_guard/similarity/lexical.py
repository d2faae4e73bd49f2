"""ROUGE-L between texts: as a matrix at once, or one text after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from snne_guard.errors import InputError
from snne_guard.similarity.tokens import TokenizerName, tokenizer, unicode_tokens
from snne_guard.types import FloatArray

__all__ = ["LexicalSet", "rouge_l", "rouge_l_paper"]

_FIRST_SURROGATE, _SURROGATES = 0xD800, 0x800


class Vocabulary(dict[str, str]):
    """Token to the one character that stands for it; safe to share by threads."""

    def __init__(self) -> None:
        super().__init__()
        self._codes = count()

    def __missing__(self, token: str) -> str:
        code = next(self._codes)
        if code >= _FIRST_SURROGATE:
            code += _SURROGATES
        return self.setdefault(token, chr(code))

    def encode(self, tokens: Sequence[str]) -> str:
        """Return one character for each token."""
        return "".join(map(self.__getitem__, tokens))


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
    vocabulary = Vocabulary()
    encoded = [vocabulary.encode(cut(text)) for text in index]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    matrix = _f1(_lcs(encoded, encoded), lengths, lengths, paper=tokens == "rouge")
    if len(index) < len(texts):
        rows = np.fromiter((index[text] for text in texts), np.intp, len(texts))
        matrix = matrix[rows[:, None], rows]
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
        self._vocabulary = Vocabulary()
        self._encoded: dict[str, str] = {}

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

    def _read(self, text: str) -> str:
        if text not in self._encoded:
            self._encoded[text] = self._vocabulary.encode(unicode_tokens(text))
        return self._encoded[text]


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
    _vocabulary: Vocabulary = field(repr=False, compare=False)

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
        vocabulary = Vocabulary()
        matrix = _read_only(rouge_l(texts, tokens=tokens))
        encoded = tuple(vocabulary.encode(cut(text)) for text in texts)
        return cls(tuple(texts), matrix, tokens, encoded, vocabulary)

    def add(self, text: str, /) -> LexicalSet:
        """Return the set with one more text; only its row is computed.

        Raises:
            InputError: ``text`` is not a string.
        """
        _distinct((text,))
        n = len(self.texts)
        encoded = self._vocabulary.encode(tokenizer(self.tokens)(text))
        lengths = np.fromiter(map(len, self._encoded), np.int64, n)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = self.matrix
        row = _f1(
            _lcs((encoded,), self._encoded),
            np.array([len(encoded)]),
            lengths,
            paper=self.tokens == "rouge",
        )
        matrix[n, :n] = matrix[:n, n] = row[0]
        return LexicalSet(
            (*self.texts, text),
            _read_only(matrix),
            self.tokens,
            (*self._encoded, encoded),
            self._vocabulary,
        )


def _distinct(texts: Sequence[str]) -> dict[str, int]:
    """Return each distinct text with its place among them."""
    if isinstance(texts, str):
        msg = "expected a sequence of texts, got one str"
        raise InputError(msg)
    for text in texts:
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            msg = f"expected every text to be a str, got {type(text).__name__}"
            raise InputError(msg)
    return {text: place for place, text in enumerate(dict.fromkeys(texts))}


def _lcs(queries: Sequence[str], choices: Sequence[str]) -> NDArray[np.int32]:
    """Return the LCS lengths of encoded texts, ``(len(queries), len(choices))``."""
    if not queries or not choices:
        return np.zeros((len(queries), len(choices)), np.int32)
    return cdist(queries, choices, scorer=LCSseq.similarity, dtype=np.int32)


def _f1(
    lcs: NDArray[np.int32],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    *,
    paper: bool,
) -> FloatArray:
    """Return F1 from LCS lengths and token counts; two texts without tokens are 1."""
    total = rows[:, None] + columns
    if total.all():
        return np.divide(2 * lcs, total)
    # rouge-score says 0 where neither side has a token.
    return np.where(total == 0, 0.0 if paper else 1.0, 2 * lcs / np.maximum(total, 1))


def _read_only(matrix: FloatArray) -> FloatArray:
    matrix.setflags(write=False)
    return matrix
