"""What compares answers, whatever it can tell of them, behind one face."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.small import is_symmetric
from snne_guard.similarity import checked_similarity, resolve_similarity
from snne_guard.similarity.blindness import blind_spots
from snne_guard.similarity.content import content_f1
from snne_guard.similarity.entailment import (
    edge_weights,
    entail_similarity,
    equivalence,
)
from snne_guard.similarity.exact import Match
from snne_guard.similarity.lexical import is_metric
from snne_guard.similarity.with_question import WithQuestion
from snne_guard.types import (
    BoolArray,
    Entailment,
    Equivalence,
    FloatArray,
    Method,
    Similarity,
)

__all__ = ["Relation"]

_ANCHOR = 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A similarity under its name, and what more it can tell.

    Attributes:
        name: What stands in brackets in the name of what ran.
        similarity: The callable.
        equates: Whether it says which texts mean the same.
        entails: Whether it gives the probabilities of entailment.
        derives: Whether these say all that it knows: the similarity is their mean over
            both directions, and they tell which texts mean the same.
        with_question: Whether it compares the answers with the question before each.
        metric: Whether 2 (1 - f) / (2 - f) is known to obey the triangle inequality.
        anchor: Share of SNNE's weight that lies on the delivered answer where it is a
            member, as evidence has it for this similarity.
        original: What knows the blind spots, where ``similarity`` stands for it.

    Example:
        >>> Relation.of("rouge_l").metric
        True
    """

    name: str
    similarity: Similarity
    equates: bool = False
    entails: bool = False
    derives: bool = False
    with_question: bool = False
    metric: bool = False
    anchor: float = 0.0
    original: Similarity | None = None

    @classmethod
    def of(
        cls,
        similarity: str | Similarity | None = None,
        /,
        *,
        name: str | None = None,
        default: str = "rouge_l",
    ) -> Relation:
        """Return the relation that an option means.

        Args:
            similarity: A name, a callable, or None for the default.
            name: What to call it, None for its own name.
            default: Name of the similarity where none is given.

        Raises:
            ConfigurationError: It is neither a known name nor callable.
        """
        own, compare = resolve_similarity(default if similarity is None else similarity)
        entails = callable(getattr(compare, "probabilities", None))
        return cls(
            name=own if name is None else name,
            similarity=compare,
            equates=callable(getattr(compare, "equivalent", None)),
            entails=entails,
            derives=entails and getattr(compare, "from_probabilities", False) is True,
            with_question=isinstance(compare, WithQuestion),
            metric=is_metric(compare),
            anchor=_ANCHOR if compare is content_f1 else 0.0,
        )

    def anchor_for(self, method: Method, /, *, member: bool) -> float:
        """Return the share of a method's weight that lies on the delivered answer.

        Args:
            method: Who weighs the members.
            member: Whether the delivered answer is one of them.

        Example:
            >>> from snne_guard.scorers import METHODS
            >>> Relation.of("rouge_l").anchor_for(METHODS["snne"], member=True)
            0.0
        """
        return self.anchor if member and getattr(method, "anchors", False) else 0.0

    @property
    def matches(self) -> bool:
        """Whether the similarity is 1 where two texts mean the same and 0 elsewhere."""
        return isinstance(self.similarity, Match)

    def asked(self) -> Relation:
        """Return the relation with the question in front of the answers.

        Example:
            >>> Relation.of("rouge_l").asked().name
            'rouge_l+question'
        """
        if self.with_question:
            return self
        name = f"{self.name}+question"
        return Relation.of(WithQuestion(self.similarity, name))

    def through(self, wrap: Callable[[Similarity], Similarity]) -> Relation:
        """Return the relation whose similarity is another one that gives the same.

        Where it can tell more than the similarity, which the other one could not, it
        stays as it is.
        """
        if self.entails:
            return self
        wrapped = wrap(self.similarity)
        if self.equates and not callable(getattr(wrapped, "equivalent", None)):
            return self
        original = self.similarity if self.original is None else self.original
        return replace(self, similarity=wrapped, original=original)

    def blind_spots(
        self, texts: Sequence[str], question: str | None
    ) -> tuple[str, ...]:
        """Return reason codes of what the similarity cannot see of the texts.

        Args:
            texts: The ``n`` texts.
            question: What was asked.

        Raises:
            InputError: What it says are no codes.
        """
        compare = self.similarity if self.original is None else self.original
        return blind_spots(compare, texts, question=question)

    def compare(
        self,
        texts: Sequence[str],
        question: str | None,
        probabilities: FloatArray | None = None,
    ) -> FloatArray:
        """Return the ``(n, n)`` checked similarity.

        Args:
            texts: The ``n`` texts.
            question: What was asked.
            probabilities: Their entailment, looked at where all derives from it.

        Raises:
            InputError: What came back is no similarity matrix.
        """
        found: Any
        if self.derives and probabilities is not None:
            found = entail_similarity(probabilities)
        else:
            found = self.similarity(texts, question=question)
        return checked_similarity(found, len(texts))

    def probabilities(self, texts: Sequence[str], question: str | None) -> FloatArray:
        """Return ``(n, n, 3)`` probabilities of entailment.

        Raises:
            InputError: What came back is of another shape or holds NaN.
        """
        model = cast("Entailment", self.similarity)
        found = np.asarray(model.probabilities(texts, question=question), float)
        n = len(texts)
        if found.shape != (n, n, 3) or np.isnan(found).any():
            msg = f"expected {(n, n, 3)} probabilities without NaN, got {found.shape}"
            raise InputError(msg)
        return found

    def equivalent(
        self,
        texts: Sequence[str],
        question: str | None,
        probabilities: FloatArray | None = None,
    ) -> BoolArray:
        """Return an ``(n, n)`` matrix: which texts mean the same.

        Args:
            texts: The ``n`` texts.
            question: What was asked.
            probabilities: Their entailment, looked at where nothing else tells.

        Raises:
            ConfigurationError: The similarity does not say what means the same.
            InputError: What came back is no ``(n, n)`` matrix of truth values,
                symmetric, True on the diagonal.
        """
        if probabilities is not None and (self.derives or not self.equates):
            strict = getattr(self.similarity, "strict", True)
            return equivalence(probabilities, strict=strict)
        if not self.equates:
            msg = f"similarity {self.name!r} does not say which answers mean the same"
            raise ConfigurationError(msg)
        if isinstance(self.similarity, Match):
            return self.similarity.equivalent(texts)
        same = cast("Equivalence", self.similarity)
        return _checked_truth(same.equivalent(texts, question=question), len(texts))

    @staticmethod
    def graph(similarity: FloatArray, probabilities: FloatArray | None) -> FloatArray:
        """Return ``(n, n)`` weights of the edges between answers, diagonal 0.

        Both directions add up, with an NLI model and without: 2 where two answers are
        the same.
        """
        if probabilities is not None:
            return edge_weights(probabilities)
        weights = similarity + similarity.T
        weights.flat[:: len(weights) + 1] = 0.0
        return weights


def _checked_truth(values: Any, n: int) -> BoolArray:  # noqa: ANN401 - unchecked
    """Return what says which of n texts mean the same, or what is wrong with it."""
    found = np.asarray(values)
    if found.shape != (n, n):
        msg = f"expected {(n, n)} truth values, got shape {found.shape}"
        raise InputError(msg)
    if found.dtype != np.bool_:
        _check_zero_or_one(found)
    same: BoolArray = found.astype(np.bool_)
    if not is_symmetric(same):
        msg = "expected symmetric truth values of which texts mean the same"
        raise InputError(msg)
    if not same.diagonal().all():
        msg = "expected every text to mean the same as itself, got False"
        raise InputError(msg)
    return same


def _check_zero_or_one(found: NDArray[Any]) -> None:
    # NaN and every number but 0 would pass for True, and so for the same meaning.
    number = found.dtype.kind in "iuf"
    odd = found[~np.isin(found, (0, 1))] if number else found.ravel()
    if odd.size:
        msg = (
            "expected truth values or 0 and 1 of which texts mean the same, "
            f"got {odd[0] if number else found.dtype}"
        )
        raise InputError(msg)
