"""What a threshold holds and says, and what it refuses to be made from."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

from snne_guard.decision import Threshold
from snne_guard.errors import ConfigurationError, InputError, MissingExtraError
from tests.decision.support import answers
from tests.support.calibrations import CERTIFIED


def test_a_chosen_limit_guarantees_nothing() -> None:
    found = Threshold.fixed(0.4)
    assert (found.value, found.status, found.certified) == (0.4, "fixed", False)
    assert found.statement == (
        "Answers with u <= 0.4 are accepted: a limit that someone chose, which "
        "guarantees nothing."
    )


def test_a_certified_one_counts_the_answers_below_it() -> None:
    u, correct = answers()
    found = Threshold.for_error_rate(u, correct, alpha=0.2)
    below = u <= found.value
    assert found.certified
    assert (found.n_labels, found.n_accepted) == (200, below.sum())
    assert found.n_wrong == (below & ~correct).sum()
    assert f"({100 * below.mean():.3g}%)" in found.statement
    assert found.n_wrong / found.n_accepted < 0.2


def test_the_statements_are_sentences_with_numbers() -> None:
    assert CERTIFIED.statement == (
        "With 90% confidence, at most 10% of the accepted answers are wrong. Answers "
        "with u <= 0.4 are accepted: 120 of the 300 graded ones (40%), of which 5 "
        "were wrong."
    )
    few = Threshold.for_error_rate(*answers(100), alpha=0.01)
    assert (few.status, few.value, few.labels_needed) == ("too_few_labels", -1.0, 231)
    assert few.statement == (
        "Nothing is accepted: 100 labels are too few to guarantee an error rate of 1%. "
        "Grade at least 231 answers."
    )


def test_an_infeasible_rate_says_what_would_be_feasible() -> None:
    u, correct = answers(150)
    found = Threshold.for_error_rate(u, correct, alpha=0.05)
    assert (found.status, found.value, found.n_accepted) == ("infeasible", -1.0, 0)
    best = found.best_alpha
    assert best is not None
    assert Threshold.for_error_rate(u, correct, alpha=best).certified
    assert not Threshold.for_error_rate(u, correct, alpha=best - 0.01).certified
    assert f"They would have allowed {100 * best:.3g}%" in found.statement


def test_the_order_of_the_answers_does_not_matter() -> None:
    u, correct = answers()
    u = np.round(u, 1)
    order = np.random.default_rng(1).permutation(len(u))
    found = Threshold.for_error_rate(u, correct, alpha=0.2)
    assert found == Threshold.for_error_rate(u[order], correct[order], alpha=0.2)


def test_answers_without_a_score_count_and_are_not_accepted() -> None:
    u, correct = answers()
    u[:100] = math.inf
    found = Threshold.for_error_rate(u, correct, alpha=0.25)
    assert found.certified
    assert found.value <= 1
    assert found.n_labels == 200
    assert found.n_accepted <= 100


def test_a_coverage_is_the_smallest_u_that_accepts_the_share() -> None:
    u = [0.5, 0.1, 0.3, 0.3, 0.9]
    found = [Threshold.for_coverage(u, share) for share in (0.2, 0.21, 0.6, 0.61)]
    assert [one.value for one in found] == [0.1, 0.3, 0.3, 0.5]
    assert [one.n_accepted for one in found] == [1, 3, 3, 4]
    assert not found[0].certified
    assert found[0].statement == (
        "Answers with u <= 0.1 are accepted, 20% of the 5 given. Nothing is "
        "guaranteed about errors."
    )
    with pytest.raises(InputError, match=r"scores for 80\.0% .* got 50\.0%"):
        Threshold.for_coverage([0.1, math.inf], 0.8)


@pytest.mark.parametrize(
    ("u", "correct", "message"),
    [
        ([], [], "at least one value of uncertainty"),
        ([0.1] * 20, [0, 1] * 9, "got 18 labels and 20 uncertainties"),
        (
            [0.1] * 20,
            [0, 2] * 10,
            r"expected correct to be 0 \(wrong\) or 1 \(correct\), got 2.0",
        ),
        ([math.nan] * 20, [0, 1] * 10, "expected uncertainty without NaN, got nan"),
        ([0.1] * 20, ["right"] * 20, "expected correct to be real numbers"),
        ([-0.1] * 20, [0, 1] * 10, r"expected uncertainty in \[0, 1\], or inf"),
        ([[0.1]] * 20, [0, 1] * 10, r"shape \(n,\), got \(20, 1\)"),
        ([0.1] * 50, [1] * 50, "of both kinds.*all 50 are correct"),
    ],
)
def test_labels_that_make_no_sense_are_refused(
    u: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Threshold.for_error_rate(u, correct, alpha=0.2)


@pytest.mark.parametrize("value", [0, 1, math.nan])
def test_shares_lie_between_0_and_1(value: float) -> None:
    u, correct = answers()
    for options in ({"alpha": value}, {"alpha": 0.1, "delta": value}):
        with pytest.raises(ConfigurationError):
            Threshold.for_error_rate(u, correct, **options)
    with pytest.raises(ConfigurationError):
        Threshold.for_coverage(u, value)
    with pytest.raises(ConfigurationError):
        Threshold.fixed(value + 1.5)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"status": "infeasible"}, r"accepts nothing; got 0\.4"),
        ({"status": "certified"}, "alpha to be .* got None"),
        ({"status": "certified", "alpha": 0.1}, "delta to be .* got None"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Threshold(value=0.4, **fields)


def test_making_one_without_scipy_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingExtraError, match=r"scipy is .*snne-guard\[eval\]"):
        Threshold.for_error_rate(*answers(), alpha=0.1)
