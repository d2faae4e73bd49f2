"""What methods look at in one response set, each part computed once, when needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from snne_guard.errors import InputError
from snne_guard.scorers.checks import (
    as_probabilities,
    as_similarity,
    as_token_logprobs,
)
from snne_guard.scorers.clusters import as_equivalence, greedy_clusters
from snne_guard.scorers.kernels import edge_weights
from snne_guard.scorers.registry import anchor_for, check_similarity
from snne_guard.similarity import NLI, entail_similarity, equivalence
from snne_guard.types import (
    BoolArray,
    Entailment,
    Equivalence,
    FloatArray,
    IntArray,
    Method,
    MethodInputs,
    Similarity,
)

__all__ = ["AnswerRole", "InputBuilder"]

AnswerRole = Literal["member", "apart", "absent"]
"""Whether the delivered answer is scored with the samples, only known, or unknown."""

_NEEDS = {field.name for field in fields(MethodInputs)} - {"tau", "anchor"}
_OF_EACH = ("hidden_states", "token_importance")


class InputBuilder:
    """Computes ``MethodInputs`` of one response set and one similarity, lazily.

    All texts are compared at once, so that the similarity runs once however many
    methods ask. Not for several threads at a time.

    Args:
        texts: The answers; unless ``answer`` is ``"absent"`` the first is the delivered
            one.
        similarity: What compares them.
        name: Its name, for messages and the default anchor.
        question: What was asked.
        token_logprobs: For each text the natural log-probabilities of its tokens, None
            or empty where unknown.
        answer: ``"member"``: the delivered answer is scored too. ``"apart"``: only the
            samples are scored, but methods may look at the answer. ``"absent"``: all
            texts are samples.
        known: What cannot be computed here, by the name of the need: ``hidden_states``
            and ``token_importance`` with one entry for each text, ``p_true_logprob``.

    Raises:
        InputError: There is no member, or something does not have an entry for each
            text.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> from snne_guard.similarity import rouge_l
        >>> builder = InputBuilder(
        ...     ["Paris", "Paris"], similarity=rouge_l, name="rouge_l"
        ... )
        >>> round(METHODS["snne"].compute(builder.inputs(METHODS["snne"])), 4)
        -1.6931
    """

    def __init__(
        self,
        texts: Sequence[str],
        *,
        similarity: Similarity,
        name: str,
        question: str | None = None,
        token_logprobs: Sequence[Sequence[float] | None] | None = None,
        answer: AnswerRole = "member",
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self.texts = tuple(texts)
        self.question = question
        self._compare = similarity
        self._name = name
        self._logprobs = token_logprobs
        self._answer: AnswerRole = answer
        self._known = dict(known or {})
        self._first = 1 if answer == "apart" else 0  # the first member
        if not self.answers:
            msg = "expected at least one text to score, got none"
            raise InputError(msg)
        self._check_lengths()

    def inputs(self, method: Method, /, *, tau: float = 1.0) -> MethodInputs:
        """Return what a method needs, and nothing else.

        Raises:
            InputError: Something that the method needs is not known of this set, or
                the similarity returned no matrix.
            ConfigurationError: The similarity cannot give what the method needs.
        """
        check_similarity(method, self._compare, name=self._name)
        found: dict[str, Any] = {}
        for need in sorted(method.needs):
            found[need] = getattr(self, need) if need in _NEEDS else None
            if found[need] is None:
                msg = f"expected {need} for method {method.name!r}, got none"
                raise InputError(msg)
        # Where no matrix is needed NaN stands for it, so that no number comes of it.
        found.setdefault("similarity", np.full((len(self.answers),) * 2, np.nan))
        anchor = anchor_for(method, self._name) if self._answer == "member" else 0.0
        return MethodInputs(tau=tau, anchor=anchor, **found)

    @property
    def matrix(self) -> FloatArray | None:
        """The members' comparison, as far as methods asked for it; None if none did."""
        seen = vars(self)
        whole = isinstance(self._compare, NLI) and "_probabilities" in seen
        if whole or "_matrix" in seen:
            return self.similarity
        if "_equivalent" in seen:
            return self._equivalent[self._first :, self._first :].astype(np.float64)
        return None

    @property
    def answers(self) -> tuple[str, ...]:
        """The texts that are scored."""
        return self.texts[self._first :]

    @cached_property
    def similarity(self) -> FloatArray:
        """The members' ``(n, n)`` similarity."""
        return self._matrix[self._first :, self._first :]

    @cached_property
    def main_answer(self) -> str | None:
        """The delivered answer."""
        return None if self._answer == "absent" else self.texts[0]

    @cached_property
    def main_similarity(self) -> FloatArray | None:
        """The delivered answer's similarity to each sample."""
        return None if self._answer == "absent" else self._matrix[0, 1:]

    @cached_property
    def token_logprobs(self) -> tuple[FloatArray, ...] | None:
        """The members' token log-probabilities, None unless all are known."""
        return self._logprobs_from(self._first)

    @cached_property
    def mean_logprobs(self) -> FloatArray | None:
        """The members' mean log-probabilities, None unless all are known."""
        return _means(self.token_logprobs)

    @cached_property
    def main_logprobs(self) -> FloatArray | None:
        """The token log-probabilities of the delivered answer."""
        first = None if self._logprobs is None else self._logprobs[0]
        if self._answer == "absent" or first is None or not len(first):
            return None
        return as_token_logprobs([first])[0]

    @cached_property
    def sample_mean_logprobs(self) -> FloatArray | None:
        """The samples' mean log-probabilities, None unless all are known."""
        return _means(self._logprobs_from(0 if self._answer == "absent" else 1))

    @cached_property
    def cluster_ids(self) -> IntArray:
        """The members' clusters of equal meaning."""
        return greedy_clusters(self._equivalent[self._first :, self._first :])

    @cached_property
    def entailment(self) -> FloatArray | None:
        """The members' probabilities of entailment, if the similarity has any."""
        found = self._probabilities
        return None if found is None else found[self._first :, self._first :]

    @cached_property
    def main_entailment(self) -> FloatArray | None:
        """Those of the delivered answer to each sample and back."""
        found = self._probabilities
        if found is None or self._answer == "absent":
            return None
        return np.stack([found[0, 1:], found[1:, 0]], axis=1)

    @cached_property
    def graph(self) -> FloatArray:
        """The edge weights between the members, both directions added up."""
        if self.entailment is not None:
            return edge_weights(self.entailment)
        weights = self.similarity + self.similarity.T
        np.fill_diagonal(weights, 0.0)
        return weights

    @cached_property
    def hidden_states(self) -> FloatArray | None:
        """The members' hidden states, if known."""
        found = self._known.get("hidden_states")
        return None if found is None else np.asarray(found[self._first :], float)

    @cached_property
    def token_importance(self) -> tuple[FloatArray, ...] | None:
        """How much each token of the members matters, if known."""
        found = self._known.get("token_importance")
        return None if found is None else tuple(found[self._first :])

    @cached_property
    def p_true_logprob(self) -> float | None:
        """The log-probability that the model calls the answer true, if known."""
        found: float | None = self._known.get("p_true_logprob")
        return found

    @cached_property
    def _matrix(self) -> FloatArray:
        if isinstance(self._compare, NLI) and self._probabilities is not None:
            return entail_similarity(self._probabilities)  # one run of the model
        found = self._compare(self.texts, question=self.question)
        return as_similarity(found, n=len(self.texts))

    @cached_property
    def _equivalent(self) -> BoolArray:
        if isinstance(self._compare, NLI) and self._probabilities is not None:
            return equivalence(self._probabilities, strict=self._compare.strict)
        compare = cast("Equivalence", self._compare)
        found = compare.equivalent(self.texts, question=self.question)
        return as_equivalence(found, n=len(self.texts))

    @cached_property
    def _probabilities(self) -> FloatArray | None:
        if not callable(getattr(self._compare, "probabilities", None)):
            return None
        compare = cast("Entailment", self._compare)
        found = compare.probabilities(self.texts, question=self.question)
        return as_probabilities(found, n=len(self.texts))

    def _logprobs_from(self, first: int) -> tuple[FloatArray, ...] | None:
        if self._logprobs is None:
            return None
        known = [
            tokens
            for tokens in self._logprobs[first:]
            if tokens is not None and len(tokens)
        ]
        complete = known and len(known) == len(self.texts) - first
        return tuple(as_token_logprobs(known)) if complete else None

    def _check_lengths(self) -> None:
        n = len(self.texts)
        of_each = {"token_logprobs": self._logprobs}
        of_each |= {need: self._known.get(need) for need in _OF_EACH}
        for need, entries in of_each.items():
            if entries is not None and len(entries) != n:
                msg = f"expected {need} for each of {n} texts, got {len(entries)}"
                raise InputError(msg)


def _means(tokens: tuple[FloatArray, ...] | None) -> FloatArray | None:
    if tokens is None:
        return None
    return np.array([math.fsum(one) / len(one) for one in tokens])
