"""AUARC, PRR, AURC and E-AURC: literal numbers, and what equal values do."""

from __future__ import annotations

import math
from typing import Any

import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import auarc, aurc, e_aurc, prr, risk_coverage_curve

SIX = [1, 2, 3, 4, 5, 6]
NAN = math.nan


def test_perfect_order() -> None:
    right = [1, 1, 1, 0, 0, 0]
    means = [1, 1, 1, 3 / 4, 3 / 5, 3 / 6]
    trapezoids = sum(means) - (means[0] + means[-1]) / 2
    assert auarc(SIX, right) == pytest.approx(trapezoids / 5)
    assert auarc(SIX, right) == pytest.approx(0.82)
    assert prr(SIX, right, normalised=False) == pytest.approx(sum(means) / 6)
    assert prr(SIX, right, normalised=True) == pytest.approx(1.0)
    assert aurc(SIX, right) == pytest.approx(1 - sum(means) / 6)
    assert e_aurc(SIX, right) == 0.0


def test_worst_order() -> None:
    right = [0, 0, 0, 1, 1, 1]
    means = [0, 0, 0, 1 / 4, 2 / 5, 3 / 6]
    best = [1, 1, 1, 3 / 4, 3 / 5, 3 / 6]
    assert aurc(SIX, right) == pytest.approx(1 - sum(means) / 6)
    assert e_aurc(SIX, right) == pytest.approx((sum(best) - sum(means)) / 6)
    assert prr(SIX, right, normalised=True) == pytest.approx(
        (sum(means) / 6 - 0.5) / (sum(best) / 6 - 0.5)
    )


@pytest.mark.parametrize("correct", [[1, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0]])
def test_all_tied_is_the_base_rate_in_any_order(correct: list[int]) -> None:
    """The authors' code gives 0.639 or 0.194, as the input happens to stand."""
    ones = [1.0, 1.0, 1.0, 1.0]
    assert auarc(ones, correct) == 0.5
    assert prr(ones, correct, normalised=False) == 0.5
    assert prr(ones, correct, normalised=True) == 0.0
    assert aurc(ones, correct) == 0.5
    assert e_aurc(ones, correct) == pytest.approx(0.5 - (0 + 0 + 1 / 3 + 1 / 2) / 4)


def test_quality_between() -> None:
    uncertainty, quality = [1, 2, 3], [10.0, 30.0, 20.0]
    means = [10, 20, 20]
    assert auarc(uncertainty, quality) == pytest.approx((15 + 20) / 2)
    stretched = (sum(means) / 3 - 10) / 20
    assert prr(uncertainty, quality, normalised=False) == pytest.approx(stretched)
    oracle = (30 + 25 + 20) / 3
    assert prr(uncertainty, quality, normalised=True) == pytest.approx(
        (sum(means) / 3 - 20) / (oracle - 20)
    )


@pytest.mark.parametrize(
    ("max_rejection", "taken"),
    [(1.0, 6), (0.99, 5), (0.5, 3), (0.34, 2), (0.3, 1), (0.01, 1)],
)
def test_max_rejection_is_rounded_down(max_rejection: float, taken: int) -> None:
    right = [1, 1, 0, 1, 0, 0]
    means = [1, 1, 2 / 3, 3 / 4, 3 / 5, 3 / 6]
    got = prr(SIX, right, normalised=False, max_rejection=max_rejection)
    assert got == pytest.approx(sum(means[-taken:]) / taken)


@pytest.mark.parametrize(
    ("quality", "max_rejection"),
    [([0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 1.0), ([1, 1, 0, 1, 0, 0], 0.2)],
)
def test_no_room_between_random_and_best(quality: Any, max_rejection: float) -> None:
    got = prr(SIX, quality, normalised=True, max_rejection=max_rejection)
    assert math.isnan(got)


@pytest.mark.parametrize("max_rejection", [0.0, -0.5, 1.01, NAN])
def test_no_share_of_answers(max_rejection: float) -> None:
    with pytest.raises(InputError, match=r"max_rejection in \(0, 1\]"):
        prr(SIX, SIX, normalised=False, max_rejection=max_rejection)


def test_the_curve() -> None:
    coverage, risk = risk_coverage_curve([0.9, 0.4, 0.1, 0.4], [0, 0, 1, 1])
    assert coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert risk == pytest.approx([0, 0.5 / 2, 1 / 3, 2 / 4])


def test_the_curve_of_nothing() -> None:
    coverage, risk = risk_coverage_curve([], [])
    assert (coverage.shape, risk.shape) == ((0,), (0,))


def test_the_mean_of_the_curve_is_the_area() -> None:
    uncertainty, right = [3, 1, 2, 2, 5, 1, 2], [1, 0, 1, 1, 0, 1, 0]
    _, risk = risk_coverage_curve(uncertainty, right)
    assert aurc(uncertainty, right) == pytest.approx(risk.mean())
