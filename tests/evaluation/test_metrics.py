from __future__ import annotations

import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from snne_guard.errors import InputError
from snne_guard.evaluation import auarc, auroc, bootstrap, prr, risk_coverage
from tests.scorers.vectors import NEEDS_VECTORS, vectors

U12 = [
    *(-0.6946, -1.7305, -0.8293, 0.6953, -1.3442, -1.2576),
    *(-1.9012, -2.0895, -2.6417, -1.0351, -1.2674, 0.2713),
]
Q12 = [1, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0]

pairs = st.integers(2, 12).flatmap(
    lambda n: st.tuples(
        st.lists(st.integers(0, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 1), min_size=n, max_size=n),
    )
)


def test_literal_numbers_without_ties() -> None:
    assert auroc(U12, Q12) == pytest.approx(0.6285714285714286, abs=1e-12)
    assert auarc(U12, Q12) == pytest.approx(0.6825265643447462, abs=1e-12)
    raw = prr(U12, Q12, normalised=False)
    assert raw == pytest.approx(0.691621572871573, abs=1e-12)
    normalised = prr(U12, Q12, normalised=True)
    assert normalised == pytest.approx(0.36374193418089673, abs=1e-12)
    half = prr(U12, Q12, normalised=False, max_rejection=0.5)
    assert half == pytest.approx(0.630465367965368, abs=1e-12)
    half = prr(U12, Q12, normalised=True, max_rejection=0.5)
    assert half == pytest.approx(0.26368192673820173, abs=1e-12)


@NEEDS_VECTORS
def test_the_reference_vectors() -> None:
    for case in vectors()["eval_metrics"]:
        raw_u, quality = np.array(case["uncertainty"], float), np.array(case["quality"])
        u, q = raw_u[~np.isnan(raw_u)], quality[~np.isnan(raw_u)]
        expected = case["expected"]
        given_auroc = expected["auroc_code(y=1-quality)"]
        if given_auroc == "nan" or isinstance(given_auroc, float):
            assert auroc(u, q) == same(given_auroc), case["id"]
        assert auarc(u, q) == same(expected["auarc_tie_averaged"]), case["id"]
        for share in (1.0, 0.5):
            part = expected[f"maxrej={share}"]
            raw = prr(u, q, normalised=False, max_rejection=share)
            assert raw == same(part["raw_tie_averaged"]), case["id"]
            normalised = prr(u, q, normalised=True, max_rejection=share)
            exact = part["prr_normalised_exact"]
            exact = exact if isinstance(exact, float) else "nan"
            assert normalised == same(exact), case["id"]


def same(value: float | str) -> Any:
    return pytest.approx(float(value), abs=1e-12, nan_ok=True)


def test_infinite_uncertainties_are_ranked() -> None:
    u = [0.1, math.inf, 0.2, -math.inf]
    assert auroc(u, [1, 0, 0, 1]) == 1.0
    assert math.isnan(auarc([0.1], [1]))
    assert auarc([0.1, math.inf, 0.2, 0.9], [1, 0, 1, 0]) == pytest.approx(29 / 36)


@given(pairs)
def test_auroc_agrees_with_scikit_learn(
    pair: tuple[list[int], list[int]],
) -> None:
    u, right = pair
    if len(set(right)) == 1:
        assert math.isnan(auroc(u, right))
        return
    wrong = [1 - one for one in right]
    assert auroc(u, right) == pytest.approx(roc_auc_score(wrong, u), abs=1e-12)


def _in_order(quality: list[float]) -> list[float]:
    return [sum(quality[:k]) / k for k in range(1, len(quality) + 1)]


