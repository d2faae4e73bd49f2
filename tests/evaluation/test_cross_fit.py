"""Probabilities that are learnt from other questions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from snne_guard.errors import ConfigurationError, InputError
from snne_guard.evaluation import auroc, brier_skill, cross_fitted, ece

PAIRS = st.lists(
    st.tuples(st.integers(-5, 5).map(float), st.sampled_from([0.0, 1.0])),
    min_size=2,
    max_size=40,
)


def questions(n: int, *, seed: int = 0) -> tuple[Any, Any]:
    """Return uncertainties, and labels whose chance of being wrong is the same."""
    generator = np.random.default_rng(seed)
    uncertainty = generator.random(n)
    return uncertainty, (generator.random(n) >= uncertainty).astype(float)


def test_the_probabilities_are_true() -> None:
    uncertainty, correct = questions(4000)
    got = cross_fitted(uncertainty, correct)
    assert np.abs(got - uncertainty).mean() < 0.05
    assert ece(got, correct) < 0.03
    assert brier_skill(got, correct) > 0.25


def test_noise_gets_the_share_of_wrong_answers_and_no_skill() -> None:
    """A fit that had seen the label of its own question would seem to have some."""
    generator = np.random.default_rng(2)
    correct = (generator.random(500) < 0.7).astype(float)
    got = cross_fitted(generator.random(500), correct)
    assert got.mean() == pytest.approx(0.3, abs=0.02)
    assert brier_skill(got, correct) < 0.02


@given(
    correct=st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=40),
    place=st.integers(0, 39),
    seed=st.integers(0, 99),
)
@settings(max_examples=50)
def test_no_question_maps_itself(correct: list[float], place: int, seed: int) -> None:
    place %= len(correct)
    uncertainty = np.random.default_rng(seed).permutation(len(correct)) * 1.0
    other = list(correct)
    other[place] = 1 - other[place]
    before = cross_fitted(uncertainty, correct)
    after = cross_fitted(uncertainty, other)
    assert after[place] == before[place]


@given(pairs=PAIRS, n_folds=st.integers(2, 12))
@settings(max_examples=30)
def test_each_fold_has_the_isotonic_fit_of_the_others(
    pairs: list[tuple[float, float]], n_folds: int
) -> None:
    uncertainty, correct = map(np.array, zip(*pairs, strict=True))
    got = cross_fitted(uncertainty, correct, n_folds=n_folds)
    by_rank = sorted(range(len(pairs)), key=lambda i: (uncertainty[i], correct[i]))
    for rank, i in enumerate(by_rank):
        others = [
            j
            for other, j in enumerate(by_rank)
            if other % n_folds != rank % n_folds or len(pairs) == 1
        ]
        known = uncertainty[others]
        least = 1 / (len(others) + 2)
        model = IsotonicRegression(out_of_bounds="clip").fit(known, 1 - correct[others])
        below, above = known[known <= uncertainty[i]], known[known >= uncertainty[i]]
        ends = [
            float(model.predict([side])[0])
            for side in (
                below.max() if len(below) else known.min(),
                above.min() if len(above) else known.max(),
            )
        ]
        expected = min(max(sum(ends) / 2, least), 1 - least)
        assert got[i] == pytest.approx(expected)


@given(pairs=PAIRS, seed=st.integers(0, 99))
@settings(max_examples=50)
def test_neither_order_nor_scale_of_the_input_matters(
    pairs: list[tuple[float, float]], seed: int
) -> None:
    uncertainty, correct = map(np.array, zip(*pairs, strict=True))
    got = cross_fitted(uncertainty, correct)
    order = np.random.default_rng(seed).permutation(len(pairs))
    again = cross_fitted(np.exp(uncertainty[order]), correct[order])
    # Answers of equal uncertainty and label may change places.
    for key in set(pairs):
        here = np.array([one == key for one in pairs])
        assert sorted(got[here]) == sorted(again[here[order]])
    assert ((got > 0) & (got < 1)).all()


def test_infinite_uncertainties_are_ranked() -> None:
    correct = [1, 1, 1, 0, 1, 0, 0, 0]
    finite = cross_fitted([1, 2, 3, 4, 5, 6, 7, 8], correct)
    infinite = cross_fitted([-math.inf, 2, 3, 4, 5, 6, 7, math.inf], correct)
    np.testing.assert_array_equal(finite, infinite)


def test_one_class_is_never_certain() -> None:
    got = cross_fitted([1, 2, 3, 4], [1, 1, 1, 1])
    assert got.tolist() == pytest.approx([1 / 5] * 4)
    assert math.isnan(auroc(got, [1, 1, 1, 1]))


def test_fewer_than_two() -> None:
    with pytest.raises(InputError, match="at least 2 questions, got 1"):
        cross_fitted([1.0], [1])
    with pytest.raises(ConfigurationError, match="n_folds >= 2, got 1"):
        cross_fitted([1.0, 2.0], [1, 0], n_folds=1)


def test_malformed() -> None:
    with pytest.raises(InputError, match="without NaN"):
        cross_fitted([1.0, math.nan], [1, 0])
