"""ECE, Brier and the reliability diagram: literal numbers and bad input."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import Bins, brier, brier_skill, ece, reliability

NAN = math.nan
ANSWERS = st.lists(
    st.tuples(
        st.floats(0, 1) | st.integers(0, 10).map(lambda k: k / 10),
        st.sampled_from([0, 1]),
    ),
    min_size=1,
    max_size=40,
)
KINDS: list[Bins] = ["equal_mass", "equal_width"]


def test_equal_width() -> None:
    probability = [0.0, 0.05, 0.1, 0.3, 0.95, 1.0]
    correct = [1, 1, 0, 0, 0, 0]
    found = reliability(probability, correct, bins="equal_width")
    assert found.counts.tolist() == [3, 1, 2]  # a border belongs to the bin below
    assert found.predicted == pytest.approx([0.05, 0.3, 0.975])
    assert found.observed == pytest.approx([1 / 3, 1, 1])
    expected = 3 / 6 * (1 / 3 - 0.05) + 1 / 6 * 0.7 + 2 / 6 * 0.025
    assert ece(probability, correct, bins="equal_width") == pytest.approx(expected)


def test_equal_mass() -> None:
    probability = [0.1, 0.11, 0.12, 0.13, 0.5, 0.9]
    correct = [1, 1, 1, 0, 1, 0]
    found = reliability(probability, correct, n_bins=3)
    assert found.counts.tolist() == [2, 2, 2]
    assert found.predicted == pytest.approx([0.105, 0.125, 0.7])
    assert found.observed == pytest.approx([0, 0.5, 0.5])
    assert ece(probability, correct, n_bins=3) == pytest.approx(
        (0.105 + 0.375 + 0.2) / 3
    )


def test_equal_probabilities_are_not_parted() -> None:
    found = reliability([0.2] * 7 + [0.6] * 3, [1, 0] * 5, n_bins=5)
    assert found.counts.tolist() == [7, 3]
    assert found.observed == pytest.approx([3 / 7, 2 / 3])


def test_a_group_goes_where_its_middle_is() -> None:
    """Six of ten end in the second half, and have their middle in the first."""
    found = reliability([0.2] * 6 + [0.3] + [0.6] * 3, [1, 0] * 5, n_bins=2)
    assert found.counts.tolist() == [6, 4]


def test_intervals_of_the_observed_share() -> None:
    found = reliability([0.5] * 10, [1] * 7 + [0] * 3)
    expected = binomtest(3, 10).proportion_ci(method="wilson")
    assert found.low[0] == pytest.approx(expected.low)
    assert found.high[0] == pytest.approx(expected.high)


@given(answers=ANSWERS, n_bins=st.integers(1, 12))
def test_equal_width_is_that_of_scikit_learn(
    answers: list[tuple[float, int]], n_bins: int
) -> None:
    probability, correct = map(np.array, zip(*answers, strict=True))
    found = reliability(probability, correct, n_bins=n_bins, bins="equal_width")
    observed, predicted = calibration_curve(1 - correct, probability, n_bins=n_bins)
    assert found.observed == pytest.approx(observed)
    assert found.predicted == pytest.approx(predicted)


@given(answers=ANSWERS)
def test_brier_is_that_of_scikit_learn(answers: list[tuple[float, int]]) -> None:
    probability, correct = map(np.array, zip(*answers, strict=True))
    wrong = 1 - correct
    score = brier(probability, correct)
    if len(set(wrong)) == 2:
        assert score == pytest.approx(brier_score_loss(wrong, probability))
        base = brier(np.full(len(wrong), wrong.mean()), correct)
        assert brier_skill(probability, correct) == pytest.approx(1 - score / base)
    else:
        assert math.isnan(brier_skill(probability, correct))


@given(answers=ANSWERS, seed=st.integers(0, 99), bins=st.sampled_from(KINDS))
def test_the_order_of_the_answers_never_matters(
    answers: list[tuple[float, int]], seed: int, bins: Bins
) -> None:
    probability, correct = map(np.array, zip(*answers, strict=True))
    order = np.random.default_rng(seed).permutation(len(answers))
    for metric in (brier, brier_skill, lambda p, c: ece(p, c, bins=bins)):
        got, there = (
            metric(probability[order], correct[order]),
            metric(probability, correct),
        )
        np.testing.assert_equal(got, there)


@given(answers=ANSWERS, bins=st.sampled_from(KINDS), n_bins=st.integers(1, 60))
def test_bounds(answers: list[tuple[float, int]], bins: Bins, n_bins: int) -> None:
    probability, correct = map(np.array, zip(*answers, strict=True))
    found = reliability(probability, correct, bins=bins, n_bins=n_bins)
    assert found.counts.sum() == len(answers)
    assert found.counts.min() > 0
    assert (np.diff(found.predicted) > 0).all()
    assert (found.low <= found.observed + 1e-12).all()
    assert (found.high >= found.observed - 1e-12).all()
    error = ece(probability, correct, bins=bins, n_bins=n_bins)
    assert 0 <= error <= 1
    one_bin = abs(probability.mean() - (1 - correct).mean())
    assert error >= one_bin - 1e-12


def test_true_probabilities() -> None:
    assert ece([0.0, 1.0, 1.0], [1, 0, 0]) == 0.0
    assert brier([0.0, 1.0, 1.0], [1, 0, 0]) == 0.0
    assert brier_skill([0.0, 1.0, 1.0], [1, 0, 0]) == 1.0


def test_nothing_at_all() -> None:
    assert math.isnan(ece([], []))
    assert math.isnan(brier([], []))
    assert math.isnan(brier_skill([], []))
    assert reliability([], []).counts.size == 0


@pytest.mark.parametrize("metric", [ece, brier, brier_skill, reliability])
@pytest.mark.parametrize(
    ("probability", "correct", "message"),
    [
        ([0.1, 1.2], [1, 0], r"in \[0, 1\], got 1.2 at 1"),
        ([-0.5, 0.2], [1, 0], "got -0.5 at 0"),
        ([NAN], [1], "got nan at 0"),
        ([0.1], [0.5], "0 or 1"),
        ([0.1, 0.2], [1], "2 and 1"),
    ],
)
def test_no_probability(
    metric: Callable[[Any, Any], Any], probability: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        metric(probability, correct)


@pytest.mark.parametrize("options", [{"n_bins": 0}, {"bins": "quantile"}])
@pytest.mark.parametrize("function", [ece, reliability])
def test_bins_that_make_no_sense(function: Callable[..., Any], options: Any) -> None:
    with pytest.raises(ConfigurationError, match="n_bins >= 1"):
        function([0.5], [1], **options)
