"""P(wrong) from u: the fit beside a general optimiser, its limits, its faults."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from snne_guard.decision import ErrorProbability
from snne_guard.errors import InputError
from snne_guard.types import FloatArray
from tests.decision.support import answers


def oracle(u: Any, correct: Any) -> FloatArray:
    """Return a, b and c by an optimiser with bounds, from the definition."""
    kept = np.clip(np.asarray(u, float), 0.02, 0.98)
    design = np.column_stack([np.log(kept), -np.log(1 - kept), np.ones(len(kept))])
    wrong = 1 - np.asarray(correct, float)

    def loss(weights: FloatArray) -> float:
        odds: FloatArray = design @ weights
        total = float(np.logaddexp(0, np.where(wrong == 1, -odds, odds)).sum())
        return float(total + (weights[0] ** 2 + weights[1] ** 2) / 2)

    bounds = [(0, None), (0, None), (None, None)]
    start = [0.3, 0.3, 0.0]
    found = minimize(
        loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14}
    )
    return np.asarray(found.x)


def fitted(u: Any, correct: Any) -> ErrorProbability:
    found = ErrorProbability.fit(u, correct)
    assert found is not None
    return found


def graded(n: int, seed: int, *, slope: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return u with ties at both ends, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    u = np.round(rng.random(n), 2)
    u[: n // 8], u[-n // 8 :] = 0.0, 1.0
    return u, (rng.random(n) > 0.1 + 0.8 * u**slope).astype(float)


@pytest.mark.parametrize(
    ("seed", "case"),
    [(0, "usual"), (1, "usual"), (5, "falling"), (6, "flat"), (7, "late")],
)
def test_the_fit_is_that_of_a_general_optimiser(seed: int, case: str) -> None:
    u, correct = graded(80, seed, slope=6.0 if case == "late" else 1.0)
    if case == "falling":  # wrong answers have the lower u: no map may say so
        correct = 1 - correct
    if case == "flat":
        correct = (np.arange(80) % 2).astype(np.float64)
    found = fitted(u, correct)
    assert [found.a, found.b, found.c] == pytest.approx(
        oracle(u, correct).tolist(), abs=2e-3
    )
    if case == "falling":
        assert (found.a, found.b) == (0.0, 0.0)
        assert found(0.1) == pytest.approx(1 - correct.mean())


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_it_never_falls_and_never_says_0_or_1(data: st.DataObject) -> None:
    values = st.sampled_from([0.0, 0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.0])
    size = data.draw(st.integers(50, 70))
    u = data.draw(st.lists(values, min_size=size, max_size=size))
    correct = data.draw(st.lists(st.integers(0, 1), min_size=size, max_size=size))
    correct[:2] = [0, 1]
    found = fitted(u, correct)
    grid = [found(float(at)) for at in np.linspace(0, 1, 101)]
    least = 1 / (size + 2)
    assert all(least <= p <= 1 - least for p in grid)
    assert all(np.diff(grid) >= -1e-12)


def test_odds_of_any_size_are_a_probability() -> None:
    for c in (-1e308, 1e308):
        found = ErrorProbability(a=1e308, b=1e308, c=c, n_labels=98)
        assert found(0.0) == 0.01
        assert found(1.0) == 0.99


def test_answers_without_a_score_are_left_out() -> None:
    u, correct = answers(80)
    more = fitted([*u, math.inf], [*correct, True])
    assert more == fitted(u, correct)
    assert more.n_labels == 80


@pytest.mark.parametrize(
    ("u", "correct"),
    [
        ([0.1] * 49, [0, 1] * 24 + [0]),
        ([0.1] * 60 + [math.inf], [1] * 60 + [0]),
    ],
)
def test_too_little_evidence_gives_no_probability(u: Any, correct: Any) -> None:
    assert ErrorProbability.fit(u, correct) is None
    with pytest.raises(InputError):
        ErrorProbability.fit(u, [1] * len(u))
