"""A plan of rounds: where it ends, what it accepts, and what it holds."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision import Cascade, Threshold
from snne_guard.errors import ConfigurationError, InputError
from snne_guard.types import Score

PROMISE = Threshold(
    value=0.4,
    kind="error_rate",
    status="certified",
    level=0.1,
    delta=0.1,
    n_labels=300,
    n_accepted=150,
    n_wrong=7,
    acceptance=0.5,
    acceptance_interval=(0.45, 0.55),
    method="snne",
)
PLAN = Cascade(
    rounds=(3, 5, 10),
    accept_at_most=(0.1, None, 0.4),
    reject_at_least=(0.9, 0.6),
    promise=PROMISE,
    knob=0.3,
    n_fit=200,
    mean_members=5.5,
    mean_rounds=1.7,
)
NONE = Cascade(
    rounds=(3, 5),
    accept_at_most=(None, None),
    reject_at_least=(0.0,),
    promise=replace(PROMISE, value=-1.0, status="infeasible"),
)
U = st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.5, 0.6, 0.9, 1.0, math.nan, math.inf])


def walked(path: list[float]) -> tuple[int, bool]:
    """Return where the plan ends and whether it accepts, as it is told."""
    for place, u in enumerate(path):
        limit = PLAN.accept_at_most[place]
        if limit is not None and u <= limit:
            return place, True
        if place == len(path) - 1:
            return place, False
        stop = PLAN.reject_at_least[place]
        if stop is not None and stop <= u <= 1:
            return place, False
    raise AssertionError


@given(paths=st.lists(st.lists(U, min_size=3, max_size=3), min_size=1, max_size=30))
def test_it_is_walked_round_by_round(paths: list[list[float]]) -> None:
    ends, accepted = PLAN.replay(paths)
    assert list(zip(ends.tolist(), accepted.tolist(), strict=True)) == [
        walked(path) for path in paths
    ]


def score(u: float | None, n: int, *, method: str = "snne") -> Score:
    return Score(
        value=-1.0, uncertainty=u, n=n, method=method, similarity=None, tau=1.0
    )


@pytest.mark.parametrize(
    ("u", "n", "missing", "enough"),
    [
        (0.1, 3, 7, True),
        (0.11, 3, 7, False),
        (0.9, 3, 7, True),
        (0.0, 5, 5, False),
        (0.6, 5, 5, True),
        (0.0, 10, 0, False),
        (0.0, 4, 6, False),
        (0.0, 3, 6, False),
        (None, 3, 7, False),
    ],
)
def test_it_is_a_rule_for_when_to_stop(
    u: float | None, n: int, missing: int, *, enough: bool
) -> None:
    assert PLAN(score(u, n), missing) is enough


def test_another_method_does_not_stop_it() -> None:
    assert not PLAN(score(0.0, 3, method="wsnne"), 7)
    any_method = replace(PLAN, promise=replace(PROMISE, method=None))
    assert any_method(score(0.0, 3, method="wsnne"), 7)


def test_each_round_has_its_threshold_and_all_have_one_promise() -> None:
    found = [PLAN.threshold(members) for members in (3, 5, 7, 10)]
    assert [one.value for one in found] == [0.1, -1.0, -1.0, 0.4]
    assert {replace(one, value=0.4) for one in found} == {PROMISE}
    assert PLAN.n == 10
    assert PLAN.certified
    assert not NONE.certified


def test_it_says_what_it_promises() -> None:
    assert PLAN.statement == (
        "With a probability of at least 90 % over the draw of the graded questions, at "
        "most 10 % of the accepted answers are wrong, in whichever of the rounds "
        "3, 5, 10 they are accepted: 50 % of the answers, at 5.5 of 10 members on "
        "average (7 wrong of 150 accepted among 300 graded)."
    )
    assert NONE.statement.startswith("Nothing is accepted")


@pytest.mark.parametrize("plan", [PLAN, NONE])
def test_it_survives_json(plan: Cascade) -> None:
    stored = json.loads(json.dumps(plan.to_dict(), allow_nan=False))
    assert Cascade.from_dict(stored) == plan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"promise": None}, "expected the fields of a Threshold"),
        ({"rounds": [3, "5", 10]}, "another type of rounds"),
        ({"rounds": [5, 3, 10]}, "rounds must rise"),
        ({"more": 1}, "unknown: .'more'."),
        ({"accept_at_most": [0.1, None, 0.3]}, "its value that of the last round"),
    ],
)
def test_what_was_stored_is_not_trusted(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Cascade.from_dict(PLAN.to_dict() | change)


@pytest.mark.parametrize("content", [None, {}, []])
def test_what_is_no_cascade_is_refused(content: Any) -> None:
    with pytest.raises(InputError, match="expected a cascade with a promise"):
        Cascade.from_dict(content)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rounds": (10,)}, "rounds must rise"),
        ({"rounds": (1, 5, 10)}, "rounds must rise"),
        ({"accept_at_most": (0.1, 0.4)}, "expected 3 limits .* got 2 and 2"),
        ({"reject_at_least": (0.1,)}, "expected 3 limits .* got 3 and 1"),
        ({"reject_at_least": (0.1, 0.6)}, "limits in order; got 0.1 and 0.1"),
        ({"accept_at_most": (0.1, math.nan, 0.4)}, "limits in order; got nan"),
        ({"promise": NONE.promise}, "certified where something is accepted"),
        ({"accept_at_most": (None,) * 3}, "certified where something is accepted"),
    ],
)
def test_parts_that_contradict_each_other_are_refused(
    fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        replace(PLAN, **fields)


def test_a_plan_that_accepts_nothing_needs_no_second_round() -> None:
    ends, accepted = NONE.replay(np.array([[0.0, 0.0], [0.5, math.nan]]))
    assert ends.tolist() == [0, 0]
    assert not accepted.any()
