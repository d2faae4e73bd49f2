"""From answers to a score, without a call of a model.

``score`` makes ``Inputs`` of the answers, and one of ``METHODS`` computes its value
from what it needs of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

from snne_guard.arrays import (
    as_entailment,
    as_equivalence,
    as_similarity,
    as_token_logprobs,
)
from snne_guard.checks import check_number
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.cluster_entropy import METHODS as ENTROPY
from snne_guard.scorers.cluster_entropy import greedy_clusters
from snne_guard.scorers.entailment import METHODS as ENTAILMENT
from snne_guard.scorers.graph import METHODS as GRAPH
from snne_guard.scorers.hidden_states import METHODS as EIGEN_SCORE
from snne_guard.scorers.kernel_entropy import METHODS as KLE
from snne_guard.scorers.kernel_entropy import edge_weights
from snne_guard.scorers.likelihood import METHODS as LIKELIHOOD
from snne_guard.scorers.method import ANCHORS, Method
from snne_guard.scorers.nearest_neighbor import METHODS as SNNE
from snne_guard.scorers.relevance import METHODS as SAR
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.similarity import (
    NLI,
    entail_similarity,
    equivalence,
    resolve_similarity,
)
from snne_guard.similarity.pairs import check_texts
from snne_guard.text import is_visible, without_reasoning
from snne_guard.types import FloatArray, IntArray, Score, Similarity

_ALL = (*SNNE, *ENTROPY, *GRAPH, *KLE, *ENTAILMENT, *SAR, *EIGEN_SCORE, *LIKELIHOOD)

METHODS: Mapping[str, Method] = MappingProxyType({each.name: each for each in _ALL})
"""Every method of this library by the name that a guard or ``score`` takes."""


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return a method by name; ``"auto"`` is WSNNE with log-probabilities, else SNNE.

    Raises:
        ConfigurationError: It is neither a known name nor a ``Method``.
    """
    if isinstance(method, Method):
        return method
    name = ("wsnne" if logprobs else "snne") if method == "auto" else method
    names = [*METHODS]
    if name not in names:
        msg = f"expected method 'auto', a Method or one of {names}, got {name!r}"
        raise ConfigurationError(msg)
    return METHODS[name]


AnswerRole = Literal["included", "apart", "absent"]
"""Whether the delivered answer is scored with the samples, only known, or unknown."""

TokenLogprobs = Sequence[Sequence[float] | None] | None
"""For each text the log-probabilities of its tokens, None or empty where unknown."""

_CHECKS: Mapping[str, Callable[..., Any]] = {
    "__call__": as_similarity,
    "equivalent": as_equivalence,
    "probabilities": as_entailment,
}
"""The methods of a similarity, each with the check of its result."""

_FROM_PROBABILITIES: Mapping[str, Callable[..., Any]] = {
    "__call__": entail_similarity,
    "equivalent": equivalence,
}
"""What an NLI model's probabilities tell without another run of the model."""


