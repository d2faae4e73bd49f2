"""Learning a plan of rounds: the promise, its counts, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from snne_guard.decision import fit_cascade
from snne_guard.errors import ConfigurationError, InputError

ROUNDS = (3, 5, 10)
Questions = tuple[NDArray[np.float64], NDArray[np.bool_]]


def questions(n: int, seed: int = 0, *, base: float = 0.25) -> Questions:
    """Questions whose u is noisier after few members."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < base
    members = np.cumsum(rng.normal(size=(n, 10)), axis=1)[:, [2, 4, 9]] / ROUNDS
    hidden = rng.normal(size=n) + 2 * wrong
    return 1 / (1 + np.exp(-(hidden[:, None] - 1 + members))), ~wrong


def test_what_it_counts_is_what_it_does_on_the_tested_questions() -> None:
    paths, correct = questions(600)
    plan = fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.1, method="snne")
    order = np.random.default_rng(0).permutation(600)[240:]
    ends, accepted = plan.replay(paths[order])
    promise = plan.promise
    assert plan.certified
    assert promise.method == "snne"
    assert (plan.n_fit, promise.n_labels) == (240, 360)
    assert promise.n_accepted == accepted.sum()
    assert promise.n_wrong == (~correct[order][accepted]).sum()
    assert promise.acceptance == accepted.mean()
    assert binom.cdf(promise.n_wrong, promise.n_accepted, 0.1) <= 0.1
    assert (promise.upper_bound or 1) <= 0.1
    assert plan.mean_members == np.array(ROUNDS)[ends].mean()
    assert plan.mean_rounds == (ends + 1).mean()
    assert 0.4 < accepted.mean() < 0.9
    assert (plan.mean_members or 10) < 7.5


def test_early_rounds_decide_as_the_last_one_would() -> None:
    paths, correct = questions(3000)
    plan = fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.1)
    fresh, _ = questions(20_000, seed=1)
    ends, accepted = plan.replay(fresh)
    final = fresh[:, -1] <= plan.promise.value
    assert (ends < 2).mean() > 0.3
    assert (accepted != final).mean() < 0.06


def test_the_promise_holds_on_fresh_questions() -> None:
    fresh, right = questions(40_000, seed=99)
    broken = certified = 0
    for seed in range(30):
        plan = fit_cascade(*questions(400, seed), rounds=ROUNDS, alpha=0.15)
        _, accepted = plan.replay(fresh)
        certified += plan.certified
        broken += plan.certified and (~right[accepted]).mean() > 0.15
    assert certified > 20
    assert broken <= binom.ppf(0.99, 30, 0.1)


def test_sets_that_are_incomplete_count_and_are_not_accepted() -> None:
    paths, correct = questions(600)
    gone = paths.copy()
    gone[:200, 1:] = math.nan
    gone[:100, 0] = math.inf
    plan = fit_cascade(gone, correct, rounds=ROUNDS, alpha=0.2)
    ends, accepted = plan.replay(gone[:100])
    assert plan.certified
    assert not accepted.any()
    assert (ends == 2).all()
    assert plan.promise.acceptance == pytest.approx(
        plan.replay(gone)[1].mean(), abs=0.05
    )


def test_ties_are_kept_together() -> None:
    paths, correct = questions(900)
    plan = fit_cascade(np.round(paths, 1), correct, rounds=ROUNDS, alpha=0.1)
    assert plan.certified
    limits = [*plan.accept_at_most, *plan.reject_at_least]
    assert all(one in np.round(np.arange(11) / 10, 1) for one in limits if one)


def test_what_labels_do_not_allow_is_not_promised() -> None:
    paths, correct = questions(300)
    plan = fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.02)
    assert plan.promise.status == "infeasible"
    assert plan.mean_members is None
    assert not plan.replay(paths)[1].any()
    never = fit_cascade(np.full((300, 3), 0.5), correct, rounds=ROUNDS, alpha=0.1)
    assert (never.promise.status, never.promise.labels_needed) == ("infeasible", None)
    some = fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.06)
    assert some.certified or (some.promise.labels_needed or 0) > 300


@pytest.mark.parametrize(("n", "alpha", "needed"), [(60, 0.2, 125), (150, 0.01, 385)])
def test_too_few_labels_say_so(n: int, alpha: float, needed: int) -> None:
    plan = fit_cascade(*questions(n), rounds=ROUNDS, alpha=alpha)
    assert plan.promise.status == "too_few_labels"
    assert plan.promise.labels_needed == needed
    assert "labels are too few" in plan.statement


@pytest.mark.parametrize("correct", [np.zeros(400), np.ones(400)])
def test_labels_of_one_kind_promise_nothing(correct: NDArray[Any]) -> None:
    plan = fit_cascade(questions(400)[0], correct, rounds=ROUNDS, alpha=0.1)
    assert plan.promise.status == "too_few_labels"
    assert plan.promise.labels_needed == 401


def test_the_split_is_fixed_by_the_seed() -> None:
    made = [
        fit_cascade(*questions(500), rounds=ROUNDS, alpha=0.1, seed=seed)
        for seed in (0, 0, 1)
    ]
    assert made[0] == made[1] != made[2]


@pytest.mark.parametrize(
    ("paths", "correct", "message"),
    [
        ([[0.1] * 3] * 4, [], "got no labels"),
        ([[0.1] * 3] * 4, [0, 1, 2, 1], "got 2.0"),
        ([[0.1] * 3] * 4, [0, 1, 1], r"shape \(3, 3\), got \(4, 3\)"),
        ([[0.1] * 2] * 2, [0, 1], r"shape \(2, 3\), got \(2, 2\)"),
        ([0.1, 0.2], [0, 1], r"shape \(2, 3\), got \(2,\)"),
        ([[0.1, 0.2, 1.1]] * 2, [0, 1], "got 1.1"),
        ([[0.1, 0.2, -math.inf]] * 2, [0, 1], "got -inf"),
        ([["a", 0.2, 0.1]] * 2, [0, 1], "a table of numbers"),
    ],
)
def test_paths_that_make_no_sense_are_refused(
    paths: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.1)


def test_options_that_make_no_sense_are_refused() -> None:
    paths, correct = questions(200)
    with pytest.raises(ConfigurationError, match="alpha must be above 0"):
        fit_cascade(paths, correct, rounds=ROUNDS, alpha=0)
    with pytest.raises(ConfigurationError, match="delta must be above 0"):
        fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.1, delta=1)
    with pytest.raises(ConfigurationError, match="rounds must rise"):
        fit_cascade(paths, correct, rounds=(3, 3, 10), alpha=0.1)


def test_where_all_may_be_accepted_all_are() -> None:
    paths, correct = questions(400)
    plan = fit_cascade(paths, correct, rounds=ROUNDS, alpha=0.6)
    assert plan.promise.acceptance == pytest.approx(1.0, abs=0.02)
    assert plan.mean_members == pytest.approx(3, abs=0.1)
