"""Metrics against their definitions and scikit-learn, on any data."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

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
from tests.support import metric_oracles as oracle

FEW = st.integers(-3, 3).map(float)  # ties everywhere
MANY = st.floats(-1e6, 1e6, allow_subnormal=False)
SCORES = FEW | MANY
BINARY = st.lists(
    st.tuples(SCORES, st.sampled_from([0.0, 1.0])), min_size=2, max_size=30
)
GRADED = st.lists(
    st.tuples(FEW | MANY, st.integers(0, 8).map(lambda k: k / 8)),
    min_size=2,
    max_size=25,
)
Pairs = list[tuple[float, float]]


def split(pairs: Pairs) -> tuple[Any, Any]:
    uncertainty, quality = zip(*pairs, strict=True)
    return np.array(uncertainty), np.array(quality)


def both_classes(correct: Any) -> bool:
    return bool(0 < correct.sum() < len(correct))


def close(value: object, *, tolerance: float = 1e-12) -> Any:
    expected = math.nan if value is None else float(value)  # type: ignore[arg-type]
    return pytest.approx(expected, abs=tolerance, nan_ok=True)


@given(pairs=BINARY)
def test_auroc_is_the_share_of_pairs(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    got = auroc(uncertainty, correct)
    assert got == close(oracle.auroc(uncertainty, correct), tolerance=0)
    if both_classes(correct):
        assert got == close(roc_auc_score(1 - correct, uncertainty))


@given(pairs=BINARY)
def test_aupr_is_that_of_scikit_learn(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    if not both_classes(correct):
        return
    wrong = average_precision_score(1 - correct, uncertainty)
    right = average_precision_score(correct, -uncertainty)
    assert aupr(uncertainty, correct) == close(wrong)
    assert aupr(uncertainty, correct, positive="correct") == close(right)


@given(pairs=GRADED)
def test_spearman_is_that_of_scipy(pairs: Pairs) -> None:
    first, second = split(pairs)
    if len(set(first)) > 1 and len(set(second)) > 1:
        expected = spearmanr(first, second).statistic
        assert spearman(first, second) == close(expected)


@given(pairs=GRADED)
def test_areas_are_their_definitions(pairs: Pairs) -> None:
    uncertainty, quality = split(pairs)
    assert auarc(uncertainty, quality) == close(oracle.auarc(uncertainty, quality))
    for rejection in (1.0, 0.5, 0.25):
        for normalised, literal in (
            (False, oracle.raw_prr),
            (True, oracle.normalised_prr),
        ):
            got = prr(
                uncertainty, quality, normalised=normalised, max_rejection=rejection
            )
            assert got == close(literal(uncertainty, quality, rejection))


@given(pairs=BINARY)
def test_risk_is_one_less_the_share_of_right_ones(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    means = oracle.prefix_means(uncertainty, correct)
    best = oracle.prefix_means(-correct, correct)
    _, risk = risk_coverage_curve(uncertainty, correct)
    assert risk.tolist() == pytest.approx([float(1 - mean) for mean in means])
    assert aurc(uncertainty, correct) == close(1 - sum(means) / len(means))
    excess = (sum(best) - sum(means)) / len(means)
    assert e_aurc(uncertainty, correct) == close(excess)


@given(pairs=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=6))
def test_the_group_mean_is_the_mean_over_all_orders(
    pairs: list[tuple[int, int]],
) -> None:
    uncertainty = [float(u) for u, _ in pairs]
    quality = [float(q) for _, q in pairs]
    assert oracle.prefix_means(uncertainty, quality) == oracle.mean_over_orders(
        uncertainty, quality
    )


def every_metric(uncertainty: Any, correct: Any) -> list[float]:
    return [
        auroc(uncertainty, correct),
        aupr(uncertainty, correct),
        aupr(uncertainty, correct, positive="correct"),
        auarc(uncertainty, correct),
        prr(uncertainty, correct, normalised=False),
        prr(uncertainty, correct, normalised=True),
        prr(uncertainty, correct, normalised=True, max_rejection=0.5),
        aurc(uncertainty, correct),
        e_aurc(uncertainty, correct),
        spearman(uncertainty, correct),
    ]


@given(pairs=BINARY, seed=st.integers(0, 1000))
def test_the_order_of_the_questions_never_matters(pairs: Pairs, seed: int) -> None:
    """Not one bit of the result changes."""
    uncertainty, correct = split(pairs)
    order = np.random.default_rng(seed).permutation(len(pairs))
    got = every_metric(uncertainty[order], correct[order])
    np.testing.assert_array_equal(got, every_metric(uncertainty, correct))


@given(pairs=GRADED, seed=st.integers(0, 1000))
def test_nor_does_it_for_graded_quality(pairs: Pairs, seed: int) -> None:
    uncertainty, quality = split(pairs)
    order = np.random.default_rng(seed).permutation(len(pairs))
    assert auarc(uncertainty[order], quality[order]) == auarc(uncertainty, quality)


@given(
    pairs=st.lists(
        st.tuples(st.integers(-20, 20).map(float), st.sampled_from([0.0, 1.0])),
        min_size=2,
        max_size=30,
    )
)
def test_only_the_ranks_matter(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    expected = every_metric(uncertainty, correct)
    for other in (uncertainty * 3 - 7, np.exp(uncertainty), uncertainty**3):
        np.testing.assert_array_equal(every_metric(other, correct), expected)
    infinite = np.where(uncertainty == uncertainty.max(), math.inf, uncertainty)
    np.testing.assert_array_equal(every_metric(infinite, correct), expected)


@given(pairs=BINARY)
def test_reversed(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    assert auroc(-uncertainty, correct) == close(1 - auroc(uncertainty, correct))
    assert auroc(uncertainty, 1 - correct) == close(1 - auroc(uncertainty, correct))
    assert spearman(-uncertainty, correct) == close(-spearman(uncertainty, correct))


@given(pairs=BINARY)
def test_bounds(pairs: Pairs) -> None:
    uncertainty, correct = split(pairs)
    slack = 1e-12
    for value in every_metric(uncertainty, correct)[:5]:
        assert math.isnan(value) or -slack <= value <= 1 + slack
    best = aurc(-correct, correct)
    assert best - slack <= aurc(uncertainty, correct) <= 1
    ratio = prr(uncertainty, correct, normalised=True)
    assert math.isnan(ratio) or ratio <= 1 + slack
    rho = spearman(uncertainty, correct)
    assert math.isnan(rho) or -1 <= rho <= 1
