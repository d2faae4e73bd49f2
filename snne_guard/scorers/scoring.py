"""Answers that are there already to a score; no model is called."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from snne_guard.errors import InputError
from snne_guard.scorers.bounds import check_tau
from snne_guard.scorers.materials import Materials
from snne_guard.scorers.needs import (
    MAIN_NEEDS,
    OF_EACH,
    RELATION_NEEDS,
    check_relation,
    compares_answers,
)
from snne_guard.scorers.registry import default_similarity, resolve_method
from snne_guard.scorers.relation import Relation
from snne_guard.scorers.rows import LOGPROB_SLACK
from snne_guard.scorers.sentences import sentences_of
from snne_guard.types import Method, Score, Similarity

__all__ = ["score", "score_members"]


def score(
    answers: Sequence[str],
    *,
    token_logprobs: Sequence[Sequence[float] | None] | None = None,
    question: str | None = None,
    include_answer: bool = True,
    method: str | Method = "auto",
    similarity: str | Similarity | None = None,
    tau: float | None = None,
    known: Mapping[str, Any] | None = None,
) -> Score:
    """Score how far answers to one question differ; never calls a model.

    Answers of mere white space are left out before scoring (reason ``empty_samples``).
    Where the delivered answer itself is one of them there is nothing to be certain
    of: the result has uncertainty None, value ``inf``, n 0 and the reason
    ``answer_empty``, so that no comparison takes it for confidence.

    Args:
        answers: The texts, at least one; with ``include_answer`` the first is the one
            that was delivered.
        token_logprobs: For each answer the natural log-probabilities of its tokens,
            None or empty where they are unknown.
        question: What was asked, for similarities that use it.
        include_answer: Whether ``answers[0]`` is the delivered answer. False means that
            all of them are samples and the delivered answer is not among them; every
            one is scored in either case.
        method: Name in ``METHODS`` or ``READINGS``, a ``Method`` of your own, or
            ``"auto"``: WSNNE where every scored answer has log-probabilities, else
            SNNE (reason ``logprobs_missing`` if only some have).
        similarity: What compares the answers: a name in ``SIMILARITIES``, ``"nli"``
            or ``"nli:MODEL"``, ``"embedding:MODEL"``, a callable of your own, or None
            for the method's default (content F1 for SNNE and WSNNE, of which 0.7 of
            the weight then lies on the delivered answer).
        tau: Temperature of the similarity's softmax, None for 1.
        known: What a method needs and nobody can work out from the answers, under the
            name of the need: ``hidden_states``, ``token_importance``, one entry for
            each of ``answers``, and ``p_true_logprob``. Entries of answers of mere
            white space are left out with them.

    Returns:
        The score. Its uncertainty is in [0, 1], 0 all alike, 1 all different, and
        None for one answer (reason ``too_few_samples``) or a method without bounds.

    Raises:
        InputError: There are no answers, or one is no text; the log-probabilities do
            not fit the answers, are NaN or above 0; the method needs something that
            is missing; ``known`` has another number of entries; the similarity's matrix
            is not one.
        ConfigurationError: The method, the similarity or tau makes no sense, or the
            similarity cannot give what the method needs.

    Example:
        >>> result = score(["Paris", "Paris", "Lyon"])
        >>> round(result.value, 4), round(result.uncertainty, 4), result.method
        (-1.8309, 0.5573, 'snne')
    """
    tau = 1.0 if tau is None else tau
    check_tau(tau)
    named = resolve_method(method, logprobs=True)
    relation = Relation.of(similarity, default=default_similarity(named))
    check_relation(named, relation)
    members = _members(answers, token_logprobs)
    places = [place for place, one in enumerate(members) if one.text.strip()]
    used = [members[place] for place in places]
    known = _known_of(known, places, len(members))
    having = sum(member.tokens is not None for member in used)
    complete = bool(used) and having == len(used)
    chosen = resolve_method(method, logprobs=complete)
    if include_answer and not members[0].text.strip():
        return _unscored(("answer_empty",), chosen, relation, tau)
    reasons: tuple[str, ...] = ("empty_samples",) if len(used) < len(members) else ()
    if not used:
        reasons = (*reasons, "too_few_samples")
        return _unscored(reasons, chosen, relation, tau)
    if method == "auto" and having and not complete:
        reasons += ("logprobs_missing",)
    scored = score_members(
        [member.text for member in used],
        token_logprobs=[member.tokens for member in used],
        question=question,
        method=chosen,
        relation=relation,
        tau=tau,
        delivered=include_answer,
        known=known,
    )
    return replace(scored, reasons=(*reasons, *scored.reasons))


def score_members(
    texts: Sequence[str],
    *,
    token_logprobs: Sequence[Sequence[float] | None] | None = None,
    question: str | None = None,
    method: Method,
    relation: Relation,
    tau: float = 1.0,
    delivered: bool = True,
    include_answer: bool = True,
    known: Mapping[str, Any] | None = None,
) -> Score:
    """Score texts that all count, with everything already resolved.

    A method that compares no answers, such as perplexity, asks no similarity: the
    score then has neither a matrix nor a similarity.

    Args:
        texts: The members, at least one; with ``delivered`` the first is the delivered
            answer.
        token_logprobs: For each text the natural log-probabilities of its tokens,
            None or empty where they are unknown.
        question: What was asked, for similarities that use it.
        method: The method that runs.
        relation: What compares the texts; its matrix is checked.
        tau: Temperature of the similarity's softmax, above 0.
        delivered: Whether the delivered answer is among the texts.
        include_answer: Whether the delivered answer is a member of the scored set.
        known: As for ``Materials``.

    Returns:
        The score. Where its uncertainty is None a reason says why:
        ``too_few_samples``, ``no_bounds`` or ``tau_too_extreme``. What the similarity
        cannot see of the texts is named too: ``tokenless_answers`` (rouge-score sees
        nothing in an answer of letters or symbols), ``answers_cut`` and
        ``answers_alike`` (of NLI models and cross-encoders), and the codes that a
        method ``blind_spots`` of a similarity of your own returns.

    Raises:
        InputError: There are no texts, the matrix is not one, what the method needs
            is missing, or a method returned NaN or a ``u`` outside [0, 1].
        ConfigurationError: The relation cannot give what the method needs.

    Example:
        >>> from snne_guard.scorers import METHODS
        >>> score_members(
        ...     ["yes", "yes"],
        ...     method=METHODS["snne"],
        ...     relation=Relation.of("rouge_l"),
        ... ).uncertainty
        0.0
    """
    materials = Materials(
        texts,
        token_logprobs=token_logprobs,
        question=question,
        delivered=delivered,
        include_answer=include_answer,
        known=known,
    )
    n = len(materials.members)
    if n == 0:
        msg = "expected at least one text to score, got none"
        raise InputError(msg)
    compares = compares_answers(method)
    inputs = materials.inputs(method, relation, tau=tau)
    value = float(method.compute(inputs))
    if math.isnan(value):
        msg = f"expected a number from method {method.name!r}, got NaN"
        raise InputError(msg)
    u = method.uncertainty(value, n, tau=tau)
    if u is not None and not 0 <= u <= 1:
        msg = f"expected u in [0, 1] from method {method.name!r}, got {u}"
        raise InputError(msg)
    return Score(
        value=value,
        uncertainty=u,
        method=method.name,
        similarity=relation.name if compares else None,
        tau=float(tau),
        n=n,
        reasons=(
            *_why_none(method, u, n=n, tau=tau),
            *_blindness(materials, method, relation),
        ),
        # Kept for those who look at a score, where the answers are compared anyway.
        matrix=materials.similarity(relation) if _compares_whole(method) else None,
        anchor=inputs.anchor,
    )


def _why_none(
    method: Method, u: float | None, *, n: int, tau: float
) -> tuple[str, ...]:
    if n < 2:  # noqa: PLR2004 - one answer has nothing to differ from
        return ("too_few_samples",)
    if u is not None:
        return ()
    return ("no_bounds" if method.bounds(n, tau=tau) is None else "tau_too_extreme",)


def _compares_whole(method: Method) -> bool:
    """Return whether a method compares whole answers, and not their sentences alone."""
    return bool(method.needs & RELATION_NEEDS - {"sentence_entailment"})


def _blindness(
    materials: Materials, method: Method, relation: Relation
) -> tuple[str, ...]:
    """Name what the similarity cannot see of the texts that the method looks at."""
    if not compares_answers(method):
        return ()
    looked_at = method.needs & MAIN_NEEDS
    texts = materials.texts if looked_at else materials.members
    if not _compares_whole(method):
        texts = tuple(sentences_of(texts))
    return relation.blind_spots(texts, materials.question)


def _unscored(
    reasons: tuple[str, ...], method: Method, relation: Relation, tau: float
) -> Score:
    return Score(
        value=math.inf,
        uncertainty=None,
        method=method.name,
        similarity=relation.name if compares_answers(method) else None,
        tau=float(tau),
        n=0,
        reasons=reasons,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    text: str
    tokens: Sequence[float] | None


def _members(
    answers: Sequence[Any], token_logprobs: Sequence[Sequence[float] | None] | None
) -> list[_Member]:
    if isinstance(answers, str):
        msg = "expected a list of answers, got one text"
        raise InputError(msg)
    for position, answer in enumerate(answers):
        if not isinstance(answer, str):
            msg = f"expected answer {position} to be a text, got {_kind(answer)}"
            raise InputError(msg)
    if not len(answers):
        msg = "expected at least one answer, got none"
        raise InputError(msg)
    logprobs = [None] * len(answers) if token_logprobs is None else token_logprobs
    if len(logprobs) != len(answers):
        msg = (
            f"expected token_logprobs for each of {len(answers)} answers, "
            f"got {len(logprobs)}"
        )
        raise InputError(msg)
    return [
        _Member(text=text, tokens=_checked_tokens(tokens, position))
        for position, (text, tokens) in enumerate(zip(answers, logprobs, strict=True))
    ]


def _known_of(
    known: Mapping[str, Any] | None, places: Sequence[int], n: int
) -> Mapping[str, Any]:
    """Return what is known of the answers at some places, one entry for each."""
    found = dict(known or {})
    for need in OF_EACH & found.keys():
        entries = found[need]
        if entries is None:
            continue
        size = len(entries) if hasattr(entries, "__len__") else None
        if size != n:
            got = _kind(entries) if size is None else f"{size}"
            msg = f"expected {need} for each of {n} answers, got {got}"
            raise InputError(msg)
        if len(places) < n:
            found[need] = [entries[place] for place in places]
    return found


def _checked_tokens(
    tokens: Sequence[float] | None, position: int
) -> Sequence[float] | None:
    """Return the log-probabilities of one answer's tokens, None if unknown."""
    if tokens is None:
        return None
    try:
        wrong = [token for token in tokens if not token <= LOGPROB_SLACK]
        float(sum(tokens))
    except TypeError as error:
        msg = f"expected token_logprobs of answer {position} to be a list of numbers"
        raise InputError(msg) from error
    if wrong:
        msg = (
            "expected natural log-probabilities, at most 0, "
            f"got {wrong[0]} for answer {position}"
        )
        raise InputError(msg)
    return [min(token, 0.0) for token in tokens] if len(tokens) else None


def _kind(value: object) -> str:
    return type(value).__name__
