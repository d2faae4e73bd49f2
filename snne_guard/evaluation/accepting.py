"""What a guard would accept of recorded answers, and how often it would be wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from snne_guard.decision import ErrorProbability
from snne_guard.engine.reply_set import reply_set_of
from snne_guard.evaluation.metrics import risk_coverage
from snne_guard.evaluation.recordings import shard_of
from snne_guard.scorers import Method
from snne_guard.types import REASONS, FloatArray, Reply

_FOLDS = 3


def why_never_accepted(answer: Reply, samples: Sequence[Reply], /) -> str | None:
    """Return the reason code for which a calibrated guard would not score an answer.

    Its reply set must be whole: a reply that is cut off, refused or empty leaves a set
    of another size, which no threshold was made for.
    """
    found = reply_set_of(answer, samples, include_answer=True)
    if len(found.texts) == 1 + len(samples):
        return None
    reasons = (why for why in found.reasons if why != "answer_truncated")
    return next(reasons, "too_few_samples")


def guard_u(
    method: Method,
    values: FloatArray,
    n: int,
    /,
    *,
    tau: float,
    never: Sequence[str | None],
) -> FloatArray | None:
    """Return ``(m,)`` ``u`` of a method's raw values for ``n`` replies, if it has one.

    It is infinite where an answer is never accepted for the reason in ``never``.
    """
    each = [method.uncertainty(value, n, tau=tau) for value in values.tolist()]
    if None in each:
        return None
    u = np.array(each, dtype=np.float64)
    u[[why is not None for why in never]] = math.inf
    return u


def in_words(code: str) -> str:
    """Return a reason code with what it means and, where one is known, the remedy."""
    remedy = "; draw again with a larger --max-tokens" if "truncated" in code else ""
    return f"{code} ({REASONS.get(code, code)}{remedy})"


def error_at(u: FloatArray, correct: FloatArray, coverage: float, /) -> float:
    """Return the share of wrong answers among the most certain, NaN beyond those."""
    last = max(1, math.ceil(round(coverage * len(u), 6))) - 1
    if math.isinf(np.sort(u)[last]):
        return math.nan
    return float(risk_coverage(u, correct)[1][last])


def predicted_errors(
    ids: tuple[str, ...], u: FloatArray, correct: FloatArray
) -> FloatArray | None:
    """Return ``(n,)`` p_wrong of each answer, learnt from the other two thirds.

    NaN where an answer has no ``u``; None where a third has too few answers.
    """
    known = np.isfinite(u)
    folds = np.array([shard_of(each, _FOLDS) for each in ids])
    predicted = np.full(len(u), math.nan)
    for fold in range(1, _FOLDS + 1):
        inside, others = (folds == fold) & known, (folds != fold) & known
        if not 0 < correct[others].sum() < others.sum():
            return None
        p_wrong = ErrorProbability.fit(u[others], correct[others])
        if p_wrong is None:
            return None
        predicted[inside] = [p_wrong(each) for each in u[inside].tolist()]
    return predicted
