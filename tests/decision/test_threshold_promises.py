"""What a threshold with a promise holds and says, and what it refuses to learn from."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snne_guard.decision import Threshold, accept_threshold, threshold_pair
from snne_guard.decision.promises import labels_for_error_rate
from snne_guard.errors import ConfigurationError, InputError

Make = Callable[[Any, Any], Threshold]
INF = math.inf

LABELLED: dict[str, Make] = {
    "error rate": lambda u, c: Threshold.for_error_rate(u, c, alpha=0.2),
    "joint error": lambda u, c: Threshold.for_joint_error(u, c, alpha=0.2),
    "false refusal": lambda u, c: Threshold.for_false_refusal(u, c, beta=0.2),
}
ALL: dict[str, Make] = LABELLED | {
    "coverage": lambda u, _: Threshold.for_coverage(u, accept=0.8),
    "approximate": lambda u, c: Threshold.for_error_rate(
        u, c, alpha=0.2, approximate=True
    ),
    "pilot": lambda u, c: Threshold.for_error_rate(u, c, alpha=0.2, pilot=u),
}
labelled = pytest.mark.parametrize("make", LABELLED.values(), ids=LABELLED)
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL)


def answers(n: int = 200, *, base: float = 0.3, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    wrong = rng.random(n) < base
    return np.clip(rng.normal(0.35 + 0.3 * wrong, 0.15), 0, 1), ~wrong


@every
def test_it_survives_json_whatever_its_status(make: Make) -> None:
    seen = set()
    for u, correct in (answers(), answers(5), (answers()[0] * 0, answers()[1])):
        found = make(u, correct)
        seen.add(found.status)
        stored = json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert Threshold.from_dict(stored) == found
        assert found.statement.endswith(".")
    assert {"certified", "too_few_labels"} <= seen


@labelled
def test_the_counts_are_those_of_the_answers_below_it(make: Make) -> None:
    u, correct = answers()
    found = make(u, correct)
    below = u <= found.value
    assert found.certified
    assert (found.n_labels, found.n_accepted) == (200, below.sum())
    assert found.n_wrong == (below & ~correct).sum()
    assert found.acceptance == below.mean()
    low, high = found.acceptance_interval or (1.0, 0.0)
    assert low < below.mean() < high
    assert (found.labels_needed or 1000) <= 200


@every
def test_the_order_of_the_answers_does_not_matter(make: Make) -> None:
    u, correct = answers()
    u = np.round(u, 1)
    order = np.random.default_rng(1).permutation(len(u))
    assert make(u, correct) == make(u[order], correct[order])


@every
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_what_cannot_be_scored_counts_and_is_never_accepted(
    make: Make, seed: int
) -> None:
    u, correct = answers(seed=seed)
    u[:100] = INF
    found = make(u, correct)
    assert found.value <= 1
    assert found.n_labels == 200
    assert found.n_accepted <= 100


@labelled
@pytest.mark.parametrize(
    ("u", "correct", "message"),
    [
        ([], [], "expected graded answers, got no labels"),
        ([0.1] * 20, [], "got no labels"),
        ([0.1] * 20, [0, 1] * 9, "got 18 labels and 20 uncertainties"),
        ([0.1] * 20, [0, 2] * 10, r"0 \(wrong\) or 1 \(correct\); got 2.0"),
        ([0.1] * 20, [0, None] * 10, "got nan"),
        ([0.1] * 20, ["yes", "no"] * 10, r"labels that are 0 \(wrong\) or 1"),
        ([0.1] * 20, [[0, 1]] * 10, r"shape \(n,\), got \(10, 2\)"),
        ([math.nan] * 20, [0, 1] * 10, "every uncertainty in .* got nan"),
        ([1.5] * 20, [0, 1] * 10, "got 1.5"),
        ([-0.1] * 20, [0, 1] * 10, "got -0.1"),
        ([-INF] * 20, [0, 1] * 10, "got -inf"),
        ([[0.1]] * 20, [0, 1] * 10, r"uncertainty of shape \(n,\), got \(20, 1\)"),
        (["a"] * 20, [0, 1] * 10, "expected uncertainty to be a list of numbers"),
        ([0.1] * 50, [1] * 50, "of both kinds.*all 50 are correct"),
        ([0.1] * 50, [0] * 50, "of both kinds.*all 50 are wrong"),
    ],
)
def test_labels_that_make_no_sense_are_refused(
    make: Make, u: Any, correct: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make(u, correct)


def test_a_coverage_needs_scores() -> None:
    with pytest.raises(InputError, match="at least one value of uncertainty, got none"):
        Threshold.for_coverage([], accept=0.5)
    with pytest.raises(InputError, match="at least one value of pilot"):
        Threshold.for_error_rate(*answers(), alpha=0.1, pilot=[])
    with pytest.raises(InputError, match=r"every pilot in .* got nan"):
        Threshold.for_error_rate(*answers(), alpha=0.1, pilot=[math.nan])


@pytest.mark.parametrize("value", [0, 1, -0.1, 1.1, math.nan, INF, True, "0.1", None])
def test_shares_lie_between_0_and_1(value: Any) -> None:
    u, correct = answers()
    calls: dict[str, Callable[[], object]] = {
        "alpha": lambda: Threshold.for_error_rate(u, correct, alpha=value),
        "delta": lambda: Threshold.for_error_rate(u, correct, alpha=0.1, delta=value),
        "beta": lambda: Threshold.for_false_refusal(u, correct, beta=value),
        "accept": lambda: Threshold.for_coverage(u, accept=value),
    }
    calls["alpha "] = lambda: Threshold.for_joint_error(u, correct, alpha=value)
    for name, call in calls.items():
        with pytest.raises(
            ConfigurationError, match=f"{name.strip()} must be .*above 0"
        ):
            call()


def test_a_pilot_is_exact_so_it_is_not_approximate() -> None:
    u, correct = answers()
    with pytest.raises(ConfigurationError, match="a pilot, which is exact, or approx"):
        Threshold.for_error_rate(u, correct, alpha=0.1, pilot=u, approximate=True)
    found = Threshold.for_error_rate(u, correct, alpha=0.2, approximate=True)
    assert found.approximate
    assert "(approximately)" in found.statement
    assert not Threshold.for_error_rate(u, correct, alpha=0.2, pilot=u).approximate
    assert not Threshold.for_error_rate(u, correct, alpha=0.2).approximate


@pytest.mark.parametrize(("n", "status"), [(9, "too_few_labels"), (22, "infeasible")])
def test_fewer_than_ten_labels_promise_nothing(n: int, status: str) -> None:
    u, correct = np.linspace(0, 1, n), [1, 0, *[1] * (n - 2)]
    found = Threshold.for_error_rate(u, correct, alpha=0.5, delta=0.4)
    assert found.status == ("certified" if n > 9 else status)
    if n == 9:
        assert found.labels_needed == 10
        assert "9 labels are too few" in found.statement
        for make in ALL.values():
            assert make(u, correct).status == status


def test_too_few_labels_say_how_many_there_must_be() -> None:
    u, correct = answers(100)
    found = Threshold.for_error_rate(u, correct, alpha=0.01)
    assert (found.value, found.status, found.labels_needed) == (
        -1.0,
        "too_few_labels",
        231,
    )
    joint = Threshold.for_joint_error(u, correct, alpha=0.005)
    assert (joint.status, joint.labels_needed) == ("too_few_labels", 199)
    refusal = Threshold.for_false_refusal(u, correct, beta=0.01)
    assert refusal.status == "too_few_labels"
    share = correct.mean()
    assert refusal.labels_needed == math.ceil(99 / share)
    cover = Threshold.for_coverage(u, accept=0.995)
    assert (cover.status, cover.labels_needed) == ("too_few_labels", 199)


def test_an_infeasible_error_rate_says_what_would_be_feasible() -> None:
    u, correct = answers(150)
    found = Threshold.for_error_rate(u, correct, alpha=0.05)
    assert (found.value, found.status, found.n_accepted) == (-1.0, "infeasible", 0)
    assert found.acceptance == 0.0
    best = found.best_level
    assert best is not None
    assert Threshold.for_error_rate(u, correct, alpha=best).certified
    assert not Threshold.for_error_rate(u, correct, alpha=best - 0.01).certified
    assert (found.labels_needed or 0) > 150
    assert f"would have allowed is {100 * best:.3g} %" in found.statement
    assert f"about {found.labels_needed} labels" in found.statement


def test_more_labels_do_not_help_below_the_floor() -> None:
    correct = np.arange(300) % 5 > 0  # a fifth wrong, all of them equally certain
    found = Threshold.for_error_rate(np.zeros(300), correct, alpha=0.1)
    assert (found.status, found.labels_needed) == ("infeasible", None)
    assert "even the answers with the smallest u are wrong" in found.statement
    joint = Threshold.for_joint_error(np.zeros(300), correct, alpha=0.1)
    assert (joint.status, joint.labels_needed) == ("infeasible", None)
    assert joint.best_level == pytest.approx(61 / 301)
    assert "would not do" in joint.statement
    nearly = Threshold.for_joint_error(np.zeros(300), correct, alpha=0.202)
    assert nearly.status == "infeasible"
    assert nearly.labels_needed == 399


def test_where_nothing_is_scored_nothing_is_promised() -> None:
    correct = np.arange(100) % 5 > 0
    u = np.full(100, INF)
    found = Threshold.for_error_rate(u, correct, alpha=0.2)
    assert found.best_level is None
    assert "nearest" not in found.statement
    assert Threshold.for_joint_error(u, correct, alpha=0.2).best_level is None
    assert Threshold.for_coverage(u, accept=0.5).best_level is None
    u[:30] = 0.1
    cover = Threshold.for_coverage(u, accept=0.5)
    assert (cover.status, cover.best_level) == ("infeasible", 30 / 101)
    refusal = Threshold.for_false_refusal(u, correct, beta=0.2)
    assert (refusal.status, refusal.value) == ("infeasible", -1.0)
    assert refusal.best_level == pytest.approx(1 - 24 / 81)
    assert "could not be scored" in refusal.statement


def test_labels_for_an_error_rate_shrink_with_the_gap() -> None:
    u, correct = answers(400)
    order = np.argsort(u)
    u, wrong = u[order], ~correct[order]
    needed = [
        labels_for_error_rate(u, wrong, alpha=alpha, delta=0.1) or math.inf
        for alpha in (0.005, 0.05, 0.1, 0.2, 0.6)
    ]
    assert needed == sorted(needed, reverse=True)
    assert needed[0] == INF
    assert needed[-1] < 30


def test_the_pair_keeps_both_promises_and_its_order() -> None:
    u, correct = answers(400)
    accept, refuse = threshold_pair(u, correct, alpha=0.1, beta=0.05, method="snne")
    assert accept == Threshold.for_error_rate(u, correct, alpha=0.1, method="snne")
    assert refuse == Threshold.for_false_refusal(u, correct, beta=0.05, method="snne")
    assert accept_threshold((accept, refuse)) == (accept, refuse.value)
    accept, refuse = threshold_pair(u, correct, alpha=0.28, beta=0.5)
    assert refuse.value == accept.value
    assert refuse.n_wrong == accept.n_wrong
    assert refuse.certified
    assert refuse.level == 0.5


def test_a_limit_that_was_not_certified_refuses_nothing() -> None:
    accept, refuse = threshold_pair(*answers(30), alpha=0.3, beta=0.01)
    assert refuse.status == "too_few_labels"
    assert accept_threshold((accept, refuse)) == (accept, None)
    assert accept_threshold((0.4, refuse)) == (Threshold.fixed(0.4), None)
    assert accept_threshold((accept, 0.9)) == (accept, 0.9)
    with pytest.raises(ConfigurationError, match="accept <= refuse"):
        accept_threshold((Threshold.fixed(0.5), Threshold.fixed(0.4)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "error"}, "kind must be one of .* got 'error'"),
        ({"status": "sure"}, "status must be one of"),
        ({"kind": "coverage"}, 'kind "fixed" has the status "fixed"'),
        ({"status": "certified"}, 'kind "fixed" has the status "fixed"'),
        ({"kind": "coverage", "status": "certified"}, "needs a level"),
        ({"kind": "coverage", "status": "certified", "level": 1.0}, "needs a level"),
        (
            {"kind": "coverage", "status": "infeasible", "level": 0.5},
            "infeasible accepts nothing; got 0.4",
        ),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Threshold(value=0.4, **fields)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": "0.4"}, "another type of value, got '0.4'"),
        ({"value": True}, "another type of value, got True"),
        ({"value": math.nan}, "another type of value, got nan"),
        ({"value": None}, "another type of value"),
        ({"value": 2.0}, "an uncertainty in"),
        ({"kind": "other"}, "another type of kind"),
        ({"kind": ["fixed"]}, "another type of kind"),
        ({"n_labels": 1.5}, "another type of n_labels"),
        ({"sequence": "held"}, "another type of sequence"),
        ({"method": 3}, "another type of method"),
        ({"acceptance_interval": 0.5}, "another type of acceptance_interval"),
        ({"acceptance_interval": [0.5]}, "another type of acceptance_interval"),
        ({"acceptance_interval": [0.5, "a"]}, "another type of acceptance_interval"),
        ({"extra": 1}, "unknown: .'extra'."),
    ],
)
def test_what_was_stored_is_not_trusted(change: dict[str, Any], message: str) -> None:
    stored = Threshold.for_error_rate(*answers(), alpha=0.2).to_dict()
    assert Threshold.from_dict(stored).certified
    with pytest.raises(InputError, match=message):
        Threshold.from_dict(stored | change)


@pytest.mark.parametrize("content", [None, [], "text", 3])
def test_what_is_no_mapping_is_no_threshold(content: Any) -> None:
    with pytest.raises(InputError, match="expected the fields of a Threshold"):
        Threshold.from_dict(content)


def test_a_missing_field_is_named() -> None:
    stored = Threshold.fixed(0.4).to_dict()
    del stored["status"]
    with pytest.raises(InputError, match=r"missing: .'status'."):
        Threshold.from_dict(stored)


def test_a_chosen_one_says_that_it_promises_nothing() -> None:
    assert Threshold.fixed(0.4).statement == (
        "Answers with u <= 0.4 are accepted: a limit that someone chose, which "
        "promises nothing."
    )
    assert not replace(Threshold.fixed(0.4), method="snne").certified


def test_labels_that_would_do_in_another_draw_are_not_called_too_few() -> None:
    # The lowest scores happen to be wrong, so that the first test fails; all in all
    # 8 % of the answers are, which as many labels show as a rule.
    u = [step / 300 for step in range(300)]
    wrong = set(range(0, 40, 2)) | {299, 298, 297, 296}
    correct = [place not in wrong for place in range(300)]
    found = Threshold.for_error_rate(u, correct, alpha=0.15)
    assert found.status == "infeasible"
    assert found.labels_needed is not None
    assert found.labels_needed <= 300
    assert "in about every second draw, and not in this one" in found.statement
