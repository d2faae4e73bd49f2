"""The test on audited answers: against a literal one, and its promise, exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision.audit import _ODDS, audit_evidence
from snne_guard.errors import InputError


@given(
    wrong=st.lists(st.booleans(), max_size=30),
    alpha=st.sampled_from([0.01, 0.1, 0.5, 0.9]),
)
def test_it_is_the_literal_mixture_of_bets(wrong: list[bool], alpha: float) -> None:
    total = 0.0
    for weight, times in _ODDS:
        bet = (times - 1) / (1 + (times - 1) * alpha)
        total += weight * math.prod(1 + bet * (w - alpha) for w in wrong)
    found = audit_evidence(len(wrong), sum(wrong), alpha=alpha)
    assert found == pytest.approx(total)


@pytest.mark.parametrize("alpha", [0.02, 0.1, 0.5])
def test_nobody_can_expect_to_gain_while_the_promise_holds(alpha: float) -> None:
    def expected(rate: float, n: int) -> float:
        return sum(
            math.comb(n, k)
            * rate**k
            * (1 - rate) ** (n - k)
            * audit_evidence(n, k, alpha=alpha)
            for k in range(n + 1)
        )

    assert sum(weight for weight, _ in _ODDS) == pytest.approx(1.0)
    for n in (1, 7, 25):
        assert expected(alpha, n) == pytest.approx(1.0)
        assert expected(alpha / 2, n) < 1.0
        assert expected(min(1.5 * alpha, 0.99), n) > 1.0


def _alarms(rate: float, *, alpha: float, level: float, runs: int) -> list[int]:
    """Return after how many answers the alarm came, in the runs in which it did."""
    rng = np.random.default_rng(11)
    wrong = (rng.random((runs, 500)) < rate).cumsum(axis=1)
    limit = [  # how many wrong ones of n make an alarm; evidence only rises with them
        next(
            (k for k in range(n + 1) if audit_evidence(n, k, alpha=alpha) * level >= 1),
            n + 1,
        )
        for n in range(1, 501)
    ]
    reached = wrong >= np.array(limit)
    return [int(row.argmax()) + 1 for row in reached if row.any()]


def test_false_alarms_are_rare_and_a_broken_promise_is_found() -> None:
    false = len(_alarms(0.1, alpha=0.1, level=0.05, runs=1500)) / 1500
    assert false <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / 1500)
    found = _alarms(0.3, alpha=0.1, level=0.05, runs=200)
    assert len(found) == 200
    assert np.median(found) <= 30


def test_evidence_of_very_many_wrong_answers_is_beyond_a_float() -> None:
    assert audit_evidence(10_000, 10_000, alpha=0.01) == math.inf
    assert audit_evidence(1_000_000, 0, alpha=0.1) == 0.0


@pytest.mark.parametrize(
    ("reported", "wrong", "alpha"),
    [(1, 2, 0.1), (1, -1, 0.1), (1, 1, 0.0), (1, 1, 1.0), (1, 1, math.nan)],
)
def test_what_makes_no_sense_is_refused(
    reported: int, wrong: int, alpha: float
) -> None:
    with pytest.raises(InputError, match="expected 0 <= wrong <= reported"):
        audit_evidence(reported, wrong, alpha=alpha)
