"""The martingale on scores: against a literal one, and by simulation."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision.drift import _BETS, BINS, DriftTest, _factor
from snne_guard.errors import InputError

_STEPS = st.integers(0, BINS - 1).map(lambda step: step / BINS)
_CHANCES = st.floats(0.0, 1.0, exclude_max=True)


def literal(
    reference: list[float], scores: list[float], chances: list[float]
) -> list[float]:
    """Return the capital after each score, each starting time on its own."""
    known, wealth = sorted(reference), []
    factors: list[list[float]] = []  # of each score, for each bet
    for score, chance in zip(scores, chances, strict=True):
        insort(known, score)
        above = len(known) - bisect_right(known, score)
        ties = bisect_right(known, score) - bisect_left(known, score)
        p_value = (above + chance * ties) / len(known)
        factors.append([_factor(bet, p_value) for bet in _BETS])
        kept = [1 / (1 + math.log1p(n / 300)) for n in range(len(factors) + 1)]
        wealth.append(
            kept[-1]
            + sum(
                (kept[start] - kept[start + 1])
                * bet.share
                * math.prod(row[place] for row in factors[start:])
                for start in range(len(factors))
                for place, bet in enumerate(_BETS)
            )
        )
    return wealth


@given(
    reference=st.lists(_STEPS, max_size=8),
    given_=st.lists(st.tuples(_STEPS, _CHANCES), min_size=1, max_size=8),
)
def test_it_is_the_literal_martingale(
    reference: list[float], given_: list[tuple[float, float]]
) -> None:
    scores, chances = [u for u, _ in given_], [chance for _, chance in given_]
    test, found = DriftTest.after(reference), []
    for score, chance in given_:
        test.add(score, chance)
        found.append(test.value)
    assert found == pytest.approx(literal(reference, scores, chances))
    assert sum(test.counts) == len(reference) + len(scores)


def test_a_bet_on_a_uniform_p_value_brings_nothing_in_expectation() -> None:
    grid = (np.arange(20_000) + 0.5) / 20_000
    for bet in _BETS:
        mean = np.mean([_factor(bet, p_value) for p_value in grid])
        assert mean == pytest.approx(1.0, abs=1e-6)
    assert sum(Fraction(bet.share).limit_denominator(1000) for bet in _BETS) == 1


def test_nothing_has_happened_before_the_first_score() -> None:
    assert DriftTest().value == 1.0
    assert DriftTest.after([0.0, 1.0, 1.0]).value == 1.0
    assert DriftTest.after([0.0, 1.0, 1.0]).n_reference == 3


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -0.01, 1.01])
def test_what_is_no_uncertainty_is_refused_and_not_counted(wrong: float) -> None:
    test = DriftTest.after([0.5])
    with pytest.raises(InputError, match=r"a number in \[0, 1\]; got"):
        test.add(wrong, 0.5)
    with pytest.raises(InputError):
        DriftTest.after([wrong])
    assert (sum(test.counts), test.n_scores, test.value) == (1, 0, 1.0)


def _reach(rng: np.random.Generator, scores: np.ndarray, reference: int) -> float:
    test = DriftTest.after(scores[:reference].tolist())
    most = 1.0
    for score in scores[reference:].tolist():
        test.add(score, rng.random())
        most = max(most, test.value)
    return most


@pytest.mark.parametrize("ties", [False, True])
def test_false_alarms_are_as_rare_as_promised(ties: bool) -> None:
    rng = np.random.default_rng(7)
    most = []
    for _ in range(150):
        scores = rng.beta(1.3, 1.3, 250)
        if ties:  # five values, most scores the same
            scores = np.round(scores**3 * 4) / 4
        most.append(_reach(rng, scores, 50))
    for level in (0.1, 0.3):
        alarms = np.mean(np.array(most) >= 1 / level)
        assert alarms <= level + 2 * math.sqrt(level * (1 - level) / 150)


@pytest.mark.parametrize(
    ("after", "words"),
    [
        (lambda u: 0.5 + u / 2, "higher than before"),
        (lambda u: u / 2, "lower than before"),
        (lambda u: 0.3 + 0.4 * u, "closer to the middle than before"),
        (lambda u: u / 5 if u < 0.5 else 1 - (1 - u) / 5, "further from the middle"),
    ],
)
def test_a_change_is_found_and_named(after: object, words: str) -> None:
    rng = np.random.default_rng(3)
    test = DriftTest.after(rng.random(500).tolist())
    for u in rng.random(300).tolist():
        test.add(u, rng.random())
    assert test.value < 20
    for u in rng.random(300).tolist():
        test.add(after(u), rng.random())  # type: ignore[operator]
    assert test.value > 20
    assert words in test.words


def test_scores_that_are_all_the_same_are_no_evidence() -> None:
    rng = np.random.default_rng(5)
    assert _reach(rng, np.zeros(600), 100) < 20


def test_it_is_stable_after_a_million_scores() -> None:
    test = DriftTest(counts=[1000] * BINS, n_scores=1000 * BINS)
    quiet = test.value
    assert 0.1 < quiet < 1.0
    before = 0
    while test.value < 20:
        test.add(0.95, 0.5)
        before += 1
    assert before < 60
    assert all(0.0 <= capital < math.inf for capital in test.capital)
    for _ in range(2000):  # a capital that has lost all is as good as nothing
        test.add(0.05, 0.5)
    assert math.isfinite(test.value)
