"""What is known of one response set, each part worked out once, when a method asks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from snne_guard._seams import inputs_of
from snne_guard.errors import InputError
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.clusters import greedy_clusters
from snne_guard.scorers.method import check_found
from snne_guard.scorers.needs import OF_EACH, RELATION_NEEDS
from snne_guard.scorers.relation import Relation
from snne_guard.scorers.sentences import sentence_owners, sentences_of
from snne_guard.types import BoolArray, FloatArray, IntArray, Method, MethodInputs

__all__ = ["Materials"]

AnyScalar = TypeVar("AnyScalar", bound=np.generic)
_Known = Mapping[str, Any]


@dataclass(slots=True)
class _Seen:
    """What was worked out with one relation: parts, and the inputs made of them."""

    relation: Relation
    parts: dict[str, Any] = field(default_factory=dict[str, Any])
    inputs: dict[Hashable, MethodInputs] = field(
        default_factory=dict[Hashable, MethodInputs]
    )


class Materials:
    """What methods may look at in one response set; for one thread.

    The texts are compared all at once and every method gets its part of the matrix,
    so that each similarity runs once, whichever methods ask and whether or not the
    delivered answer is a member.

    Args:
        texts: The ``n`` answers, the delivered one first if it is there.
        token_logprobs: For each text the natural log-probabilities of its tokens,
            None where they are unknown.
        question: What was asked.
        delivered: Whether ``texts[0]`` is the delivered answer; otherwise all are
            samples.
        include_answer: Whether the delivered answer is a member of the scored set.
        known: What cannot be worked out here, under the name of its need:
            ``hidden_states``, ``token_importance`` (for each text), and
            ``p_true_logprob``.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> from snne_guard.scorers.relation import Relation
        >>> materials = Materials(["Paris", "Paris", "Lyon"])
        >>> inputs = materials.inputs(METHODS["snne"], Relation.of("rouge_l"))
        >>> inputs.similarity.shape
        (3, 3)
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        token_logprobs: Sequence[Sequence[float] | None] | None = None,
        question: str | None = None,
        delivered: bool = True,
        include_answer: bool = True,
        known: _Known | None = None,
    ) -> None:
        self.texts = tuple(texts)
        self.question = question
        self.delivered = delivered
        self._first = 1 if delivered and not include_answer else 0
        self._logprobs = token_logprobs
        self._known: _Known = {} if known is None else known
        self._parts: dict[str, Any] = {}  # in which no relation has a say
        self._arrays: dict[int, FloatArray] = {}
        self._unseen: FloatArray | None = None
        self._seen: dict[tuple[str, int], _Seen] = {}
        self._whole: Materials | None = None

    def first(self, n: int, /) -> Materials:
        """Return the materials of the first ``n`` members; nothing is compared again.

        Raises:
            InputError: There are fewer members.

        Example:
            >>> Materials(["Paris", "Lyon", "Paris"]).first(2).members
            ('Paris', 'Lyon')
        """
        if not 1 <= n <= len(self.members):
            msg = f"expected 1 to {len(self.members)} members, got {n}"
            raise InputError(msg)
        size = self._first + n
        part = Materials(
            self.texts[:size],
            token_logprobs=None if self._logprobs is None else self._logprobs[:size],
            question=self.question,
            delivered=self.delivered,
            include_answer=not self._first,
            known={
                need: value[:size] if need in OF_EACH else value
                for need, value in self._known.items()
            },
        )
        part._whole = self
        return part

    @property
    def members(self) -> tuple[str, ...]:
        """The texts that are scored."""
        return self.texts[self._first :]

    def inputs(
        self, method: Method, relation: Relation, /, *, tau: float = 1.0
    ) -> MethodInputs:
        """Return what a method needs, and nothing else.

        Methods with the same needs get the same.

        Args:
            method: Who asks.
            relation: What compares the answers.
            tau: Temperature of the similarity's softmax, above 0.

        Raises:
            InputError: Something that the method needs is not known of this set.
            ConfigurationError: The relation cannot give what the method needs, or tau
                is not a finite number above 0.
        """
        check_tau(tau)
        needs = frozenset(method.needs)
        anchor = relation.anchor_for(method, member=self.delivered and not self._first)
        seen, key = self._of(relation), (needs, float(tau), anchor)
        inputs = seen.inputs.get(key)
        if inputs is None:
            found: dict[str, Any] = {
                "tau": tau,
                "metric": relation.metric,
                "anchor": anchor,
            }
            for need in needs:
                parts = seen.parts if need in RELATION_NEEDS else self._parts
                found[need] = (
                    parts[need] if need in parts else self._part(need, relation)
                )
            check_found(method, found)
            if "similarity" not in needs:
                found["similarity"] = self._nothing()
            inputs = seen.inputs[key] = inputs_of(found)
        return inputs

    def part(self, need: str, relation: Relation, /) -> Any:  # noqa: ANN401 - of many kinds
        """Return one part, None where it is not known.

        Raises:
            ConfigurationError: The relation cannot give it.
        """
        return self._part(need, relation)

    def _part(self, need: str, relation: Relation) -> Any:  # noqa: ANN401 - of many kinds
        parts = self._of(relation).parts if need in RELATION_NEEDS else self._parts
        if need not in parts:
            find = _FIND.get(need)
            parts[need] = None if find is None else find(self, relation)
        return parts[need]

    def _of(self, relation: Relation) -> _Seen:
        """Return what was worked out with one relation."""
        # A name is not enough: two lambdas have the same. What is kept has an id alone.
        key = relation.name, id(relation.similarity)
        seen = self._seen.get(key)
        if seen is None:
            seen = self._seen[key] = _Seen(relation)
        return seen

    def _nothing(self) -> FloatArray:
        """Return what stands for a matrix that a method does not need."""
        if self._unseen is None:
            self._unseen = np.full((len(self.members),) * 2, np.nan)
        return self._unseen

    def matrix(self, relation: Relation) -> FloatArray:
        """Return the checked similarity of all texts, whoever is a member."""
        if self._whole is not None:
            return self._corner(self._whole.matrix(relation))
        parts = self._of(relation).parts
        if "matrix" not in parts:
            # An own similarity is asked alone; its entailment may be another matter.
            derived = self.probabilities(relation) if relation.derives else None
            parts["matrix"] = (
                self.equivalent(relation).astype(np.float64)
                if relation.matches
                else relation.compare(self.texts, self.question, derived)
            )
        found: FloatArray = parts["matrix"]
        return found

    def probabilities(self, relation: Relation) -> FloatArray | None:
        """Return the entailment of all texts, None where the relation knows none."""
        if not relation.entails:
            return None
        if self._whole is not None:
            whole = self._whole.probabilities(relation)
            return None if whole is None else self._corner(whole)
        parts = self._of(relation).parts
        if "probabilities" not in parts:
            parts["probabilities"] = relation.probabilities(self.texts, self.question)
        found: FloatArray = parts["probabilities"]
        return found

    def sentence_entailment(self, relation: Relation) -> FloatArray | None:
        """Return that of the members' sentences, None where there is none."""
        if not relation.entails:
            return None
        sentences = sentences_of(self.members)
        if self._whole is None:
            return relation.probabilities(sentences, self.question)
        # A part has the first texts of the whole, and so the first sentences.
        whole = self._whole.part("sentence_entailment", relation)
        found: FloatArray = whole[: len(sentences), : len(sentences)]
        return found

    def _corner(self, whole: NDArray[AnyScalar]) -> NDArray[AnyScalar]:
        size = len(self.texts)
        return whole[:size, :size]

    def similarity(self, relation: Relation) -> FloatArray:
        """Return the members' part of the matrix."""
        first = self._first
        matrix = self.matrix(relation)
        return matrix[first:, first:] if first else matrix

    def equivalent(self, relation: Relation) -> BoolArray:
        """Return which of all texts mean the same, whoever is a member."""
        if self._whole is not None:
            return self._corner(self._whole.equivalent(relation))
        parts = self._of(relation).parts
        if "equivalent" not in parts:
            told = relation.equates and not relation.derives
            found = None if told else self.probabilities(relation)
            parts["equivalent"] = relation.equivalent(self.texts, self.question, found)
        same: BoolArray = parts["equivalent"]
        return same

    def cluster_ids(self, relation: Relation) -> IntArray:
        """Return the members' groups of equal meaning."""
        return greedy_clusters(self.equivalent(relation)[self._first :, self._first :])

    def entailment_or_none(self, relation: Relation) -> FloatArray | None:
        """Return the members' part of the entailment, None where there is none."""
        found = self.probabilities(relation)
        return None if found is None else found[self._first :, self._first :]

    def tokens(self) -> Sequence[Sequence[float]] | None:
        """Return the members' token log-probabilities, None unless all have some."""
        return _complete(self._logprobs, self._first)

    def sample_tokens(self) -> Sequence[Sequence[float]] | None:
        """Return the samples' token log-probabilities, None unless all have some."""
        return _complete(self._logprobs, int(self.delivered))

    def main_tokens(self) -> Sequence[float] | None:
        """Return those of the delivered answer, None where they are not known."""
        if not self.delivered or self._logprobs is None:
            return None
        tokens = self._logprobs[0]
        return tokens if tokens is not None and len(tokens) else None

    def token_arrays(self) -> tuple[FloatArray, ...] | None:
        """Return the members' as arrays, None unless all have some."""
        tokens = self.tokens()
        if tokens is None:
            return None
        return tuple(
            self._array(place, one) for place, one in enumerate(tokens, self._first)
        )

    def main_array(self) -> FloatArray | None:
        """Return that of the delivered answer, None where it is not known."""
        tokens = self.main_tokens()
        return None if tokens is None else self._array(0, tokens)

    def _array(self, place: int, tokens: Sequence[float]) -> FloatArray:
        """Return one text's log-probabilities as an array, the same to all who ask."""
        if place not in self._arrays:
            self._arrays[place] = np.asarray(tokens, float)
        return self._arrays[place]

    def sample_means(self, relation: Relation) -> FloatArray | None:
        """Return the samples' mean log-probabilities, None unless all have some."""
        means: FloatArray | None = self._part("mean_logprobs", relation)
        if means is None:  # those of the delivered answer may be what is missing
            return _means(self.sample_tokens())
        return means[int(self.delivered) - self._first :]

    def known(self, need: str) -> Any:  # noqa: ANN401 - of many kinds
        """Return what was given of the members under the name of a need."""
        found = self._known.get(need)
        return None if found is None else found[self._first :]

    def given(self, need: str) -> Any:  # noqa: ANN401 - of many kinds
        """Return what was given of the whole set under the name of a need."""
        return self._known.get(need)


