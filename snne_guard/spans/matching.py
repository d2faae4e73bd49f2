"""How far texts say what the parts of an answer say: by words, or by an NLI model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from snne_guard.similarity import NLI
from snne_guard.similarity.content import ASKED, WeighedWords, asked_words
from snne_guard.spans.cutting import cut, plain
from snne_guard.types import FloatArray

_COMMON = 25
"""A word that is in more parts of a text counts as in all of them, so that time grows
with the length of the texts and not with its square."""

_WINDOW = 1_000
"""Characters of a text that an NLI model reads, as whole sentences."""


def word_match(
    parts: Sequence[str], texts: Sequence[str], /, *, question: str | None = None
) -> FloatArray:
    """Compare parts with the one sentence of each text that has most of their words.

    Words weigh as for ``content_f1``: 24 a name, number, symbol or negation, 8 other
    content, 1 a function word, 2 a word of the question. The match is the share of the
    part's weight that the sentence has, halved where it lacks a number of the part, and
    where only one of the two is negated.

    Args:
        parts: The ``m`` parts.
        texts: The ``k`` texts, each cut into sentences as answers are.
        question: What was asked, ignored where ``content_f1`` ignores it.

    Returns:
        ``(m, k)`` float64 in [0, 1].

    Example:
        >>> text = "Ida Frick was born in Bern. She died in 1907."
        >>> word_match(["She was born in Bern.", "She died in 1911."], [text]).round(2)
        array([[0.97],
               [0.15]])
    """
    asked = asked_words(question or "")
    wanted = [WeighedWords(plain(part)) for part in parts]
    matrix: FloatArray = np.zeros((len(parts), len(texts)))
    for column, text in enumerate(texts):
        pieces = _Pieces([text[start:end] for start, end in cut(text)])
        matrix[:, column] = [pieces.best_match(words, asked) for words in wanted]
    return matrix


class NLIMatch:
    """Compares by a model of natural language inference.

    With the probabilities of entailment e and of contradiction c the match is
    (1 + e - c) / 2: a part that is not mentioned counts half, as for a judge. Of a long
    text the model reads about 1,000 characters, the whole sentences in a row that share
    most words with the part.
    """

    def __init__(self, nli: NLI) -> None:
        self._nli = nli

    def __call__(
        self,
        parts: Sequence[str],
        texts: Sequence[str],
        /,
        *,
        question: str | None = None,
    ) -> FloatArray:
        """Return the ``(m, k)`` matches."""
        asked = asked_words(question or "")
        wanted = [plain(part) for part in parts]
        pairs: list[tuple[str, str]] = []
        for text in texts:
            nearest = nearest_windows(wanted, text, asked)
            pairs += zip(nearest, wanted, strict=True)
        against, _, entailed = self._nli.of_pairs(pairs).T
        matches: FloatArray = ((1 + entailed - against) / 2).clip(0.0, 1.0)
        return matches.reshape(len(texts), len(parts)).T


def nearest_windows(
    wanted: Sequence[str], text: str, asked: Collection[str] = ()
) -> list[str]:
    """Return that window of a text for each part which shares most words with it."""
    windows: list[str] = []
    begin = None
    for start, end in cut(text):  # of whole sentences
        if begin is None or end - begin > _WINDOW:
            begin = start
            windows.append("")
        windows[-1] = text[begin:end]
    windows = windows or [text]
    pieces = _Pieces(windows)
    return [windows[pieces.nearest(WeighedWords(part), asked)] for part in wanted]


class _Pieces:
    """Finds those pieces of a text that share most words with a part of an answer."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._pieces = [WeighedWords(plain(text)) for text in texts]
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for place, piece in enumerate(self._pieces):
            for word in piece.words:
                self._places[word].append(place)

    def best_match(self, wanted: WeighedWords, asked: Collection[str]) -> float:
        """Return the largest share of a part's weight that a piece has."""
        weights = _weights(wanted, asked)
        total, best = sum(weights.values()), 0.0
        numbers = set(wanted.numbers).difference(asked)
        for place, weight in self._shared(weights).items():
            piece, value = self._pieces[place], weight / total
            if value <= best:
                continue
            if numbers.difference(piece.numbers):
                value /= 2
            if wanted.negated != piece.negated:
                value /= 2
            best = max(best, value)
        return best

    def nearest(self, wanted: WeighedWords, asked: Collection[str]) -> int:
        """Return the place of the piece that shares most with a part."""
        shared = self._shared(_weights(wanted, asked))
        return max(shared, key=shared.__getitem__, default=0)

    def _shared(self, weights: Mapping[str, int]) -> Counter[int]:
        """Return the weight of the words that each piece shares, if it shares any."""
        shared: Counter[int] = Counter()
        everywhere = 0
        for word, weight in weights.items():
            places = self._places.get(word, ())
            if len(places) > _COMMON:
                everywhere += weight
                continue
            for place in places:
                shared[place] += weight
        if everywhere:
            for place in shared or [0]:
                shared[place] += everywhere
        return shared


def _weights(wanted: WeighedWords, asked: Collection[str]) -> dict[str, int]:
    return {
        word: min(weight, ASKED) if word in asked else weight
        for word, weight in wanted.weights.items()
    }
