"""What methods look at in one response set, each part computed once, when needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np

from snne_guard.checks import as_floats
from snne_guard.errors import InputError
from snne_guard.scorers.checks import (
    as_entailment,
    as_equivalence,
    as_similarity,
    as_token_logprobs,
)
from snne_guard.scorers.entropy import greedy_clusters
from snne_guard.scorers.kle import edge_weights
from snne_guard.scorers.method import Method
from snne_guard.similarity import NLI, entail_similarity, equivalence
from snne_guard.types import (
    BoolArray,
    Entailment,
    Equivalence,
    FloatArray,
    IntArray,
    MethodInputs,
    Similarity,
)

__all__ = ["AnswerRole", "InputBuilder", "TokenLogprobs"]

AnswerRole = Literal["member", "apart", "absent"]
"""Whether the delivered answer is scored with the samples, only known, or unknown."""

TokenLogprobs = Sequence[Sequence[float] | None] | None
"""For each text the log-probabilities of its tokens, None or empty where unknown."""


class InputBuilder:
    """Computes ``MethodInputs`` of one response set and one similarity, lazily.

    All texts are compared at once, so that the similarity runs once however many
    methods ask. Not for several threads at a time. The properties are the fields of
    ``MethodInputs``, None where a field is unknown.

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
        known: What cannot be computed here, by the name of the field:
            ``hidden_states`` and ``token_importance`` with one entry for each text,
            ``p_true_logprob``.

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
        token_logprobs: TokenLogprobs = None,
        answer: AnswerRole = "member",
        known: Mapping[str, Any] | None = None,
    ) -> None:
        self.texts = tuple(texts)
        self.question = question
        self._compare = similarity
        self._name = name
        self._logprobs = token_logprobs
        self._answer: AnswerRole = answer
        self._first = 1 if answer == "apart" else 0  # the first member
        # What the similarity gave for all texts, once a method has asked. Not by
        # cached_property: in Python 3.11 its lock is one for all instances, and a slow
        # similarity would hold up every other call.
        self._whole_similarity: FloatArray | None = None
        self._whole_equivalence: BoolArray | None = None
        self._whole_entailment: FloatArray | None = None
        known = known or {}
        self.p_true_logprob: float | None = known.get("p_true_logprob")
        self.token_importance = self._of_members(known, "token_importance")
        self._states = self._of_members(known, "hidden_states")
        self._of_members({"token_logprobs": token_logprobs}, "token_logprobs")
        if not self.answers:
            msg = "expected at least one text to score, got none"
            raise InputError(msg)

    def inputs(self, method: Method, /, *, tau: float = 1.0) -> MethodInputs:
        """Return what a method needs, as far as it is known, and nothing else.

        Raises:
            InputError: The similarity returned no matrix, or log-probabilities are
                none.
            ConfigurationError: The similarity cannot give what the method needs.
        """
        method.check_similarity(self._compare, name=self._name)
        parts: dict[str, Any] = {need: getattr(self, need) for need in method.needs}
        # Where no matrix is needed NaN stands for it, so that no number comes of it.
        parts.setdefault("similarity", np.full((len(self.answers),) * 2, np.nan))
        anchor = method.anchor(self._name) if self._answer == "member" else 0.0
        return MethodInputs(tau=tau, anchor=anchor, **parts)

    @property
    def matrix(self) -> FloatArray | None:
        """The members' comparison, as far as methods asked for it; None if none did."""
        of_nli = isinstance(self._compare, NLI) and self._whole_entailment is not None
        if of_nli or self._whole_similarity is not None:
            return self.similarity
        if self._whole_equivalence is not None:
            return self._equivalent[self._first :, self._first :].astype(np.float64)
        return None

    @property
    def answers(self) -> tuple[str, ...]:
        """The texts that are scored."""
        return self.texts[self._first :]

    @property
    def similarity(self) -> FloatArray:
        """The members' ``(n, n)`` similarity."""
        return self._matrix[self._first :, self._first :]

    @property
    def main_answer(self) -> str | None:
        """The delivered answer."""
        return None if self._answer == "absent" else self.texts[0]

    @property
    def main_similarity(self) -> FloatArray | None:
        """The delivered answer's similarity to each sample."""
        return None if self._answer == "absent" else self._matrix[0, 1:]

    @property
    def token_logprobs(self) -> tuple[FloatArray, ...] | None:
        """The members' token log-probabilities, None unless all are known."""
        return self._logprobs_of(self._first, len(self.texts))

    @property
    def mean_logprobs(self) -> FloatArray | None:
        """The members' mean log-probabilities, None unless all are known."""
        return _means(self.token_logprobs)

    @property
    def main_logprobs(self) -> FloatArray | None:
        """The token log-probabilities of the delivered answer."""
        tokens = None if self._answer == "absent" else self._logprobs_of(0, 1)
        return None if tokens is None else tokens[0]

    @property
    def sample_mean_logprobs(self) -> FloatArray | None:
        """The samples' mean log-probabilities, None unless all are known."""
        first = 0 if self._answer == "absent" else 1
        return _means(self._logprobs_of(first, len(self.texts)))

    @property
    def cluster_ids(self) -> IntArray:
        """The members' clusters of equal meaning."""
        return greedy_clusters(self._equivalent[self._first :, self._first :])

    @property
    def entailment(self) -> FloatArray | None:
        """The members' probabilities of entailment, if the similarity has any."""
        whole = self._probabilities
        return None if whole is None else whole[self._first :, self._first :]

    @property
    def main_entailment(self) -> FloatArray | None:
        """The probabilities from the delivered answer to each sample, and back."""
        whole = self._probabilities
        if whole is None or self._answer == "absent":
            return None
        return np.stack([whole[0, 1:], whole[1:, 0]], axis=1)

    @property
    def graph(self) -> FloatArray:
        """The edge weights between the members, both directions added up."""
        if self.entailment is not None:
            return edge_weights(self.entailment)
        weights = self.similarity + self.similarity.T
        np.fill_diagonal(weights, 0.0)
        return weights

    @property
    def hidden_states(self) -> FloatArray | None:
        """The members' hidden states."""
        if self._states is None:
            return None
        return as_floats(self._states, what="hidden_states")

    @property
    def _matrix(self) -> FloatArray:
        if isinstance(self._compare, NLI) and self._probabilities is not None:
            return entail_similarity(self._probabilities)  # one run of the model
        if self._whole_similarity is None:
            matrix = self._compare(self.texts, question=self.question)
            self._whole_similarity = as_similarity(matrix, n=len(self.texts))
        return self._whole_similarity

    @property
    def _equivalent(self) -> BoolArray:
        if isinstance(self._compare, NLI) and self._probabilities is not None:
            return equivalence(self._probabilities, strict=self._compare.strict)
        if self._whole_equivalence is None:
            compare = cast("Equivalence", self._compare)
            relation = compare.equivalent(self.texts, question=self.question)
            self._whole_equivalence = as_equivalence(relation, n=len(self.texts))
        return self._whole_equivalence

    @property
    def _probabilities(self) -> FloatArray | None:
        if not callable(getattr(self._compare, "probabilities", None)):
            return None
        if self._whole_entailment is None:
            compare = cast("Entailment", self._compare)
            values = compare.probabilities(self.texts, question=self.question)
            self._whole_entailment = as_entailment(values, n=len(self.texts))
        return self._whole_entailment

    def _logprobs_of(self, first: int, end: int) -> tuple[FloatArray, ...] | None:
        """Return the log-probabilities of some texts, None unless all are known."""
        known = [
            tokens
            for tokens in (self._logprobs or ())[first:end]
            if tokens is not None and len(tokens)
        ]
        complete = known and len(known) == end - first
        return tuple(as_token_logprobs(known)) if complete else None

    def _of_members(
        self, known: Mapping[str, Any], need: str
    ) -> tuple[Any, ...] | None:
        """Return the members' entries of what has one for each text."""
        entries, n = known.get(need), len(self.texts)
        if entries is None:
            return None
        if len(entries) != n:
            msg = f"expected {need} for each of {n} texts, got {len(entries)}"
            raise InputError(msg)
        return tuple(entries[self._first :])


def _means(tokens: tuple[FloatArray, ...] | None) -> FloatArray | None:
    if tokens is None:
        return None
    return np.array([math.fsum(answer) / len(answer) for answer in tokens])