def _complete(
    logprobs: Sequence[Sequence[float] | None] | None, first: int
) -> list[Sequence[float]] | None:
    if logprobs is None:
        return None
    members = logprobs[first:]
    kept = [tokens for tokens in members if tokens is not None and len(tokens)]
    return kept if len(kept) == len(members) else None


def _means(tokens: Sequence[Sequence[float]] | None) -> FloatArray | None:
    # As ``Sample`` has it, to the last bit.
    if tokens is None:
        return None
    return np.array([float(sum(one) / len(one)) for one in tokens])


def _main_similarity(materials: Materials, relation: Relation) -> FloatArray | None:
    return materials.matrix(relation)[0, 1:] if materials.delivered else None


def _main_entailment(materials: Materials, relation: Relation) -> FloatArray | None:
    found = materials.probabilities(relation)
    if found is None or not materials.delivered:
        return None
    return np.stack([found[0, 1:], found[1:, 0]], axis=1)


_FIND: Mapping[str, Callable[[Materials, Relation], Any]] = MappingProxyType(
    {
        "answers": lambda materials, _: materials.members,
        "cluster_ids": Materials.cluster_ids,
        "entailment": Materials.entailment_or_none,
        "graph": lambda materials, relation: relation.graph(
            materials.similarity(relation), materials.entailment_or_none(relation)
        ),
        "hidden_states": lambda materials, _: materials.known("hidden_states"),
        "main_answer": lambda materials, _: (
            materials.texts[0] if materials.delivered else None
        ),
        "main_entailment": _main_entailment,
        "main_logprobs": lambda materials, _: materials.main_array(),
        "main_similarity": _main_similarity,
        "mean_logprobs": lambda materials, _: _means(materials.tokens()),
        "p_true_logprob": lambda materials, _: materials.given("p_true_logprob"),
        "question": lambda materials, _: materials.question,
        "sample_mean_logprobs": Materials.sample_means,
        "sentence_entailment": Materials.sentence_entailment,
        "sentence_of": lambda materials, _: sentence_owners(materials.members),
        "similarity": Materials.similarity,
        "token_importance": lambda materials, _: materials.known("token_importance"),
        "token_logprobs": lambda materials, _: materials.token_arrays(),
    }
)
"""How each need is met; a new one is a field of ``MethodInputs`` and a line here."""
