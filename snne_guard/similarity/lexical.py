"""ROUGE-L between texts: as a matrix at once, or one text after another."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain, islice

import numpy as np
from rapidfuzz.distance import LCSseq
from rapidfuzz.process import cdist

from snne_guard.errors import InputError
from snne_guard.similarity.tokens import TokenizerName, tokenizer, unicode_tokens
from snne_guard.types import FloatArray, Similarity

__all__ = ["LexicalPairs", "LexicalSet", "is_metric", "rouge_l", "rouge_l_paper"]

_SURROGATES = range(0xD800, 0xE000)  # no characters of their own in a str to compare
_LONG = 1000  # characters
_CHARACTERS = "".join(map(chr, range(4096)))


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
    distinct = distinct_texts(texts)
    _, encoded = _encoded(_read(cut, distinct), {})
    lcs = _lcs(encoded, encoded)
    counts = lcs.diagonal()
    totals = counts[:, None] + counts
    if "" in encoded:
        _settle_empty(lcs, totals, alike=tokens != "rouge")
    matrix = _f1(lcs, totals)
    if len(distinct) < len(texts):
        place = {text: row for row, text in enumerate(distinct)}
        rows = np.array([place[text] for text in texts])
        matrix = matrix[rows[:, None], rows]
    if "" in encoded:
        np.fill_diagonal(matrix, 1.0)  # of empty texts with rouge-score's tokens
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


def is_metric(similarity: Similarity, /) -> bool:
    """Return whether 2 (1 - f) / (2 - f) is known to obey the triangle inequality.

    ROUGE-L is 1 - d / (|a| + |b|) for the indel distance d, of which it is the
    Steinhaus transform.

    Example:
        >>> is_metric(rouge_l)
        True
    """
    return similarity is rouge_l or similarity is rouge_l_paper


class LexicalPairs:
    """ROUGE-L of two texts at a time, each text read once; for one call's use."""

    def __init__(self) -> None:
        self._tokens: dict[str, list[str]] = {}

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
        vocabulary, encoded = _encoded(_read(cut, texts), {})
        return cls(tuple(texts), matrix, tokens, tuple(encoded), vocabulary)

    def add(self, text: str, /) -> LexicalSet:
        """Return the set with one more text; only its row is computed.

        Raises:
            InputError: ``text`` is not a string.
        """
        distinct_texts((text,))
        n = len(self.texts)
        cut = tokenizer(self.tokens)(text)
        vocabulary, encoded = _encoded([cut], self._vocabulary)
        lcs = _lcs(encoded, self._encoded)
        totals = np.array([[len(cut) + len(other) for other in self._encoded]], float)
        matrix = np.ones((n + 1, n + 1))
        matrix[:n, :n] = self.matrix
        _settle_empty(lcs, totals, alike=self.tokens != "rouge")
        matrix[n, :n] = _f1(lcs, totals)
        matrix[:n, n] = matrix[n, :n]
        return LexicalSet(
            (*self.texts, text),
            _read_only(matrix),
            self.tokens,
            (*self._encoded, *encoded),
            vocabulary,
        )


def distinct_texts(texts: Sequence[str]) -> dict[str, None]:
    """Return each distinct text once, in order.

    Raises:
        InputError: ``texts`` is not a sequence of strings.
    """
    if isinstance(texts, str):
        msg = "expected a sequence of texts, got one str"
        raise InputError(msg)
    for kind in set(map(type, texts)):
        if not issubclass(kind, str):
            msg = f"expected every text to be a str, got {kind.__name__}"
            raise InputError(msg)
    return dict.fromkeys(texts)


def _read(cut: Callable[[str], list[str]], texts: Iterable[str]) -> list[list[str]]:
    """Return the tokens of each text."""
    lists: list[list[str]] = []
    beside = threading.current_thread() is not threading.main_thread()
    for text in texts:
        lists.append(cut(text))
        if beside and len(text) > _LONG:
            # Scored in a thread beside an event loop, long texts would otherwise hold
            # the interpreter for as long as it lets one thread run.
            time.sleep(0)
    return lists


def _encoded(
    lists: Sequence[Sequence[str]], known: Mapping[str, str]
) -> tuple[Mapping[str, str], list[str]]:
    """Return lists of tokens as texts of one character a token, and the vocabulary.

    Raises:
        InputError: There are more distinct tokens than characters.
    """
    vocabulary = _vocabulary(set[str]().union(*lists), known)
    character = vocabulary.__getitem__
    return vocabulary, ["".join(map(character, tokens)) for tokens in lists]


def _vocabulary(
    tokens: AbstractSet[str], known: Mapping[str, str]
) -> Mapping[str, str]:
    if not known and len(tokens) <= len(_CHARACTERS):
        return dict(zip(tokens, _CHARACTERS, strict=False))
    new = tokens - known.keys()
    codes = chain(range(_SURROGATES.start), range(_SURROGATES.stop, sys.maxunicode + 1))
    characters = map(chr, islice(codes, len(known), None))
    vocabulary = {**known, **dict(zip(new, characters, strict=False))}
    if len(vocabulary) < len(known) + len(new):
        msg = f"expected at most {len(vocabulary)} distinct tokens, got more"
        raise InputError(msg)
    return vocabulary


def _lcs(queries: Sequence[str], choices: Sequence[str]) -> FloatArray:
    """Return the LCS lengths of encoded texts, ``(len(queries), len(choices))``."""
    if not queries or not choices:
        return np.zeros((len(queries), len(choices)))
    return cdist(queries, choices, scorer=LCSseq.similarity, dtype=np.float64)


def _settle_empty(lcs: FloatArray, totals: FloatArray, *, alike: bool) -> None:
    """Make the F1 of two texts without tokens 1 or, as rouge-score does, 0."""
    neither = totals == 0
    lcs[neither] = 0.5 if alike else 0.0
    totals[neither] = 1.0


def _f1(lcs: FloatArray, totals: FloatArray) -> FloatArray:
    """Turn LCS lengths, in place, and the token counts of both sides into F1."""
    lcs /= totals
    lcs *= 2.0
    return lcs


def _read_only(matrix: FloatArray) -> FloatArray:
    matrix.setflags(write=False)
    return matrix
