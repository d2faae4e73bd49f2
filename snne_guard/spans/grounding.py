"""How far the documents that a model was given support the parts of its answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple, cast

from numpy.typing import ArrayLike

from snne_guard.arrays import as_numbers
from snne_guard.errors import ConfigurationError
from snne_guard.similarity import resolve_similarity
from snne_guard.similarity.content import WeighedWords
from snne_guard.similarity.cross_encoder import CrossEncoder
from snne_guard.similarity.local_models import name_of
from snne_guard.similarity.nli import ENTAILMENT, NLI
from snne_guard.similarity.words import FUNCTION_WORDS, LANGUAGES
from snne_guard.spans.cutting import Part, cut, plain
from snne_guard.spans.matching import nearest_windows
from snne_guard.types import Grounding, Span

_LOOSE = frozenset("()[]{}*/~-;:.!?&|\\@#_'\"")
"""Signs that words keep or lose with what else stands in their text."""

_NAMED = re.compile(r"[1-9]\d{0,2}(?: \d{3})+(?!\w)|[^\W_]+(?:[.,:'\u2019]\d+)*")
_OPENING = re.compile(r"[\W_]*[^\W\d_a-z][^\W_A-Z]*+(?= [a-z\d(]|[,;:] )")
"""A word with a capital at the start of a sentence, which goes on with another word."""

_ENOUGH = 3
"""Function words of one language by which it is told."""


class Support(NamedTuple):
    """How far documents support a part of an answer, and which words they lack."""

    grounded: float | None
    missing: tuple[tuple[int, int], ...]


def ground(
    answer: str,
    context: str,
    /,
    *,
    by: Grounding | None = None,
    parts: Sequence[Part] | None = None,
) -> list[Support]:
    """Return the support of documents for each part of an answer.

    By words, a part is supported by its pairs of neighbouring words, and by its first
    and its last word. If the documents lack ``k`` of these ``n``, ``grounded`` is the
    smaller of ``1 - k / n`` and ``1 / (1 + k)``. Words tell nothing where answer and
    documents are in different languages or scripts.

    Args:
        answer: The answer.
        context: The documents.
        by: What grounds; None compares words.
        parts: The parts of the answer; None cuts it.

    Raises:
        InputError: What grounds did not give a number in [0, 1] for each part.
    """
    parts = cut(answer) if parts is None else parts
    texts = [answer[start:end] for start, end in parts]
    source = _Source(context)
    foreign = source.is_foreign(answer)
    grounded: Sequence[float | None] = [None] * len(parts)
    if by is not None and parts:
        given, shape = by(texts, context), (len(parts),)
        numbers = as_numbers(given, what="grounded", shape=shape, least=0, most=1)
        grounded = numbers.tolist()
    elif not foreign:
        grounded = [source.support(text) for text in texts]
    missing = [
        tuple((start + first, start + last) for first, last in source.missing(text))
        for (start, _), text in zip(parts, texts, strict=True)
    ]
    return [*map(Support, grounded, [()] * len(parts) if foreign else missing)]


def ground_values(values: Sequence[object], context: str, /) -> list[float | None]:
    """The support of documents for each text or number; None for other values."""
    source = _Source(context)
    return [
        source.support(str(value))
        if isinstance(value, str | int | float | Decimal)
        and not isinstance(value, bool)
        else None
        for value in values
    ]


def weakest(supports: Sequence[Support]) -> float | None:
    """Return the least support of a part; None without parts, or for one unknown."""
    numbers = [support.grounded for support in supports]
    known = [number for number in numbers if number is not None]
    return min(known) if known and len(known) == len(numbers) else None


def with_support(spans: Sequence[Span], supports: Sequence[Support]) -> list[Span]:
    """Return spans with what documents say of them, where that is known."""
    if not supports:
        return [*spans]
    return [
        replace(span, grounded=support.grounded, missing=support.missing)
        for span, support in zip(spans, supports, strict=True)
    ]


def resolve_grounding(grounding: object, /) -> tuple[str, Grounding | None]:
    """Return the name and function of a grounding; None for words and the judge."""
    if isinstance(grounding, str):
        if grounding in {"words", "judge"}:
            return grounding, None
        family, _, _ = grounding.partition(":")
        if family in {"nli", "cross_encoder"}:
            name, model = resolve_similarity(grounding)
            return name, _by_model(cast("NLI | CrossEncoder", model))
    elif callable(grounding):
        return name_of(grounding, "name"), cast("Grounding", grounding)
    msg = (
        'expected grounding to be "words", "nli:MODEL", "cross_encoder:MODEL", "judge" '
        f"or a function of sentences and context, got {grounding!r}"
    )
    raise ConfigurationError(msg)


def _by_model(model: NLI | CrossEncoder) -> Grounding:
    """Return a function that asks a model about each sentence and the text nearest."""

    def numbers(sentences: Sequence[str], context: str, /) -> ArrayLike:
        wanted = [plain(sentence) for sentence in sentences]
        pairs = [*zip(nearest_windows(wanted, context), wanted, strict=True)]
        found = model.of_pairs(pairs)
        return found[:, ENTAILMENT] if isinstance(model, NLI) else found

    return numbers


class _Source:
    """The words of documents, and which of them are neighbours."""

    def __init__(self, text: str) -> None:
        tokens = _tokens(text)
        self._words = frozenset(tokens)
        self._pairs = frozenset(pairwise(tokens))
        self._bare = {word.strip("-%") for word in self._words}

    def support(self, text: str) -> float:
        """Return their support for a part; 0 for one without words."""
        tokens = _tokens(text)
        if not tokens:
            return 0.0
        lacking = sum(pair not in self._pairs for pair in pairwise(tokens))
        lacking += sum(word not in self._words for word in (tokens[0], tokens[-1]))
        return min(1 - lacking / (len(tokens) + 1), 1 / (1 + lacking))

    def missing(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the positions of numbers and names that they have nowhere.

        A capital at the start of a part makes no name, unless the part is that word or
        another such word follows.
        """
        opening = _OPENING.match(text)
        for each in _NAMED.finditer(text, opening.end() if opening else 0):
            written = each[0]
            if not any(sign.isdigit() or sign.isupper() for sign in written):
                continue
            words = {word.strip("-%") for word in _tokens(written)} - FUNCTION_WORDS
            if not words <= self._bare:
                yield each.span()

    def is_foreign(self, answer: str) -> bool:
        """Recognise an answer in another language or script."""
        words = frozenset(_tokens(answer))
        here, there = _letters(words), _letters(self._words)
        if here and there and here.isdisjoint(there):
            return True
        own, theirs = _language(words), _language(self._words)
        return own is not None and theirs is not None and own != theirs


def _tokens(text: str) -> list[str]:
    """Return words, numbers and signs, those of code and of links' addresses too."""
    shown = plain(text.replace("`", " ").replace("](", "] ("))
    tokens = WeighedWords(shown).tokens
    return [token for token in tokens if token not in _LOOSE]


def _letters(words: frozenset[str]) -> set[str]:
    return {letter for word in words for letter in word if letter.isalpha()}


def _language(words: frozenset[str]) -> str | None:
    """Return the language that most function words are of, None where none leads."""
    counts = sorted((len(words & known), name) for name, known in LANGUAGES.items())
    (second, _), (most, name) = counts[-2:]
    return name if most >= _ENOUGH and most > second else None
