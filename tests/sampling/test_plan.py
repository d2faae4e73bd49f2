"""The settings of drawing: which make sense, and how often a call is sampled."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from snne_guard.errors import ConfigurationError
from snne_guard.sampling import SamplingPlan


def test_the_answer_is_one_of_the_members_unless_told_otherwise() -> None:
    assert SamplingPlan().n_samples == 4
    assert SamplingPlan(n=2).n_samples == 1
    assert SamplingPlan(n=10, include_answer=False).n_samples == 10


def test_rounds_count_members_and_the_answer_is_one_of_them() -> None:
    assert SamplingPlan().sample_rounds == (4,)
    assert SamplingPlan(n=10, rounds=(3, 5, 10)).sample_rounds == (2, 4, 9)
    alone = SamplingPlan(n=10, rounds=(3, 5, 10), include_answer=False)
    assert alone.sample_rounds == (3, 5, 10)


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0},
        {"temperature": 2.5},
        {"schedule": "concurrent"},
        {"schedule": "answer_first"},
        {"timeout": 0.001, "sample_timeout": 3},
        {"sample_max_tokens": 1},
        {"sample_rate": 0},
        {"sample_rate": 1},
        {"max_attempts": 1},
        {"rounds": (5,)},
        {"rounds": [2, 3, 5]},
    ],
)
def test_settings_at_their_limits_are_accepted(options: dict[str, Any]) -> None:
    plan = SamplingPlan(**options)
    assert {name: getattr(plan, name) for name in options} == options


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("n", 1, "a whole number of at least 2; got 1"),
        ("n", 0, "got 0"),
        ("n", True, "got True"),
        ("n", 5.0, "got 5.0"),
        ("n", "5", "got '5'"),
        ("temperature", -0.1, "0 or more; got -0.1"),
        ("temperature", math.nan, "got nan"),
        ("temperature", math.inf, "got inf"),
        ("temperature", False, "got False"),
        ("temperature", None, "got None"),
        ("rounds", (), r"rising from at least 2 to n = 5, such as \(3, 5\), or None"),
        ("rounds", (1, 5), r"got \(1, 5\)"),
        ("rounds", (3, 3, 5), r"got \(3, 3, 5\)"),
        ("rounds", (3, 4), r"got \(3, 4\)"),
        ("rounds", (3, 5.0), r"got \(3, 5.0\)"),
        ("rounds", 5, "got 5"),
        ("rounds", "35", "got '35'"),
        ("schedule", "later", "'concurrent', 'answer_first' or None; got 'later'"),
        ("timeout", 0, "seconds above 0, or None; got 0"),
        ("timeout", math.inf, "got inf"),
        ("timeout", "1", "got '1'"),
        ("sample_timeout", -1, "seconds above 0, or None; got -1"),
        ("sample_max_tokens", 0, "a whole number of at least 1, or None; got 0"),
        ("sample_max_tokens", 1.5, "got 1.5"),
        ("sample_rate", 1.01, r"in \[0, 1\]; got 1.01"),
        ("sample_rate", -0.01, "got -0.01"),
        ("sample_rate", math.nan, "got nan"),
        ("max_attempts", 0, "a whole number of at least 1; got 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    name: str, value: Any, expected: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} must be .*{expected}"):
        SamplingPlan(**{name: value})


def test_all_calls_or_none_are_sampled_at_the_ends() -> None:
    assert all(SamplingPlan(sample_rate=1).wants_samples() for _ in range(100))
    assert not any(SamplingPlan(sample_rate=0).wants_samples() for _ in range(100))


def test_a_share_of_the_calls_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "random", random.Random(1).random)  # noqa: S311 - fixed
    plan = SamplingPlan(sample_rate=0.25)
    assert 200 < sum(plan.wants_samples() for _ in range(1000)) < 300
