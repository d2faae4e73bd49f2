"""A logistic regression on several methods, as one method."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from snne_guard import score
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.scorers import COMBINED, METHODS, Combination, fit_combination
from snne_guard.scorers.combination import part_values
from snne_guard.types import MethodInputs

ANSWERS = ["Paris", "It is Paris", "Lyon", "Paris"]


def combination(**changes: Any) -> Combination:
    parts: dict[str, Any] = {
        "parts": COMBINED,
        "coefficients": (2.0, 3.0),
        "intercept": -1.5,
        "ranges": ((0.0, 1.0), (0.0, 1.0)),
    }
    return Combination(**(parts | changes))


def test_it_is_the_logistic_function_of_the_uncertainties() -> None:
    found = score(ANSWERS, method=combination(), similarity="rouge_l")
    spread, far = (
        score(ANSWERS, method=part, similarity="rouge_l").uncertainty or 0.0
        for part in COMBINED
    )
    odds = -1.5 + 2 * spread + 3 * far
    assert found.value == pytest.approx(1 / (1 + math.exp(-odds)), abs=1e-12)
    assert found.uncertainty == found.value
    assert found.method == "calibrated(snne,anchored_snne)"


def test_a_part_without_limits_gives_its_value() -> None:
    parts = ("snne", "answer_length")
    both = combination(
        parts=parts, coefficients=(0.0, 0.1), ranges=((0.0, 1.0), (0.0, 50.0))
    )
    length = score(ANSWERS, method="answer_length").value
    odds = -1.5 + 0.1 * length
    found = score(ANSWERS, method=both).value
    assert found == pytest.approx(1 / (1 + math.exp(-odds)), abs=1e-12)


def test_nothing_is_read_from_beyond_what_was_seen() -> None:
    alike, apart = ["Paris"] * 4, ["Paris", "Lyon", "Rome", "Bern"]
    narrow = combination(ranges=((0.4, 0.6), (0.4, 0.6)))
    low = score(alike, method=narrow).value
    high = score(apart, method=narrow).value
    assert low == pytest.approx(1 / (1 + math.exp(1.5 - 5 * 0.4)), abs=1e-12)
    assert high == pytest.approx(1 / (1 + math.exp(1.5 - 5 * 0.6)), abs=1e-12)


def test_a_certainty_is_never_told() -> None:
    sure = combination(coefficients=(2000.0, 0.0), intercept=-1000.0)
    assert score(["Paris"] * 3, method=sure).value == 1e-9
    assert score(["Paris", "Lyon", "Rome"], method=sure).value == 1 - 1e-9


def test_it_has_what_a_method_has() -> None:
    found = combination()
    assert found.bounds(5) == (0.0, 1.0)
    assert found.needs == {"similarity", "main_similarity"}
    assert found.default_similarity == "content_f1"
    assert found.anchors
    assert not found.white_box
    assert combination(parts=("snne", "wsnne")).white_box
    assert not combination(parts=("deg", "lex_sim")).anchors
    assert METHODS["anchored_snne"].source in found.source
    assert found.uncertainty(0.3, 2) == 0.3
    assert found.uncertainty(0.3, 1) is None
    with pytest.raises(InputError, match=r"in \[0, 1\], got 1.5"):
        found.uncertainty(1.5, 3)


def test_one_member_or_a_part_without_u_is_the_worst() -> None:
    alone = score(["Paris"], method=combination(), include_answer=True)
    assert alone.uncertainty is None
    inputs = MethodInputs(similarity=np.eye(1), main_similarity=np.ones(0))
    assert part_values(("snne",), inputs) is None
    only = combination(parts=("snne",), coefficients=(1.0,), ranges=((0.0, 1.0),))
    assert only.compute(inputs) == 1.0


def test_nan_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = np.full((2, 2), np.nan)
    inputs = MethodInputs(similarity=broken, main_answer="Paris")
    monkeypatch.setattr(
        "snne_guard.scorers.combination.METHODS", {"own": _Nan(), **METHODS}
    )
    with pytest.raises(InputError, match="expected a number from method 'own'"):
        part_values(("own",), inputs)


class _Nan:
    limits = None

    def compute(self, inputs: MethodInputs) -> float:
        del inputs
        return math.nan


@given(
    rows=st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()),
        min_size=6,
        max_size=60,
    ).filter(lambda rows: 0 < sum(right for *_, right in rows) < len(rows)),
    ridge=st.sampled_from([0.1, 1.0, 10.0]),
)
def test_the_fit_is_that_of_scikit_learn(
    rows: list[tuple[float, float, bool]], ridge: float
) -> None:
    values = np.array([row[:2] for row in rows])
    right = np.array([row[2] for row in rows])
    found = fit_combination(values, right, ridge=ridge)
    # A spread that is mere rounding has no direction to compare.
    spread = values.std(axis=0)
    if ((spread > 0) & (spread < 1e-6)).any():
        return
    scale = np.where(spread == 0, 1.0, spread)
    theirs = LogisticRegression(C=1 / ridge, tol=1e-12, max_iter=10_000)
    theirs.fit((values - values.mean(axis=0)) / scale, ~right)
    odds = found.intercept + values @ np.array(found.coefficients)
    expected = theirs.decision_function((values - values.mean(axis=0)) / scale)
    np.testing.assert_allclose(odds, expected, atol=1e-4)


def test_a_fit_far_from_its_start_converges() -> None:
    # All but one are wrong, and the one is at the end: the slope at the start is small.
    values = np.linspace(0, 1, 400)[:, None] ** 8
    right = np.zeros(400)
    right[0] = 1
    found = fit_combination(values, right, parts=("snne",), ridge=1e-6)
    odds = found.intercept + values @ np.array(found.coefficients)
    chances = 1 / (1 + np.exp(-odds))
    # At the least loss the free intercept makes the mean chance the share of wrong.
    assert chances.mean() == pytest.approx(399 / 400, abs=1e-9)


def test_a_constant_part_says_nothing() -> None:
    values = [[0.5, 0.1], [0.5, 0.2], [0.5, 0.8], [0.5, 0.9]]
    found = fit_combination(values, [1, 1, 0, 0])
    assert found.coefficients[0] == 0
    assert found.coefficients[1] > 0
    assert found.ranges == ((0.5, 0.5), (0.1, 0.9))
    assert found.n_labels == 4


def test_it_survives_json() -> None:
    found = fit_combination([[0.1, 0.3], [0.2, 0.2], [0.7, 0.9]], [1, 1, 0])
    assert Combination.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parts": ["snne"]}, "expected a combination's fields"),
        ({**combination().to_dict(), "more": 1}, "expected a combination's fields"),
        ({**combination().to_dict(), "ranges": 3}, "expected a combination's numbers"),
        (
            {**combination().to_dict(), "intercept": "x"},
            "expected a combination's numbers",
        ),
    ],
)
def test_fields_of_another_kind_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Combination.from_dict(fields)


@pytest.mark.parametrize(
    "changes",
    [
        {"parts": ("snne", "nothing")},
        {"parts": ("snne", "snne")},
        {"parts": ()},
        {"coefficients": (1.0,)},
        {"intercept": math.nan},
        {"ranges": ((0.0, math.inf), (0.0, 1.0))},
    ],
)
def test_parts_that_contradict_each_other_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        combination(**changes)
    with pytest.raises(ConfigurationError, match="expected"):
        Combination.from_dict({**combination().to_dict(), **changes})


@pytest.mark.parametrize(
    ("values", "correct", "message"),
    [
        ([[0.1, 0.2]], [1], "both among them"),
        ([[0.1, 0.2], [0.1, 0.3]], [1, 1], "both among them"),
        ([[0.1, 0.2], [0.1, 0.3]], [1, 2], "expected labels 0 and 1"),
        ([[0.1, 0.2], [0.1, 0.3]], [1, 0, 1], "a label for each"),
        ([[0.1], [0.2]], [1, 0], r"shape \(answers, 2\)"),
        ([0.1, 0.2], [1, 0], r"shape \(answers, 2\)"),
        ([[0.1, math.nan], [0.1, 0.3]], [1, 0], "finite"),
        ([["a", "b"]], [1], "tables of numbers"),
    ],
)
def test_what_nothing_can_be_learnt_from(
    values: Sequence[Any], correct: Sequence[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        fit_combination(values, correct)


@pytest.mark.parametrize(
    "options", [{"ridge": 0}, {"ridge": math.nan}, {"parts": ("snne", "none")}]
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="expected"):
        fit_combination([[0.1, 0.2], [0.2, 0.3]], [1, 0], **options)
