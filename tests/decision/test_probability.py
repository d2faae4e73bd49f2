"""P(wrong) from u: the fit beside a literal one, its limits, its band, its faults."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from snne_guard.decision import ProbabilityMap, fit_probability, probability_maps
from snne_guard.decision.beta_fit import fit_beta
from snne_guard.decision.probability import FEWEST_LABELS
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import FloatArray


def features(u: Any) -> FloatArray:
    """Return ln u, -ln(1 - u) and 1, cut off at 0.02 and 0.98, one by one."""
    rows = []
    for value in u:
        kept = min(max(float(value), 0.02), 0.98)
        rows.append([math.log(kept), -math.log(1 - kept), 1.0])
    return np.array(rows)


def literal_fit(u: Any, correct: Any) -> FloatArray:
    """Return a, b and c by a general optimiser with bounds, from the definition."""
    design, wrong = features(u), 1 - np.asarray(correct, float)

    def loss(weights: FloatArray) -> float:
        odds: FloatArray = design @ weights
        total = float(np.logaddexp(0, np.where(wrong == 1, -odds, odds)).sum())
        ridge = weights[0] ** 2 + weights[1] ** 2 + 1e-6 * weights[2] ** 2
        return float(total + ridge / 2)

    bounds = [(0, None), (0, None), (None, None)]
    found = minimize(
        loss, [0.3, 0.3, 0.0], bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-14}
    )
    return np.asarray(found.x)


def graded(n: int, seed: int, *, slope: float = 1.0) -> tuple[FloatArray, FloatArray]:
    """Return u with ties at both ends, and labels that depend on it."""
    rng = np.random.default_rng(seed)
    u = np.round(rng.random(n), 2)
    u[: n // 8], u[-n // 8 :] = 0.0, 1.0
    return u, (rng.random(n) > 0.1 + 0.8 * u**slope).astype(float)


@pytest.mark.parametrize(
    ("seed", "case"),
    [*((seed, "usual") for seed in range(4)), (5, "falling"), (6, "flat"), (7, "late")],
)
def test_the_fit_is_that_of_a_general_optimiser(seed: int, case: str) -> None:
    u, correct = graded(80, seed, slope=6.0 if case == "late" else 1.0)
    if case == "falling":  # wrong answers have the lower u: no map may say so
        correct = 1 - correct
    if case == "flat":
        correct = (np.arange(80) % 2).astype(np.float64)
    reads = fit_probability(u, correct)
    expected = literal_fit(u, correct)
    assert [reads.a, reads.b, reads.c] == pytest.approx(expected.tolist(), abs=2e-3)
    if case == "falling":
        assert (reads.a, reads.b) == (0.0, 0.0)
        assert reads(0.1)[0] == pytest.approx(1 - correct.mean())


def test_where_nothing_is_held_at_0_it_is_scikit_learns_logistic_regression() -> None:
    u, correct = graded(300, 1)
    reads = fit_probability(u, correct)
    assert min(reads.a, reads.b) > 0.05
    model = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000)
    model.fit(features(u)[:, :2], 1 - correct)
    chances = model.predict_proba(features([0.0, 0.3, 0.9])[:, :2])[:, 1]
    assert [reads(at)[0] for at in (0.0, 0.3, 0.9)] == pytest.approx(
        chances.tolist(), abs=1e-5
    )


def test_many_regressions_at_once_are_each_as_alone() -> None:
    rng = np.random.default_rng(3)
    table = features(np.linspace(0, 1, 20))
    wrong, right = rng.integers(0, 4, (2, 30, 20)).astype(float)
    wrong[0], right[1] = 0.0, 0.0  # one class each
    together = fit_beta(table, wrong=wrong, right=right)
    for place in range(30):
        one = slice(place, place + 1)
        alone = fit_beta(table, wrong=wrong[one], right=right[one])
        assert together[place] == pytest.approx(alone[0], abs=1e-6)
    assert np.isfinite(together).all()
    assert (together[:, :2] >= 0).all()


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_it_never_falls_and_never_says_0_or_1(data: st.DataObject) -> None:
    values = st.sampled_from([0.0, 0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.0])
    labels = st.integers(0, 1)
    size = data.draw(st.integers(FEWEST_LABELS, 70))
    u = data.draw(st.lists(values, min_size=size, max_size=size))
    correct = data.draw(st.lists(labels, min_size=size, max_size=size))
    correct[:2] = [0, 1]
    reads = fit_probability(u, correct)
    grid = [reads(at) for at in np.linspace(0, 1, 201)]
    least = 1 / (size + 2)
    for p, low, high in grid:
        assert least <= low <= p <= high <= 1 - least
    for column in zip(*grid, strict=True):
        assert all(np.diff(column) >= -1e-12)


def test_the_band_is_that_of_draws_with_replacement() -> None:
    u, correct = graded(120, 2)
    reads = fit_probability(u, correct)
    rng = np.random.default_rng(8)
    found = []
    for _ in range(60):
        drawn = rng.integers(0, 120, 120)
        a, b, c = literal_fit(u[drawn], correct[drawn])
        odds = features([0.5])[0] @ [a, b, c]
        found.append(1 / (1 + math.exp(-odds)))
    low, high = np.percentile(found, [5, 95])
    assert reads(0.5)[1:] == pytest.approx((low, high), abs=0.035)


def test_the_band_covers_the_truth_about_nine_times_in_ten() -> None:
    rng = np.random.default_rng(5)
    covered = []
    for seed in range(80):
        u = rng.random(150)
        # The truth is itself a beta calibration.
        odds = 0.9 * np.log(u) - 0.7 * np.log1p(-u) + 0.2
        correct = rng.random(150) > 1 / (1 + np.exp(-odds))
        _, low, high = fit_probability(u, correct, seed=seed)(0.5)
        truth = 1 / (1 + math.exp(-(0.9 * math.log(0.5) + 0.7 * math.log(2) + 0.2)))
        covered.append(low <= truth <= high)
    assert 0.83 <= np.mean(covered) <= 0.97


def test_what_it_says_is_about_as_often_so() -> None:
    u, correct = graded(4000, 11)
    half = slice(0, None, 2), slice(1, None, 2)
    reads = fit_probability(u[half[0]], correct[half[0]])
    said = np.array([reads(each)[0] for each in u[half[1]]])
    wrong = 1 - correct[half[1]]
    for low in np.arange(0.0, 1.0, 0.2):
        inside = (said >= low) & (said < low + 0.2)
        if inside.sum() > 50:
            assert said[inside].mean() == pytest.approx(wrong[inside].mean(), abs=0.07)


def test_it_is_the_same_every_time_and_after_json() -> None:
    u, correct = graded(60, 4)
    reads = fit_probability(u, correct)
    assert fit_probability(u, correct) == reads
    assert fit_probability(u, correct, seed=1) != reads
    order = np.random.default_rng(0).permutation(60)
    shuffled = fit_probability(u[order], correct[order])
    assert shuffled.a == pytest.approx(reads.a, abs=1e-9)
    stored = json.loads(json.dumps(reads.to_dict(), allow_nan=False))
    assert ProbabilityMap.from_dict(stored) == reads
    assert (reads.n_labels, reads.n_wrong) == (60, int(60 - correct.sum()))


def test_answers_without_a_score_are_left_out() -> None:
    u, correct = graded(60, 4)
    more = fit_probability([*u, math.inf, math.inf], [*correct, 0, 1])
    assert more == fit_probability(u, correct)


U, CORRECT = graded(60, 4)


@pytest.mark.parametrize(
    ("u", "correct", "told"),
    [
        ([], [], "no labels"),
        (U[:49], CORRECT[:49], "at least 50 graded answers with a score .* got 49"),
        ([*U[:49], math.inf], CORRECT[:50], "got 49"),
        (U, np.ones(60), "got 60 that are all right"),
        (U, np.zeros(60), "got 60 that are all wrong"),
        ([*U[:59], math.nan], CORRECT, "got nan"),
        ([*U[:59], 1.5], CORRECT, "got 1.5"),
        (U, [*CORRECT[:59], 2], "got 2.0"),
        (U, CORRECT[:59], "59 labels and 60 uncertainties"),
    ],
)
def test_labels_that_teach_nothing_are_refused(u: Any, correct: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        fit_probability(u, correct)


def test_stages_without_labels_enough_have_no_map() -> None:
    found = probability_maps(
        {
            2: (U, np.ones(60)),
            3: (U, CORRECT),
            4: (U[:49], CORRECT[:49]),
            5: (U, np.zeros(60)),
        }
    )
    assert found == {3: fit_probability(U, CORRECT)}
    with pytest.raises(InputError, match="got nan"):
        probability_maps({3: ([math.nan], [1])})


@pytest.mark.parametrize("u", [-0.1, 1.1, math.nan, math.inf])
def test_only_a_u_can_be_read(u: float) -> None:
    with pytest.raises(InputError, match=r"expected u in \[0, 1\]"):
        fit_probability(U, CORRECT)(u)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"a": -0.1}, "a and b of 0 or more"),
        ({"b": math.inf}, "another type of b"),
        ({"n_wrong": 0}, "got 0 wrong of 60"),
        ({"n_wrong": 60}, "got 60 wrong of 60"),
        ({"low": [0.1]}, "a band of 51 steps"),
        ({"low": [0.9] * 51, "high": [0.1] * 51}, "the lower end first"),
        ({"low": [0.0] * 51}, "above 0 and below 1"),
        ({"more": 1}, "unknown: \\['more'\\]"),
    ],
)
def test_what_contradicts_itself_is_refused(changed: dict[str, Any], told: str) -> None:
    content = {**fit_probability(U, CORRECT).to_dict(), **changed}
    with pytest.raises(InputError, match=told):
        ProbabilityMap.from_dict(content)


def test_a_map_is_checked_when_it_is_made_too() -> None:
    with pytest.raises(ConfigurationError, match="all finite"):
        ProbabilityMap(a=math.nan, b=0, c=0, n_labels=2, n_wrong=1, low=(), high=())