@pytest.mark.parametrize(
    ("u", "q"),
    [
        ([0, 0, 1, 1, 2], [1, 0, 0.5, 1, 0]),
        ([1, 1, 1, 1, 1], [0.2, 0.9, 0, 1, 0.4]),
        ([3, 1, 2, 0, 1], [1, 1, 0, 0, 0.5]),
    ],
)
def test_ties_are_the_mean_over_all_orders(u: list[float], q: list[float]) -> None:
    orders = [
        [q[at] for at in order]
        for order in permutations(range(len(u)))
        if all(u[a] <= u[b] for a, b in pairwise(order))
    ]
    curves = np.array([_in_order(order) for order in orders])
    areas = (curves[:, 1:] + curves[:, :-1]).mean(axis=1) / 2
    assert auarc(u, q) == pytest.approx(areas.mean(), abs=1e-12)
    low, high = min(q), max(q)
    stretched = (curves.mean(axis=1).mean() - low) / (high - low)
    assert prr(u, q, normalised=False) == pytest.approx(stretched, abs=1e-12)


@given(pairs)
def test_a_perfect_order_has_one_and_the_mean_is_nothing(
    pair: tuple[list[int], list[int]],
) -> None:
    _, q = pair
    if len(set(q)) == 1:
        assert prr(q, q, normalised=False) == 0.5
        assert math.isnan(prr(q, q, normalised=True))
        return
    assert auroc([-one for one in q], q) == 1.0
    assert prr([-one for one in q], q, normalised=True) == pytest.approx(1.0)
    same = [0.0] * len(q)
    assert auroc(same, q) == 0.5
    assert prr(same, q, normalised=True) == pytest.approx(0.0, abs=1e-12)
    assert auarc(same, q) == pytest.approx(sum(q) / len(q))


@pytest.mark.parametrize(
    ("u", "q"),
    [
        ([], []),
        ([0.1, 0.2], [1]),
        ([math.nan, 0.2], [1, 0]),
        ([[0.1], [0.2]], [1, 0]),
        (["a", "b"], [1, 0]),
        ([0.1, 0.2], [1, math.inf]),
        ([0.1, 0.2], [1, math.nan]),
    ],
)
def test_bad_input_is_refused(u: Any, q: Any) -> None:
    for metric in (auroc, auarc, lambda u, q: prr(u, q, normalised=True)):
        with pytest.raises(InputError, match="expected"):
            metric(u, q)


def test_only_zeros_and_ones_are_right_and_wrong() -> None:
    for metric in (auroc, risk_coverage):
        for wrong, says in (
            (0.5, r"expected correct to be 0 \(wrong\) or 1 \(correct\), got 0.5"),
            (math.nan, "expected correct without NaN"),
            ("yes", "expected correct to be real numbers"),
        ):
            with pytest.raises(InputError, match=says):
                metric([0.1, 0.2], [wrong, 1])
    for share in (0, 1.1, math.nan):
        with pytest.raises(InputError, match="max_rejection"):
            prr([1, 2], [0, 1], normalised=True, max_rejection=share)


def test_bootstrap_is_what_a_slow_loop_gives() -> None:
    rng = np.random.default_rng(3)
    q = (rng.random(30) < 0.6).astype(float)
    u = {"a": rng.random(30).round(1), "b": rng.random(30) - q}
    found = bootstrap(u, q, resamples=400, seed=7, metrics=("auroc", "auarc", "prr"))
    again = np.random.default_rng(7)
    slow = [again.integers(30, size=30) for _ in range(400)]
    slow.insert(0, np.arange(30))
    for name, values in u.items():
        expected = [auroc(values[one], q[one]) for one in slow]
        assert found.figures[name]["auroc"] == pytest.approx(expected, abs=1e-12)
        expected = [prr(values[one], q[one], normalised=False) for one in slow]
        assert found.figures[name]["prr"] == pytest.approx(expected, abs=1e-12)
    value, *differences = found.figures["b"]["auarc"] - found.figures["a"]["auarc"]
    interval = found.difference("b", "a", "auarc")
    assert interval.value == value
    assert interval.low == pytest.approx(np.quantile(differences, 0.05))
    assert interval.high == pytest.approx(np.quantile(differences, 0.95))
