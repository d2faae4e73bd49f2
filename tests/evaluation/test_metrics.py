"""AUROC, AUPR and Spearman: literal numbers, bad input, and the ends of the range."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from snne_guard.errors import InputError
from snne_guard.evaluation import (
    auarc,
    aupr,
    aurc,
    auroc,
    e_aurc,
    prr,
    risk_coverage_curve,
    spearman,
)

INF, NAN = math.inf, math.nan


def raw(uncertainty: Any, quality: Any) -> float:
    return prr(uncertainty, quality, normalised=False)


def normalised(uncertainty: Any, quality: Any) -> float:
    return prr(uncertainty, quality, normalised=True)


BINARY = [auroc, aupr, aurc, e_aurc]
ALL: list[Callable[[Any, Any], float]] = [*BINARY, auarc, raw, normalised, spearman]


@pytest.mark.parametrize(
    ("uncertainty", "correct", "expected"),
    [
        ([1, 2, 3, 4], [1, 1, 0, 0], 1.0),
        ([4, 3, 2, 1], [1, 1, 0, 0], 0.0),
        ([1, 3, 2, 4], [1, 1, 0, 0], 0.75),
        ([1, 2, 2, 4], [1, 1, 0, 0], 0.875),  # one tie of a right and a wrong one
        ([5, 5, 5], [1, 0, 0], 0.5),
        ([-INF, 0, INF], [1, 1, 0], 1.0),
        ([INF, INF, 0], [1, 0, 1], 0.75),
        ([0.3, 0.7], [True, False], 1.0),
        ([-0.0, 0.0], [1, 0], 0.5),
    ],
)
def test_auroc(uncertainty: Any, correct: Any, expected: float) -> None:
    assert auroc(uncertainty, correct) == expected


@pytest.mark.parametrize(
    ("uncertainty", "correct", "wrong", "right"),
    [
        ([1, 2, 3, 4], [1, 1, 0, 0], 1.0, 1.0),
        ([1, 2, 3, 4], [0, 0, 1, 1], (1 / 3 + 2 / 4) / 2, (1 / 3 + 2 / 4) / 2),
        ([1, 2, 3, 4], [1, 0, 1, 0], (1 + 2 / 3) / 2, (1 + 2 / 3) / 2),
        ([1, 1, 2], [1, 0, 0], (1 + 2 / 3) / 2, 1 / 2),
        ([7, 7], [1, 0], 0.5, 0.5),
        ([1, 2], [1, 1], NAN, 1.0),
        ([1, 2], [0, 0], 1.0, NAN),
    ],
)
def test_aupr(uncertainty: Any, correct: Any, wrong: float, right: float) -> None:
    assert aupr(uncertainty, correct) == pytest.approx(wrong, nan_ok=True)
    got = aupr(uncertainty, correct, positive="correct")
    assert got == pytest.approx(right, nan_ok=True)


def test_aupr_of_something_else() -> None:
    with pytest.raises(InputError, match="'right'"):
        aupr([1], [1], positive="right")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 2, 3, 4], [10, 20, 20, 90], 3 / math.sqrt(10)),
        ([-INF, 5, INF], [1, 2, 3], 1.0),
        ([1, 2, 3, 4, 5], [2, 1, 4, 3, 5], 0.8),
        ([1, 1, 1], [1, 2, 3], NAN),
        ([1], [2], NAN),
        ([], [], NAN),
    ],
)
def test_spearman(first: Any, second: Any, expected: float) -> None:
    assert spearman(first, second) == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("metric", ALL)
def test_no_question_has_no_metric(metric: Callable[[Any, Any], float]) -> None:
    assert math.isnan(metric([], []))


@pytest.mark.parametrize("one", [0.0, 1.0])
def test_one_question(one: float) -> None:
    assert math.isnan(auroc([3], [one]))
    assert math.isnan(auarc([3], [one]))
    assert math.isnan(normalised([3], [one]))
    assert raw([3], [one]) == 0.5
    assert aurc([3], [one]) == 1 - one
    assert e_aurc([3], [one]) == 0.0


@pytest.mark.parametrize("one", [0.0, 1.0])
def test_one_class(one: float) -> None:
    """All right, or all wrong: nothing can be told apart, and no warning says so."""
    uncertainty, correct = [3, 1, 2, 2, 5, 9, 4], [one] * 7
    assert math.isnan(auroc(uncertainty, correct))
    assert math.isnan(normalised(uncertainty, correct))
    assert raw(uncertainty, correct) == 0.5
    assert auarc(uncertainty, correct) == one
    assert aurc(uncertainty, correct) == 1 - one
    assert e_aurc(uncertainty, correct) == 0.0


@pytest.mark.parametrize("metric", ALL)
@pytest.mark.parametrize(
    ("uncertainty", "correct", "message"),
    [
        ([0.1, NAN], [1, 0], r"without NaN .* at 1"),
        ([0.1, 0.2], [1, NAN], "nan at 1"),
        ([0.1, 0.2, 0.3], [1, 0], "3 and 2"),
        ([[0.1, 0.2]], [1, 0], r"shape \(1, 2\)"),
        (0.5, [1], r"shape \(\)"),
        (["a", "b"], [1, 0], "to be numbers, got list"),
        ([0.1, [0.2]], [1, 0], "to be numbers, got list"),
        ([0.1, None], [1, 0], "without NaN"),
    ],
)
def test_malformed(
    metric: Callable[[Any, Any], float], uncertainty: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        metric(uncertainty, correct)


@pytest.mark.parametrize("metric", [*BINARY, risk_coverage_curve])
@pytest.mark.parametrize("value", [0.5, 2, -1, INF])
def test_neither_right_nor_wrong(metric: Callable[[Any, Any], Any], value: Any) -> None:
    with pytest.raises(InputError, match=f"0 or 1, got {value} at 2"):
        metric([1, 2, 3], [1, 0, value])


@pytest.mark.parametrize("metric", [auarc, raw, normalised])
def test_infinite_quality(metric: Callable[[Any, Any], float]) -> None:
    with pytest.raises(InputError, match="finite, got inf at 0"):
        metric([1, 2, 3], [INF, 0, 1])


@pytest.mark.parametrize("metric", ALL)
def test_the_arrays_of_the_caller_stay_as_they_are(
    metric: Callable[[Any, Any], float],
) -> None:
    uncertainty, correct = np.array([3.0, 1.0, 2.0]), np.array([1, 0, 1])
    uncertainty.flags.writeable = correct.flags.writeable = False
    metric(uncertainty, correct)
    assert uncertainty.tolist() == [3.0, 1.0, 2.0]