class Inputs:
    """A reply set in the forms that methods need, each computed once.

    What depends on the similarity is computed when a method asks for it, for all
    answers at once, so the similarity runs only once, however many methods ask. A
    property is None if it is unknown. Not thread-safe.

    Args:
        texts: The answers; unless ``answer`` is ``"absent"`` the first is the delivered
            one.
        similarity: What compares them.
        name: Its name, for the default anchor.
        question: What was asked.
        token_logprobs: For each text the natural log-probabilities of its tokens, None
            or empty where unknown.
        tau: Temperature of SNNE's log-sum-exp.
        answer: ``"included"``: the delivered answer is scored too. ``"apart"``: only
            the samples are scored, but methods may look at the answer. ``"absent"``:
            all texts are samples.
        hidden_states: For each text a vector of the model's hidden states.
        token_importance: For each text how much each of its tokens matters, in [0, 1].
        p_true_logprob: Log-probability that the model calls the answer true.

    Attributes:
        answers: The ``n`` texts that are scored.
        main_answer: The delivered answer.
        anchor: Weight that SNNE puts on it in advance.

    Raises:
        InputError: There is nothing to score, or an argument does not have an entry for
            each text. Properties raise it for an invalid similarity or log-probability.

    Example:
        >>> from snne_guard.similarity import rouge_l
        >>> answers = Inputs(["Paris", "Paris"], similarity=rouge_l, name="rouge_l")
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
        answer: AnswerRole = "included",
        hidden_states: Sequence[Any] | None = None,
        token_importance: Sequence[Any] | None = None,
        p_true_logprob: float | None = None,
    ) -> None:
        n = len(texts)
        for what, entries in (
            ("token_logprobs", token_logprobs),
            ("hidden_states", hidden_states),
            ("token_importance", token_importance),
        ):
            if entries is not None and len(entries) != n:
                msg = f"expected {what} for each of {n} texts, got {len(entries)}"
                raise InputError(msg)
        first = 1 if answer == "apart" else 0
        self.answers = (*texts[first:],)
        if not self.answers:
            msg = "expected at least one text to score, got none"
            raise InputError(msg)
        self.main_answer = None if answer == "absent" else texts[0]
        self.question = question
        self.tau = tau
        self.anchor = ANCHORS.get(name, 0.0) if answer == "included" else 0.0
        self.hidden_states = None if hidden_states is None else hidden_states[first:]
        self.token_importance = (
            None if token_importance is None else token_importance[first:]
        )
        self.p_true_logprob = p_true_logprob
        logprobs = [None] * n if token_logprobs is None else token_logprobs
        self._logprobs = logprobs[first:]
        self._main_logprobs = [] if answer == "absent" else logprobs[:1]
        self._compare = similarity
        # Not by cached_property: in Python 3.11 its lock is one for all instances, and
        # a slow similarity would hold up every other call.
        self._compared: dict[str, NDArray[Any]] = {}

    @property
    def matrix(self) -> FloatArray | None:
        """The answers' similarity matrix; None if no method asked for a comparison."""
        by_nli = isinstance(self._compare, NLI) and self._compared
        if by_nli or "__call__" in self._compared:
            return self.similarity
        if "equivalent" in self._compared:
            return self._ask("equivalent").astype(np.float64)
        return None

    @property
    def similarity(self) -> FloatArray:
        """The answers' ``(n, n)`` similarity, in [0, 1]."""
        return self._ask("__call__")

    @property
    def token_logprobs(self) -> list[FloatArray] | None:
        """The answers' token log-probabilities, None unless all are known."""
        return _if_all_known(self._logprobs)

    @property
    def mean_logprobs(self) -> FloatArray | None:
        """The answers' ``(n,)`` mean log-probabilities, None unless all are known."""
        tokens = self.token_logprobs
        if tokens is None:
            return None
        return np.array([math.fsum(answer) / len(answer) for answer in tokens])

    @property
    def main_logprobs(self) -> FloatArray | None:
        """The ``(t,)`` log-probabilities of the delivered answer's tokens."""
        tokens = _if_all_known(self._main_logprobs)
        return None if tokens is None else tokens[0]

    @property
    def cluster_ids(self) -> IntArray:
        """The answers' ``(n,)`` cluster ids: the same where they mean the same."""
        return greedy_clusters(self._ask("equivalent"))

    @property
    def entailment(self) -> FloatArray | None:
        """The answers' ``(n, n, 3)`` probabilities, if the similarity has any."""
        return self._ask("probabilities") if self._has_probabilities else None

    @property
    def graph(self) -> FloatArray:
        """The ``(n, n)`` edge weights between answers, both directions added up."""
        if self._has_probabilities:
            return edge_weights(self._ask("probabilities"))
        weights = 2 * self.similarity
        np.fill_diagonal(weights, 0.0)
        return weights

    @property
    def _has_probabilities(self) -> bool:
        return callable(getattr(self._compare, "probabilities", None))

    def _ask(self, what: str) -> NDArray[Any]:
        """Return the result of one of the similarity's methods for the answers."""
        if what not in self._compared:
            if isinstance(self._compare, NLI) and what in _FROM_PROBABILITIES:
                result = _FROM_PROBABILITIES[what](self._ask("probabilities"))
            else:
                run = getattr(self._compare, what)
                result = run(self.answers, question=self.question)
            self._compared[what] = _CHECKS[what](result, n=len(self.answers))
        return self._compared[what]


def _is_known(tokens: Sequence[float] | None) -> TypeGuard[Sequence[float]]:
    return tokens is not None and len(tokens) > 0


def _if_all_known(
    logprobs: Sequence[Sequence[float] | None],
) -> list[FloatArray] | None:
    known = [tokens for tokens in logprobs if _is_known(tokens)]
    return as_token_logprobs(known) if known and len(known) == len(logprobs) else None


