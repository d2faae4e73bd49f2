"""From answers to a score: the methods by name, and ``score``. No model is called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

from snne_guard.checks import check_number
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers.eigen_score import METHODS as EIGEN_SCORE
from snne_guard.scorers.entailment import METHODS as ENTAILMENT
from snne_guard.scorers.entropy import METHODS as ENTROPY
from snne_guard.scorers.graph import METHODS as GRAPH
from snne_guard.scorers.inputs import ResponseSet, TokenLogprobs
from snne_guard.scorers.kle import METHODS as KLE
from snne_guard.scorers.likelihood import METHODS as LIKELIHOOD
from snne_guard.scorers.method import Method
from snne_guard.scorers.sar import METHODS as SAR
from snne_guard.scorers.snne import METHODS as SNNE
from snne_guard.self_check import UNKNOWN, SelfCheck
from snne_guard.similarity import resolve_similarity
from snne_guard.similarity.lexical import check_texts
from snne_guard.similarity.tokens import is_visible
from snne_guard.types import Score, Similarity

__all__ = ["METHODS", "resolve_method", "score"]

_ALL = (
    *SNNE,
    *ENTROPY,
    *GRAPH,
    *KLE,
    *ENTAILMENT,
    *SAR,
    *EIGEN_SCORE,
    *LIKELIHOOD,
)

METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for method in _ALL}
)
"""Every method of this library by the name that a guard or ``score`` takes."""


def resolve_method(method: str | Method, /, *, logprobs: bool) -> Method:
    """Return the method that an option means.

    Args:
        method: A key of ``METHODS``, a ``Method`` of your own, or ``"auto"``.
        logprobs: Whether token log-probabilities are available: ``"auto"`` is WSNNE
            with them and SNNE without.

    Raises:
        ConfigurationError: It is neither a known name nor a ``Method``.

    Example:
        >>> resolve_method("auto", logprobs=False).name
        'snne'
    """
    if isinstance(method, Method):
        return method
    name = ("wsnne" if logprobs else "snne") if method == "auto" else method
    names = [*METHODS]
    if name not in names:
        msg = f"expected method 'auto', a Method or one of {names}, got {name!r}"
        raise ConfigurationError(msg)
    return METHODS[name]


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
    mistaken for confidence.

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
        InputError: There are no answers, or one is not a text; the log-probabilities
            do not fit the answers, are NaN or above 0; something that the method needs
            is missing; the similarity returned no matrix.
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
    p_correct = None
    if self_check is not None:
        given = UNKNOWN if self_check == "unknown" else self_check
        p_correct = check_number(given, what="self_check", least=0, most=1)
    check_texts(answers)
    n = len(answers)
    if not n:
        msg = "expected at least one answer, got none"
        raise InputError(msg)
    known = token_logprobs if token_logprobs is not None else [None] * n
    if len(known) != n:
        msg = f"expected token_logprobs for each of {n} answers, got {len(known)}"
        raise InputError(msg)
    visible = [place for place, text in enumerate(answers) if is_visible(text)]
    logprobs = [known[place] for place in visible]
    have = [tokens is not None and len(tokens) > 0 for tokens in logprobs]
    complete = bool(have) and all(have)
    chosen = resolve_method(method, logprobs=complete)
    name, compare = resolve_similarity(
        chosen.default_similarity if similarity is None else similarity
    )
    chosen.check_similarity(compare, name=name)
    if not visible or (include_answer and visible[0] != 0):
        return Score(
            value=math.inf,
            uncertainty=None,
            method=chosen.name,
            similarity=name if chosen.compares_answers else None,
            tau=tau,
            n=0,
            reasons=("answer_unreadable",)
            if include_answer
            else ("unreadable_samples", "too_few_samples"),
        )
    reasons = ("unreadable_samples",) if len(visible) < n else ()
    if method == "auto" and any(have) and not complete:
        reasons = (*reasons, "logprobs_missing")
    scored = _scored(
        chosen,
        ResponseSet(
            [answers[place] for place in visible],
            similarity=compare,
            name=name,
            question=question,
            token_logprobs=logprobs,
            tau=tau,
            answer="member" if include_answer else "absent",
        ),
        similarity=name if chosen.compares_answers else None,
    )
    scored = replace(scored, reasons=(*reasons, *scored.reasons))
    return scored if p_correct is None else SelfCheck().applied(scored, p_correct)


def _scored(method: Method, members: ResponseSet, *, similarity: str | None) -> Score:
    """Return the score of answers that are all visible.

    Where it has no uncertainty, a reason says why: ``too_few_samples``, or
    ``scoring_failed`` for a method without bounds.
    """
    n = len(members.texts)
    value = method.compute(members)
    if math.isnan(value):
        msg = f"expected a number from method {method.name!r}, got NaN"
        raise InputError(msg)
    u = method.uncertainty(value, n, tau=members.tau)
    if u is not None and not 0 <= u <= 1:
        msg = f"expected u in [0, 1] from method {method.name!r}, got {u}"
        raise InputError(msg)
    reasons: tuple[str, ...] = ()
    if u is None:
        reasons = ("too_few_samples" if n == 1 else "scoring_failed",)
    return Score(
        value=value,
        uncertainty=u,
        method=method.name,
        similarity=similarity,
        tau=members.tau,
        n=n,
        disagreement=u,
        reasons=reasons,
        matrix=members.matrix,
    )
