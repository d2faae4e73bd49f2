"""What counts as a threshold, and what does not."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from snne_guard.decision import Threshold, accept_threshold
from snne_guard.errors import ConfigurationError


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0, -1.0])
def test_a_threshold_is_an_uncertainty_or_accepts_nothing(value: float) -> None:
    assert Threshold(value=value).value == value


@pytest.mark.parametrize(
    "value", [-0.001, 1.001, -2.0, math.nan, math.inf, -math.inf, 1e300]
)
def test_anything_else_is_no_threshold(value: float) -> None:
    with pytest.raises(ConfigurationError, match=r"\[0, 1\], or -1.0 to accept"):
        Threshold(value=value)


def test_a_chosen_threshold_promises_nothing() -> None:
    assert Threshold.fixed(1) == Threshold(value=1.0)
    assert type(Threshold.fixed(1).value) is float


@pytest.mark.parametrize(
    ("given_value", "accept", "refuse"),
    [
        (None, None, None),
        (0.3, 0.3, None),
        (1, 1.0, None),
        (0, 0.0, None),
        (-1, -1.0, None),
        ((0.3, 0.7), 0.3, 0.7),
        ([0.3, 0.7], 0.3, 0.7),
        ((0.5, 0.5), 0.5, 0.5),
        ((-1, 0.5), -1.0, 0.5),
    ],
)
def test_what_a_user_gives_is_split_into_two_limits(
    given_value: Any, accept: float | None, refuse: float | None
) -> None:
    found, above = accept_threshold(given_value)
    assert (None if found is None else found.value) == accept
    assert above == refuse


def test_a_threshold_object_passes_as_it_is() -> None:
    certified = Threshold(
        value=0.2, kind="error_rate", status="certified", level=0.1, method="wsnne"
    )
    assert accept_threshold(certified) == (certified, None)
    assert accept_threshold(certified)[0] is certified


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0.5", "threshold must be a number in .*; got '0.5'"),
        (True, "got True"),
        ({0.1, 0.2}, "threshold must be a number"),
        ((), "got 0 values"),
        ((0.1,), "got 1 values"),
        ((0.1, 0.2, 0.3), "got 3 values"),
        ((0.7, 0.3), r"accept <= refuse; got \(0.7, 0.3\)"),
        ((0.1, 1.5), "got 1.5"),
        ((0.1, None), "got None"),
        ((False, 0.5), "got False"),
        (2, "got 2.0"),
        (math.nan, "got nan"),
    ],
)
def test_what_is_no_threshold_is_refused(value: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        accept_threshold(value)


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_pair_is_accepted_in_order_only(first: float, second: float) -> None:
    low, high = sorted((first, second))
    found, above = accept_threshold((low, high))
    assert found is not None
    assert (found.value, above) == (low, high)
    if low < high:
        with pytest.raises(ConfigurationError):
            accept_threshold((high, low))


def test_a_promise_for_an_error_rate_is_kept_in_what_is_stored() -> None:
    u = [step / 200 for step in range(200)]
    found = Threshold.for_error_rate(u, [score < 0.5 for score in u], alpha=0.1)
    assert found.certified
    assert "at most 10 % of the accepted answers are wrong" in found.statement
    assert Threshold.from_dict(json.loads(json.dumps(found.to_dict()))) == found
