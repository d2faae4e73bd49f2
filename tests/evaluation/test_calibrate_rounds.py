"""A whole plan of rounds, stops and thresholds, certified from recordings."""

from __future__ import annotations

import pytest

from snne_guard.decision import fit_cascade
from snne_guard.errors import ConfigurationError
from snne_guard.evaluation import Promise, run_calibration, uncertainty_paths
from tests.support.calibrating import recordings

ROWS = recordings(60)
TEN = Promise(error_rate=0.15)


def test_a_plan_of_rounds_is_certified_end_to_end() -> None:
    many = recordings(600, seed=5)
    run = run_calibration(many, TEN, rounds=(2, 3, 5))
    made = run.calibration
    plan = made.cascade
    assert plan is not None
    assert plan.certified
    assert made.threshold == plan.promise
    assert (made.settings["rounds"], made.settings["n"]) == ([2, 3, 5], 5)
    assert [*made.probability] == [2, 3, 5]
    assert (plan.n_fit, plan.promise.n_labels) == (240, 360)
    # u of the first members, as a guard has it that stops there.
    paths = uncertainty_paths(many, rounds=(2, 3, 5))
    expected = fit_cascade(
        paths, run.correct, rounds=(2, 3, 5), alpha=0.15, method="snne"
    )
    assert plan == expected
    assert made.statement == expected.statement


@pytest.mark.parametrize("rounds", [(5,), ()])
def test_one_round_is_no_plan(rounds: tuple[int, ...]) -> None:
    with pytest.raises(ConfigurationError, match="of at least two rounds, such as"):
        run_calibration(ROWS, TEN, rounds=rounds)


def test_rounds_that_make_no_sense() -> None:
    for rounds, n in (((3, 2), None), ((2, 3), 5)):
        with pytest.raises(
            ConfigurationError, match="members after each round, rising"
        ):
            run_calibration(ROWS, TEN, rounds=rounds, n=n)
    told = "rounds are certified for error_rate alone"
    for promise in (
        Promise(joint_error=0.1),
        Promise(error_rate=0.1, false_refusal=0.1),
    ):
        with pytest.raises(ConfigurationError, match=told):
            run_calibration(ROWS, promise, rounds=(2, 5))
    with pytest.raises(ConfigurationError, match=told):
        run_calibration(ROWS, TEN, rounds=(2, 5), pilot=recordings(20, seed=9))
