"""Each search for a threshold, against a slow one that is written as it is told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom

from snne_guard.decision import exploratory
from snne_guard.decision.risk_control import (
    Accepted,
    by_approximate_grid,
    by_joint_error,
    by_pilot,
    by_ranks,
    ends_of,
    first_accepted,
)
from snne_guard.errors import ConfigurationError, InputError

SETTINGS = settings(max_examples=60, deadline=None)
LEVELS = st.sampled_from([0.1, 0.2, 0.35])
DELTAS = st.sampled_from([0.05, 0.1, 0.3])
Draw = tuple[NDArray[np.float64], NDArray[np.bool_]]


@st.composite
def draws(draw: st.DrawFn, *, ties: bool = True) -> Draw:
    """Answers of which the wrong ones have larger u, some of them equal or inf."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(15, 200))
    wrong = rng.random(n) < draw(st.sampled_from([0.02, 0.1, 0.3, 0.6]))
    u = np.clip(rng.normal(0.4 + 0.25 * wrong, 0.2), 0, 1)
    if ties:
        u = np.round(u, draw(st.sampled_from([0, 1, 2, 9])))
        u[rng.random(n) < draw(st.sampled_from([0.0, 0.2]))] = np.inf
    order = np.argsort(u, kind="stable")
    return u[order], wrong[order]


def shown(u: Any, wrong: Any, value: float, *, alpha: float, delta: float) -> bool:
    """Whether the binomial test shows it of the answers up to a value."""
    errors = [bad for score, bad in zip(u, wrong, strict=True) if score <= value]
    return bool(binom.cdf(sum(errors), len(errors), alpha) <= delta)


def climb(draw: Draw, values: list[float], **options: float) -> float:
    """Return the last of the values that pass in a row, -1 for none."""
    last = -1.0
    for value in values:
        if not shown(*draw, value, **options):
            break
        last = value
    return last


def counted(draw: Draw, value: float) -> Accepted:
    u, wrong = draw
    n = sum(score <= value for score in u.tolist())
    return Accepted(value=value, n=n, wrong=int(wrong[:n].sum())) if n else Accepted()


@SETTINGS
@given(draw=draws(ties=False), alpha=LEVELS, delta=DELTAS)
def test_by_ranks_starts_below_a_rank_and_climbs(
    draw: Draw, alpha: float, delta: float
) -> None:
    u, wrong = draw
    options = {"alpha": alpha, "delta": delta}
    first = first_accepted(len(u), **options)
    value = -1.0
    if len(set(u.tolist())) == len(u) and first < len(u):
        if shown(u[:first], wrong[:first], 1.0, **options):
            value = climb(draw, u[first:].tolist(), **options)
        assert by_ranks(u, wrong, **options) == counted(draw, value)


@SETTINGS
@given(draw=draws(), alpha=LEVELS, delta=DELTAS)
def test_by_ranks_with_ties_accepts_whole_groups_that_pass(
    draw: Draw, alpha: float, delta: float
) -> None:
    u, wrong = draw
    options = {"alpha": alpha, "delta": delta}
    found = by_ranks(u, wrong, **options)
    assert found == by_ranks(u, wrong, **options)
    first = first_accepted(len(u), **options)
    if first >= len(u) or math.isinf(u[first]):
        assert found == Accepted()
        return
    onwards = sorted({score for score in u.tolist() if u[first] <= score <= 1})
    climbed = counted(draw, climb(draw, onwards, **options))
    if u[0] == u[first]:  # the smallest score is that of the rank: no part is drawn
        assert found == climbed
    else:
        assert found in (climbed, Accepted())


@SETTINGS
@given(draw=draws(), pilot=draws(), alpha=LEVELS, delta=DELTAS)
def test_by_pilot_tests_quantiles_of_the_pilot(
    draw: Draw, pilot: Draw, alpha: float, delta: float
) -> None:
    u, wrong = draw
    options = {"alpha": alpha, "delta": delta}
    scores = pilot[0].tolist()
    m = len(scores)
    scored = [score for score in scores if score <= 1]
    quantiles = {scores[math.ceil(step * m / 50) - 1] for step in range(1, 51)}
    first = first_accepted(len(u), **options)
    # The least score up to which so many are expected, else the largest.
    enough = [
        score
        for place, score in enumerate(scored, start=1)
        if place * len(u) >= first * m
    ]
    start = [*enough, *scored[-1:]][0] if scored else 2.0
    tested = sorted({start, *(score for score in quantiles if start <= score <= 1)})
    value = climb(draw, tested, **options) if scored else -1.0
    found = by_pilot(u, wrong, pilot=pilot[0], **options)
    assert found == (counted(draw, value) if value >= 0 else Accepted())