def score(
    answers: Sequence[str],
    *,
    token_logprobs: TokenLogprobs = None,
    question: str | None = None,
    method: str | Method = "auto",
    similarity: str | Similarity | None = None,
    tau: float | None = None,
    include_answer: bool = True,
    self_check: float | Literal["unknown"] | None = None,
) -> Score:
    """Score how far answers to one question differ; never calls the model.

    Answers without a visible character are left out (reason ``unreadable_samples``).
    If the delivered answer is one of them, there is no uncertainty (reason
    ``answer_unreadable``): the value is ``inf`` and n is 0, so that it cannot be
    mistaken for confidence. A block of reasoning (``<think>…</think>``) at the start
    of an answer is not compared, and the answer then counts as one without
    log-probabilities, which are those of other tokens.

    Args:
        answers: The texts, at least one. With ``include_answer``, the delivered answer
            comes first.
        token_logprobs: For each answer, the natural log-probabilities of its tokens;
            None or empty if they are unknown.
        question: The question, for similarities that use it.
        method: A name in ``METHODS``, a ``Method`` of your own, or ``"auto"``: WSNNE if
            every scored answer has log-probabilities, else SNNE (with the reason
            ``logprobs_missing`` if only some have).
        similarity: What compares the answers: a name in ``SIMILARITIES``,
            ``"nli:MODEL"``, ``"embedding:MODEL"`` or a function; None takes the
            method's own. That of SNNE and WSNNE is ``content_f1``, with 0.7 of the
            weight on the delivered answer.
        tau: Temperature of SNNE's log-sum-exp; None is 1.
        include_answer: Whether ``answers[0]`` is the delivered answer. If not, all are
            samples, as in the paper. Every answer is scored in either case.
        self_check: Probability in [0, 1] that the model calls the delivered answer
            correct, or ``"unknown"``, which counts as 0.5. It weighs half as much as
            the disagreement of the answers. None if there was no self-check.

    Returns:
        The score. Its uncertainty is in [0, 1], or None for fewer than two answers
        (reason ``too_few_samples``) and for methods without bounds.

    Raises:
        InputError: There are no answers, or one, or the question, is not a text; the
            log-probabilities do not fit the answers, are NaN or above 0; something that
            the method needs is missing; the similarity returned no matrix.
        ConfigurationError: The method, the similarity or tau makes no sense, or the
            similarity cannot give what the method needs.

    Example:
        >>> result = score(["Paris", "Paris", "Lyon"])
        >>> result.method, result.similarity, result.n
        ('snne', 'content_f1', 3)
        >>> 0 < result.uncertainty < 1
        True
    """
    tau = check_number(1.0 if tau is None else tau, what="tau", above=0)
    p_correct = UNKNOWN if self_check == "unknown" else self_check
    if p_correct is not None:
        p_correct = check_number(p_correct, what="self_check", least=0, most=1)
    check_texts(answers)
    n = len(answers)
    if not n:
        msg = "expected at least one answer, got none"
        raise InputError(msg)
    asked: object = question
    if not isinstance(asked, str | None):
        msg = f"expected question to be a text or None, got {type(asked).__name__}"
        raise InputError(msg)
    logprobs = [None] * n if token_logprobs is None else token_logprobs
    if len(logprobs) != n:
        msg = f"expected token_logprobs for each of {n} answers, got {len(logprobs)}"
        raise InputError(msg)
    texts = [*map(without_reasoning, answers)]
    logprobs = [
        known if text == answer else None
        for known, text, answer in zip(logprobs, texts, answers, strict=True)
    ]
    visible = [place for place, text in enumerate(texts) if is_visible(text)]
    reasons = ["unreadable_samples"] if len(visible) < n else []
    known = [logprobs[place] for place in visible]
    have = [*map(_is_known, known)]
    complete = bool(have) and all(have)
    if method == "auto" and any(have) and not complete:
        reasons.append("logprobs_missing")
    unreadable = include_answer and 0 not in visible
    if unreadable:
        visible, known = [], []
    chosen = resolve_method(method, logprobs=complete)
    wanted = chosen.default_similarity if similarity is None else similarity
    scored = score_replies(
        [texts[place] for place in visible],
        method=chosen,
        similarity=resolve_similarity(wanted),
        question=question,
        token_logprobs=known,
        tau=tau,
        include_answer=include_answer,
    )
    noted = ("answer_unreadable",) if unreadable else (*reasons, *scored.reasons)
    scored = replace(scored, reasons=noted)
    return scored if p_correct is None else SelfCheck().applied(scored, p_correct)


def score_replies(
    texts: Sequence[str],
    *,
    method: Method,
    similarity: tuple[str, Similarity],
    question: str | None,
    token_logprobs: TokenLogprobs,
    include_answer: bool,
    tau: float = 1.0,
) -> Score:
    """Score texts that can all be compared, by a name and its similarity."""
    name, compare = similarity
    method.check_similarity(compare, name=name)
    n, value, u, matrix = len(texts), math.inf, None, None
    if texts:
        inputs = Inputs(
            texts,
            similarity=compare,
            name=name,
            question=question,
            token_logprobs=token_logprobs,
            tau=tau,
            answer="included" if include_answer else "absent",
        )
        value, matrix = method.compute(inputs), inputs.matrix
        u = method.uncertainty(value, n, tau=tau)
    if math.isnan(value) or not (u is None or 0 <= u <= 1):
        msg = (
            "expected a number with u in [0, 1] from method "
            f"{method.name!r}, got {value} with {u}"
        )
        raise InputError(msg)
    why = "scoring_failed" if n > 1 else "too_few_samples"
    return Score(
        value=value,
        uncertainty=u,
        method=method.name,
        similarity=name if method.compares_answers else None,
        tau=tau,
        n=n,
        disagreement=u,
        reasons=(why,) if u is None else (),
        matrix=matrix,
    )
