"""ROC and precision-recall curves: literal points, scikit-learn, and the areas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from snne_guard.errors import InputError
from snne_guard.evaluation import aupr, auroc, precision_recall_curve, roc_curve

PAIRS = st.lists(
    st.tuples(
        st.integers(-3, 3).map(float) | st.floats(-9, 9), st.sampled_from([0, 1])
    ),
    min_size=2,
    max_size=40,
).filter(lambda pairs: len({label for _, label in pairs}) == 2)
Pairs = list[tuple[float, int]]


def test_roc() -> None:
    false_positives, true_positives = roc_curve(
        [0.1, 0.2, 0.4, 0.4, 0.4, 0.9, math.inf], [1, 1, 1, 1, 0, 0, 0]
    )
    assert false_positives.tolist() == [0, 0, 2 / 4, 1]
    assert true_positives.tolist() == [0, 2 / 3, 1, 1]


@given(pairs=PAIRS)
def test_roc_goes_through_points_of_scikit_learn(pairs: Pairs) -> None:
    uncertainty, correct = map(np.array, zip(*pairs, strict=True))
    got = roc_curve(uncertainty, correct)
    theirs = sklearn.roc_curve(1 - correct, uncertainty, drop_intermediate=False)
    points = {(round(x, 9), round(y, 9)) for x, y in zip(*theirs[:2], strict=True)}
    assert {(round(x, 9), round(y, 9)) for x, y in zip(*got, strict=True)} <= points
    x, y = got
    area = float(np.diff(x) @ (y[1:] + y[:-1]) / 2)
    assert area == pytest.approx(auroc(uncertainty, correct))


@given(pairs=PAIRS)
def test_precision_and_recall_are_those_of_scikit_learn(pairs: Pairs) -> None:
    uncertainty, correct = map(np.array, zip(*pairs, strict=True))
    recall, precision = precision_recall_curve(uncertainty, correct)
    p, r, _ = sklearn.precision_recall_curve(1 - correct, uncertainty)
    assert precision == pytest.approx(p[::-1][1:])
    assert recall == pytest.approx(r[::-1][1:])
    steps = float(np.diff(recall, prepend=0.0) @ precision)
    assert steps == pytest.approx(aupr(uncertainty, correct))
    recall, precision = precision_recall_curve(uncertainty, correct, positive="correct")
    steps = float(np.diff(recall, prepend=0.0) @ precision)
    assert steps == pytest.approx(aupr(uncertainty, correct, positive="correct"))


def test_one_class() -> None:
    false_positives, true_positives = roc_curve([1, 2], [1, 1])
    assert false_positives.tolist() == [0, 1]
    assert np.isnan(true_positives).all()
    recall, precision = precision_recall_curve([1, 2], [1, 1])
    assert np.isnan(recall).all()
    assert precision.tolist() == [0, 0]


@pytest.mark.parametrize("curve", [roc_curve, precision_recall_curve])
def test_nothing(curve: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    x, y = curve([], [])
    assert (x.size, y.size) == (0, 0)


def test_malformed() -> None:
    with pytest.raises(InputError, match="0 or 1"):
        roc_curve([1, 2], [1, 0.5])
    with pytest.raises(InputError, match='"wrong" or "correct"'):
        precision_recall_curve([1], [1], positive="both")  # type: ignore[arg-type]
