"""Comparing a set of texts that grows, each pair of texts once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from snne_guard.similarity.content import ContentPairs, content_f1
from snne_guard.similarity.lexical import LexicalSet, rouge_l, rouge_l_paper
from snne_guard.similarity.structured import StructuredPairs, structured
from snne_guard.similarity.tokens import TokenizerName
from snne_guard.types import BoolArray, FloatArray, Similarity

__all__ = ["Growth"]


class Growth:
    """What was compared already in the set of one guarded call; for one thread.

    A text that joins the set costs one row of ROUGE-L, content F1 and the structured
    similarity. Any other similarity gets the whole set again, but never the same set
    twice.

    Example:
        >>> compare = Growth().over(rouge_l)
        >>> compare(["Paris"]).shape, compare(["Paris", "Lyon"]).shape
        ((1, 1), (2, 2))
    """

    def __init__(self) -> None:
        self._known: dict[int, Similarity] = {}  # by id: a callable may have no hash

    def over(self, similarity: Similarity) -> Similarity:
        """Return a similarity that gives the same and remembers what it gave."""
        key = id(similarity)
        if key not in self._known:
            own = (make() for known, make in _GROWING if known is similarity)
            self._known[key] = next(own, None) or _Last(similarity)
        return self._known[key]


class _Last:
    """Any similarity, not run again on the very texts that it saw last."""

    def __init__(self, similarity: Similarity) -> None:
        self._similarity = similarity
        self._seen: tuple[tuple[str, ...], str | None] | None = None
        self._matrix: FloatArray | None = None

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        asked = (tuple(texts), question)
        if self._matrix is None or asked != self._seen:
            self._matrix = self._similarity(texts, question=question)
            self._seen = asked
        return self._matrix


class _Lexical:
    """ROUGE-L that adds a row for each text that joined."""

    def __init__(self, tokens: TokenizerName) -> None:
        self._set = LexicalSet.of(tokens=tokens)

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        del question
        known = self._set.texts
        if known and tuple(texts[: len(known)]) == known:
            for text in texts[len(known) :]:
                self._set = self._set.add(text)
        else:
            self._set = LexicalSet.of(texts, tokens=self._set.tokens)
        return self._set.matrix


class _Structured:
    """JSON compared field by field, each pair once."""

    def __init__(self) -> None:
        self._pairs = StructuredPairs()

    def __call__(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> FloatArray:
        return self._pairs.matrix(texts, question=question)

    def equivalent(
        self, texts: Sequence[str], /, *, question: str | None = None
    ) -> BoolArray:
        return structured.equivalent(texts, question=question)


_GROWING: tuple[tuple[Similarity, Callable[[], Similarity]], ...] = (
    (rouge_l, partial(_Lexical, "unicode")),
    (rouge_l_paper, partial(_Lexical, "rouge")),
    (structured, _Structured),
    (content_f1, ContentPairs),
)
"""What compares a growing set in place of a similarity of this library."""