@SETTINGS
@given(draw=draws(), alpha=LEVELS, delta=DELTAS)
def test_by_approximate_grid_tests_quantiles(
    draw: Draw, alpha: float, delta: float
) -> None:
    u, wrong = draw
    n = len(u)
    options = {"alpha": alpha, "delta": delta}
    grid = [u[math.ceil(step * n / 50) - 1] for step in range(1, 51)]
    first = first_accepted(n, **options)
    tested = [
        score
        for score in sorted({float(score) for score in grid if score <= 1})
        if counted(draw, score).n >= first
    ]
    value = climb(draw, tested, **options)
    assert by_approximate_grid(u, wrong, **options) == counted(draw, value)


@SETTINGS
@given(draw=draws(), alpha=LEVELS)
def test_the_joint_error_takes_the_largest_score_that_keeps_it(
    draw: Draw, alpha: float
) -> None:
    u, wrong = draw
    kept = [
        score
        for score in u.tolist()
        if score <= 1
        and (counted(draw, score).wrong + 1) / (len(u) + 1) <= alpha + 1e-12
    ]
    expected = counted(draw, max(kept, default=-1.0))
    assert by_joint_error(u, wrong, alpha=alpha) == expected


def test_the_joint_error_counts_as_decimals_do() -> None:
    # 0.29 * 100 is 28.999999999999996 in floating point.
    u = np.arange(99) / 99
    found = by_joint_error(u, np.ones(99, dtype=bool), alpha=0.29)
    assert found.wrong == 28


def test_the_joint_error_of_too_few_answers_accepts_none() -> None:
    u, wrong = np.linspace(0, 1, 8), np.zeros(8, dtype=bool)
    assert by_joint_error(u, wrong, alpha=0.1) == Accepted()
    assert by_joint_error(u, wrong, alpha=0.12).n == 8


def test_ends_are_whole_groups_of_ties() -> None:
    u = np.array([0.0, 0.0, 0.2, 0.5, 0.5, np.inf])
    wrong = np.array([True, False, False, True, True, True])
    ends, counts, errors = ends_of(u, wrong)
    assert ends.tolist() == [0.0, 0.2, 0.5]
    assert counts.tolist() == [2, 3, 5]
    assert errors.tolist() == [1, 1, 3]


@pytest.mark.parametrize("search", [by_ranks, by_approximate_grid])
def test_what_cannot_be_scored_is_never_accepted(search: Any) -> None:
    u = np.full(100, np.inf)
    wrong = np.zeros(100, dtype=bool)
    assert search(u, wrong, alpha=0.2, delta=0.1) == Accepted()
    assert by_pilot(u, wrong, pilot=u, alpha=0.2, delta=0.1) == Accepted()
    assert by_joint_error(u, wrong, alpha=0.2) == Accepted()


@pytest.mark.parametrize(
    ("n", "alpha", "first"),
    [(300, 0.2, 33), (100, 0.1, 66), (60, 0.1, 40), (30, 0.1, 22), (5, 0.1, 22)],
)
def test_the_first_test_has_room_for_errors(n: int, alpha: float, first: int) -> None:
    assert first_accepted(n, alpha=alpha, delta=0.1) == first


def test_exploring_shares_delta_among_the_error_rates() -> None:
    rng = np.random.default_rng(3)
    wrong = rng.random(400) < 0.2
    u = np.clip(rng.normal(0.4 + 0.25 * wrong, 0.2), 0, 1)
    order = np.argsort(u)
    alphas = (0.05, 0.1, 0.2, 0.3)
    found = exploratory(u, ~wrong, alphas=alphas)
    assert [one.alpha for one in found] == list(alphas)
    for one in found:
        alone = by_ranks(u[order], wrong[order], alpha=one.alpha, delta=0.1 / 4)
        assert (one.value, one.n_accepted, one.n_wrong) == (
            alone.value,
            alone.n,
            alone.wrong,
        )
        assert one.acceptance == alone.n / 400
    assert found[0].value < found[-1].value


def test_no_error_rates_cost_nothing() -> None:
    assert exploratory([0.1, 0.2], [1, 0], alphas=()) == ()


def test_exploring_checks_what_it_gets() -> None:
    with pytest.raises(InputError, match="no labels"):
        exploratory([], [])
    with pytest.raises(ConfigurationError, match="delta must be above 0"):
        exploratory([0.1], [1], delta=0)
    with pytest.raises(ConfigurationError, match=r"alpha must be .* got 1\.5"):
        exploratory([0.1], [1], alphas=(1.5,))
