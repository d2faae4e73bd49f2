"""The inputs of methods, computed from one response set as they are needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snne_guard.errors import InputError
from snne_guard.scorers.checks import (
    as_entailment,
    as_equivalence,
    as_similarity,
    as_token_logprobs,
)
from snne_guard.scorers.entropy import greedy_clusters
from snne_guard.scorers.kle import edge_weights
from snne_guard.scorers.method import ANCHORS
from snne_guard.similarity import NLI, entail_similarity, equivalence
from snne_guard.types import FloatArray, IntArray, Similarity

__all__ = ["AnswerRole", "ResponseSet", "TokenLogprobs"]

AnswerRole = Literal["member", "apart", "absent"]
"""Whether the delivered answer is scored with the samples, only known, or unknown."""

TokenLogprobs = Sequence[Sequence[float] | None] | None
"""For each text the log-probabilities of its tokens, None or empty where unknown."""


_CHECKS: Mapping[str, Callable[..., Any]] = {
    "__call__": as_similarity,
    "equivalent": as_equivalence,
    "probabilities": as_entailment,
}
"""The methods of a similarity, each with the check of its result."""


class ResponseSet:
    """The answers to one question, in the forms that methods need.

    It has ``n`` members, the answers that are scored. Each property is computed when a
    method asks for it, and is None if it is unknown. All texts are compared at once, so
    the similarity runs only once, however many methods ask. It is not thread-safe.

    Args:
        texts: The answers; unless ``answer`` is ``"absent"`` the first is the delivered
            one.
        similarity: What compares them.
        name: Its name, for the default anchor.
        question: What was asked.
        token_logprobs: For each text the natural log-probabilities of its tokens, None
            or empty where unknown.
        tau: Temperature of SNNE's log-sum-exp.
        answer: ``"member"``: the delivered answer is scored too. ``"apart"``: only the
            samples are scored, but methods may look at the answer. ``"absent"``: all
            texts are samples.
        hidden_states: For each text a vector of the model's hidden states.
        token_importance: For each text how much each of its tokens matters, in [0, 1].
        p_true_logprob: Log-probability that the model calls the answer true.

    Raises:
        InputError: There is no member, or an argument does not have an entry for each
            text. Properties raise it if the similarity or the log-probabilities are
            invalid.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> from snne_guard.similarity import rouge_l
        >>> answers = ResponseSet(
        ...     ["Paris", "Paris"], similarity=rouge_l, name="rouge_l"
        ... )
        >>> round(METHODS["snne"].compute(answers), 4)
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
        tau: float = 1.0,
        answer: AnswerRole = "member",
        hidden_states: Sequence[Any] | None = None,
        token_importance: Sequence[Any] | None = None,
        p_true_logprob: float | None = None,
    ) -> None:
        self.texts = tuple(texts)
        self.question = question
        self.tau = tau
        self.anchor = ANCHORS.get(name, 0.0) if answer == "member" else 0.0
        self.p_true_logprob = p_true_logprob
        self._compare = similarity
        self._known = answer != "absent"  # the first text is the delivered answer
        self._first = 1 if answer == "apart" else 0  # the first member
        # Not by cached_property: in Python 3.11 its lock is one for all instances, and
        # a slow similarity would hold up every other call.
        self._compared: dict[str, NDArray[Any]] = {}
        self._logprobs = self._of_each("token_logprobs", token_logprobs)
        states = self._of_each("hidden_states", hidden_states)
        self.hidden_states = states and states[self._first :]
        importance = self._of_each("token_importance", token_importance)
        self.token_importance = importance and importance[self._first :]
        if not self.answers:
            msg = "expected at least one text to score, got none"
            raise InputError(msg)

    @property
    def matrix(self) -> FloatArray | None:
        """The members' similarity matrix; None if no method asked for a comparison."""
        by_nli = isinstance(self._compare, NLI) and self._compared
        if by_nli or "__call__" in self._compared:
            return self.similarity
        if "equivalent" in self._compared:
            alike = self._ask("equivalent")[self._first :, self._first :]
            return alike.astype(np.float64)
        return None

    @property
    def answers(self) -> tuple[str, ...]:
        """The ``n`` texts that are scored."""
        return self.texts[self._first :]

    @property
    def similarity(self) -> FloatArray:
        """The members' ``(n, n)`` similarity, in [0, 1]."""
        return self._ask("__call__")[self._first :, self._first :]

    @property
    def main_answer(self) -> str | None:
        """The delivered answer."""
        return self.texts[0] if self._known else None

    @property
    def main_similarity(self) -> FloatArray | None:
        """The delivered answer's ``(m,)`` similarity to each sample."""
        return self._ask("__call__")[0, 1:] if self._known else None

    @property
    def token_logprobs(self) -> tuple[FloatArray, ...] | None:
        """The members' token log-probabilities, None unless all are known."""
        return self._logprobs_of(self._first, len(self.texts))

    @property
    def mean_logprobs(self) -> FloatArray | None:
        """The members' ``(n,)`` mean log-probabilities, None unless all are known."""
        return _means(self.token_logprobs)

    @property
    def main_logprobs(self) -> FloatArray | None:
        """The ``(t,)`` log-probabilities of the delivered answer's tokens."""
        tokens = self._logprobs_of(0, 1) if self._known else None
        return None if tokens is None else tokens[0]

    @property
    def sample_mean_logprobs(self) -> FloatArray | None:
        """The samples' ``(m,)`` mean log-probabilities, None unless all are known."""
        return _means(self._logprobs_of(int(self._known), len(self.texts)))

    @property
    def cluster_ids(self) -> IntArray:
        """The members' ``(n,)`` cluster ids: the same where they mean the same."""
        return greedy_clusters(self._ask("equivalent")[self._first :, self._first :])

    @property
    def entailment(self) -> FloatArray | None:
        """The members' ``(n, n, 3)`` probabilities, if the similarity has any."""
        whole = self._probabilities
        return None if whole is None else whole[self._first :, self._first :]

    @property
    def main_entailment(self) -> FloatArray | None:
        """Those from the delivered answer to each sample, and back: ``(m, 2, 3)``."""
        whole = self._probabilities
        if whole is None or not self._known:
            return None
        return np.stack([whole[0, 1:], whole[1:, 0]], axis=1)

    @property
    def graph(self) -> FloatArray:
        """The ``(n, n)`` edge weights between members, both directions added up."""
        if self.entailment is not None:
            return edge_weights(self.entailment)
        weights = 2 * self.similarity
        np.fill_diagonal(weights, 0.0)
        return weights

    @property
    def _probabilities(self) -> FloatArray | None:
        has = callable(getattr(self._compare, "probabilities", None))
        return self._ask("probabilities") if has else None

    def _ask(self, what: str) -> NDArray[Any]:
        """Return what a method of the similarity returns for all texts."""
        if what not in self._compared:
            if isinstance(self._compare, NLI) and what != "probabilities":
                read = entail_similarity if what == "__call__" else equivalence
                result = read(self._ask("probabilities"))  # one run serves all
            else:
                run = getattr(self._compare, what)
                result = run(self.texts, question=self.question)
            self._compared[what] = _CHECKS[what](result, n=len(self.texts))
        return self._compared[what]

    def _logprobs_of(self, first: int, end: int) -> tuple[FloatArray, ...] | None:
        """Return the log-probabilities of some texts, None unless all are known."""
        asked = (self._logprobs or ())[first:end]
        if not asked or any(tokens is None or not len(tokens) for tokens in asked):
            return None
        return tuple(as_token_logprobs(asked))

    def _of_each(
        self, what: str, entries: Sequence[Any] | None
    ) -> tuple[Any, ...] | None:
        """Check that a list has an entry for each text."""
        if entries is None:
            return None
        n = len(self.texts)
        if len(entries) != n:
            msg = f"expected {what} for each of {n} texts, got {len(entries)}"
            raise InputError(msg)
        return tuple(entries)


def _means(tokens: tuple[FloatArray, ...] | None) -> FloatArray | None:
    if tokens is None:
        return None
    return np.array([math.fsum(answer) / len(answer) for answer in tokens])
