"""Learning a certified plan of rounds from graded answers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snne_guard.decision.beta_fit import beta_features, fit_beta, probabilities
from snne_guard.decision.bounds import (
    critical_counts,
    interval,
    least_trials,
    upper_bound,
)
from snne_guard.decision.cascade import Cascade
from snne_guard.decision.graded import check_share, labels_of
from snne_guard.decision.isotonic import decreasing
from snne_guard.decision.probability import FEWEST_LABELS
from snne_guard.decision.promises import labels_for_error_rate
from snne_guard.decision.risk_control import first_accepted
from snne_guard.decision.rounds import limit_or
from snne_guard.decision.threshold import Threshold
from snne_guard.errors import InputError
from snne_guard.types import FloatArray

__all__ = ["fit_cascade"]

_LEARN = 0.4
"""Share of the questions that the limits are learnt from."""
_STEPS = 50
"""Settings of the knob that are tested at most."""
_DOUBT = 0.05
"""Probability, at most, that later rounds would decide otherwise than an early one."""
_CONFIDENCE = 0.9
"""Of the interval around the share of accepted answers."""

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Half:
    """Questions with their labels."""

    paths: FloatArray
    wrong: BoolArray


def fit_cascade(
    paths: ArrayLike,
    correct: ArrayLike,
    /,
    *,
    rounds: Sequence[int],
    alpha: float,
    delta: float = 0.1,
    seed: int = 0,
    method: str | None = None,
) -> Cascade:
    """Learn a plan of rounds with a promise on the error among accepted answers.

    Two fifths of the questions, drawn at random, tell how probable it is in each round
    that an answer with such a ``u`` is wrong. One knob turns that into a plan: after
    the last round it accepts where this probability is at most the knob; before, it
    accepts or gives up where later rounds would hardly ever decide otherwise. On the
    other questions the knob is opened step by step, for as long as the exact binomial
    test shows that the error among all accepted answers, of whichever round, is at most
    ``alpha`` (fixed-sequence testing: Angelopoulos and others 2021, "Learn then Test",
    arXiv 2110.01052).

    Args:
        paths: ``(questions, rounds)`` ``u`` after each round, NaN or ``inf`` where the
            set was incomplete or cannot be accepted.
        correct: ``(questions,)`` 1 or True where the answer is correct, else 0 or
            False.
        rounds: Members of the response set after each round, the last n.
        alpha: Largest share of wrong answers among the accepted ones, in (0, 1).
        delta: Probability that the promise fails, in (0, 1).
        seed: Fixes the split.
        method: Name of the method that gave the ``u``, None for any.

    Returns:
        The plan; ``promise.status`` says whether the labels allow it. Where they do
        not, nothing is accepted, and sampling ends after the first round.

    Raises:
        InputError: There are no labels, or one is neither 0 nor 1; the paths are no
            table with a row for each label and a column for each round, with values in
            [0, 1], NaN or ``inf``.
        ConfigurationError: alpha, delta or the rounds make no sense.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> correct = rng.random(500) < 0.8
        >>> hidden = np.where(correct, 0.2, 0.8)
        >>> noise = rng.normal(size=(500, 2)) * [0.2, 0.1]
        >>> paths = np.clip(hidden[:, None] + noise, 0, 1)
        >>> plan = fit_cascade(paths, correct, rounds=(3, 10), alpha=0.05)
        >>> plan.certified, plan.mean_members < 7
        (True, True)
    """
    alpha, delta = check_share("alpha", alpha), check_share("delta", delta)
    labels = labels_of(correct)
    table = _table(paths, rows=len(labels), columns=len(rounds))
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = max(FEWEST_LABELS, math.ceil(_LEARN * len(labels)))
    learn, test = (
        _Half(paths=table[part], wrong=labels[part] == 0)
        for part in (order[:cut], order[cut:])
    )
    promise = Threshold(
        value=-1.0,
        kind="error_rate",
        status="infeasible",
        level=alpha,
        delta=delta,
        sequence="pilot",
        n_labels=len(test.wrong),
        acceptance=0.0,
        method=method,
    )
    nothing = _nothing(rounds, promise, n_fit=len(learn.wrong))
    least = least_trials(alpha, delta) + 1
    if not _can_learn(learn) or len(test.wrong) < least:
        # As many as leave enough on either side of the split.
        needed = math.ceil(max(FEWEST_LABELS / _LEARN, least / (1 - _LEARN)))
        status = replace(
            promise,
            status="too_few_labels",
            labels_needed=max(needed, len(labels) + 1),
        )
        return replace(nothing, promise=status)
    plans = _plans(learn, nothing)
    return _tested(plans, learn, test, nothing)


def _tested(
    plans: Iterable[Cascade], learn: _Half, test: _Half, nothing: Cascade
) -> Cascade:
    """Return the boldest plan of those that pass in a row."""
    n, promise = len(test.wrong), nothing.promise
    alpha, delta = promise.level or 0.0, promise.delta or 0.0
    first = first_accepted(n, alpha=alpha, delta=delta)
    allowed = critical_counts(n, alpha, delta)
    passed = nothing
    for plan in plans:
        _, expected = plan.replay(learn.paths)
        if expected.mean() * n < first:
            continue
        ends, accepted = plan.replay(test.paths)
        count, errors = int(accepted.sum()), int(test.wrong[accepted].sum())
        if errors > allowed[count]:
            break
        passed = replace(
            plan,
            promise=replace(
                plan.promise,
                n_accepted=count,
                n_wrong=errors,
                acceptance=count / n,
            ),
            mean_members=float(np.asarray(plan.rounds)[ends].mean()),
            mean_rounds=float((ends + 1).mean()),
        )
    if passed is nothing:
        return replace(
            nothing, promise=replace(promise, labels_needed=_needed(test, promise))
        )
    one = passed.promise
    certified = replace(
        one,
        upper_bound=upper_bound(one.n_wrong, one.n_accepted, delta),
        acceptance_interval=interval(one.n_accepted, n, _CONFIDENCE),
    )
    return replace(passed, promise=certified)


def _needed(test: _Half, promise: Threshold) -> int | None:
    """Return about how many labels a threshold after the last round would take."""
    last = test.paths[:, -1]
    order = np.argsort(last, kind="stable")
    needed = labels_for_error_rate(
        last[order],
        test.wrong[order],
        alpha=promise.level or 0.0,
        delta=promise.delta or 0.0,
    )
    return None if needed is None else math.ceil(needed / (1 - _LEARN))


def _plans(learn: _Half, nothing: Cascade) -> Iterator[Cascade]:
    """Return the plans for each setting of the knob, from the most careful one on."""
    chances = _chances(learn)
    last = np.sort(chances[np.isfinite(chances[:, -1]), -1])
    ranks = np.ceil(np.arange(1, _STEPS + 1) * len(last) / _STEPS).astype(np.intp)
    knobs = np.unique(last[ranks - 1]).tolist()
    for knob in knobs:
        yield _plan(float(knob), learn.paths, chances, nothing)


def _plan(
    knob: float, paths: FloatArray, chances: FloatArray, nothing: Cascade
) -> Cascade:
    """Return the plan that accepts what is wrong with at most this probability."""
    small = chances <= knob
    later = small[:, -1]
    last = float(paths[later, -1].max())
    accept: list[float | None] = [last]
    reject: list[float | None] = []
    for place in reversed(range(paths.shape[1] - 1)):
        u = paths[:, place]
        scored = np.isfinite(u)
        sure, hopeless = _limits(u[scored], later[scored])
        accept.insert(0, sure)
        reject.insert(0, hopeless)
        # What this round and later ones would do, for the round before.
        later = (later | (u <= limit_or(sure, -1.0))) & (u < limit_or(hopeless, 2.0))
    promise = replace(nothing.promise, status="certified", value=last)
    return replace(
        nothing,
        accept_at_most=tuple(accept),
        reject_at_least=tuple(reject),
        promise=promise,
        knob=knob,
    )


def _limits(u: FloatArray, later: BoolArray) -> tuple[float | None, float | None]:
    """Return up to which ``u`` all rounds would accept, and from which on none would.

    Args:
        u: Of the answers after a round.
        later: Whether later rounds would accept them.
    """
    values, chances = decreasing(u, later)
    sure, hopeless = values[chances >= 1 - _DOUBT], values[chances <= _DOUBT]
    return (
        float(sure[-1]) if sure.size else None,
        float(hopeless[0]) if hopeless.size else None,
    )


def _chances(learn: _Half) -> FloatArray:
    """Return how probable it is by each ``u`` that the answer is wrong.

    By beta calibration of each round, as ``fit_probability`` does it.
    """
    found = np.full(learn.paths.shape, np.inf)
    for place, u in enumerate(learn.paths.T):
        scored = np.isfinite(u)
        features = beta_features(u[scored])
        wrong = learn.wrong[scored].astype(np.float64)[None]
        (weights,) = fit_beta(features, wrong=wrong, right=1 - wrong)
        found[scored, place] = probabilities(features @ weights)
    return found


def _can_learn(learn: _Half) -> bool:
    """Return whether each round has answers enough of both kinds."""
    scored = np.isfinite(learn.paths)
    return all(
        part.sum() >= FEWEST_LABELS
        and bool(learn.wrong[part].any())
        and not learn.wrong[part].all()
        for part in scored.T
    )


def _nothing(rounds: Sequence[int], promise: Threshold, *, n_fit: int) -> Cascade:
    """Return the plan that accepts nothing, and so needs no second round."""
    early = len(rounds) - 1
    return Cascade(
        rounds=tuple(rounds),
        accept_at_most=(None,) * (early + 1),
        reject_at_least=(0.0,) * early,
        promise=promise,
        n_fit=n_fit,
    )


def _table(paths: ArrayLike, *, rows: int, columns: int) -> FloatArray:
    try:
        table = np.array(paths, dtype=np.float64)
    except (TypeError, ValueError) as error:
        msg = "expected paths to be a table of numbers"
        raise InputError(msg) from error
    if table.shape != (rows, columns):
        msg = f"expected paths of shape {(rows, columns)}, got {table.shape}"
        raise InputError(msg)
    table[np.isnan(table)] = np.inf
    outside = table[~(((table >= 0) & (table <= 1)) | (table == np.inf))]
    if outside.size:
        msg = f"expected every u in [0, 1], NaN or inf, got {float(outside[0])}"
        raise InputError(msg)
    return table
