"""Learning when to stop: that the promise holds, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from snne_guard.decision import fit_stop
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray

ROUNDS = (3, 5, 10)


def questions(count: int, rng: np.random.Generator, noise: float = 0.12) -> FloatArray:
    """Paths whose early values are the last one with noise that shrinks."""
    last = rng.beta(0.7, 0.7, count)
    early = [
        np.clip(last + rng.normal(0, noise * wide, count), 0, 1) for wide in (1.5, 1.0)
    ]
    return np.column_stack([*early, last])


def test_the_promise_holds_as_often_as_is_promised() -> None:
    rng = np.random.default_rng(7)
    population = questions(200_000, rng)
    broken, saved = 0, list[float]()
    for seed in range(150):
        learnt = population[rng.integers(0, len(population), 250)]
        rule = fit_stop(learnt, rounds=ROUNDS, threshold=0.4, epsilon=0.1, seed=seed)
        ends, accepted = rule.replay(population)
        other = np.mean(accepted != (population[:, -1] <= 0.4))
        broken += int(other > 0.1)
        saved.append(10 - float(np.array(ROUNDS)[ends].mean()))
    # Of 150 at 0.1 each, 24 or more would come once in a hundred times.
    assert broken < 24
    assert np.mean(saved) > 3


def test_it_says_what_it_saw() -> None:
    paths = questions(400, np.random.default_rng(0))
    rule = fit_stop(paths, rounds=ROUNDS, threshold=0.4, seed=3)
    order = np.random.default_rng(3).permutation(400)
    test = paths[order[200:]]
    ends, accepted = rule.replay(test)
    assert rule.disagreements == int((accepted != (test[:, -1] <= 0.4)).sum())
    assert rule.mean_members == pytest.approx(np.array(ROUNDS)[ends].mean())
    assert rule.mean_rounds == pytest.approx((ends + 1).mean())
    assert (rule.n_records, rule.n_certified) == (400, 200)
    assert rule.eta is not None
    again = fit_stop(paths.tolist(), rounds=[3, 5, 10], threshold=0.4, seed=3)
    assert again == rule
    assert fit_stop(paths, rounds=ROUNDS, threshold=0.4, seed=4) != rule


def test_more_other_decisions_save_more() -> None:
    paths = questions(2000, np.random.default_rng(0))
    means = [
        fit_stop(paths, rounds=ROUNDS, threshold=0.4, epsilon=epsilon).mean_members
        for epsilon in (0.01, 0.02, 0.05, 0.1, 0.2)
    ]
    assert means == sorted(means, key=lambda mean: -(mean or 0))
    assert means[0] != means[-1]


def test_where_early_values_say_nothing_it_never_stops() -> None:
    rng = np.random.default_rng(0)
    paths = rng.random((500, 3))
    rule = fit_stop(paths, rounds=ROUNDS, threshold=0.5, epsilon=0.01)
    assert rule.mean_members == pytest.approx(10, abs=0.5)
    # Even full certainty on one half may not hold on the other.
    learn_says = np.tile([[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]], (300, 1))
    order = np.random.default_rng(0).permutation(600)
    learn_says[order[300:], -1] = rng.integers(0, 2, 300)
    rule = fit_stop(learn_says, rounds=ROUNDS, threshold=0.5, seed=0)
    assert (rule.eta, rule.accept_at_most, rule.reject_at_least) == (
        None,
        (None, None),
        (None, None),
    )
    assert (rule.mean_members, rule.mean_rounds, rule.disagreements) == (10.0, 3.0, 0)


def test_incomplete_sets_are_no_stop_and_no_end_is_no_question() -> None:
    paths = questions(300, np.random.default_rng(0), noise=0.0)
    paths[:100, 0] = math.nan
    paths[100:110, -1] = math.nan
    rule = fit_stop(paths, rounds=ROUNDS, threshold=0.4)
    assert rule.n_records == 290
    assert rule.mean_members is not None
    assert 3 < rule.mean_members < 5
    nowhere = paths.copy()
    nowhere[:, 0] = math.nan
    assert fit_stop(nowhere, rounds=ROUNDS, threshold=0.4).accept_at_most[0] is None


@pytest.mark.parametrize(
    ("epsilon", "confidence", "needed"),
    [(0.05, 0.9, 45), (0.02, 0.9, 114), (0.1, 0.9, 22), (0.05, 0.95, 59)],
)
def test_too_few_records_are_told_how_many_are_needed(
    epsilon: float, confidence: float, needed: int
) -> None:
    options: dict[str, Any] = {
        "rounds": (3, 10),
        "threshold": 0.5,
        "epsilon": epsilon,
        "confidence": confidence,
    }
    clear = [[0.0, 0.0], [1.0, 1.0]] * needed
    assert fit_stop(clear, **options).mean_members == 3
    with pytest.raises(InputError, match=f"at least {2 * needed} .* {needed} to test"):
        fit_stop(clear[1:], **options)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ([[0.1, "x", 0.2]], "a table of numbers"),
        ([0.1, 0.2, 0.3], r"shape \(questions, 3\), got \(3,\)"),
        ([[0.1, 0.2]], r"got \(1, 2\)"),
        ([[0.1, 1.2, 0.3]], r"every u in \[0, 1\] or NaN, got 1.2"),
        ([[-0.1, 0.2, 0.3]], "got -0.1"),
    ],
)
def test_what_are_no_paths(paths: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        fit_stop(paths, rounds=ROUNDS, threshold=0.4)


@pytest.mark.parametrize(
    "changed", [{"rounds": (10,)}, {"threshold": -1.0}, {"epsilon": 1.0}]
)
def test_options_that_make_no_sense(changed: dict[str, Any]) -> None:
    options: dict[str, Any] = {"rounds": ROUNDS, "threshold": 0.4, **changed}
    with pytest.raises(ConfigurationError):
        fit_stop(np.zeros((500, 3)), **options)
