from __future__ import annotations

from typing import Any

import pytest

from snne_guard.sampling.clock import Clock


@pytest.mark.parametrize(
    ("limits", "remaining", "patience"),
    [
        ({}, None, None),
        ({"timeout": 1300}, 300, 300),
        ({"timeout": 500}, 0, 0),
        ({"sample_timeout": 1500}, None, 500),
        ({"timeout": 1300, "sample_timeout": 1500}, 300, 300),
        ({"timeout": 1700, "sample_timeout": 1500}, 700, 500),
    ],
)
def test_what_is_left_after_a_thousand_seconds(
    limits: dict[str, Any], remaining: float | None, patience: float | None
) -> None:
    clock = Clock(**limits)
    clock.started -= 1000
    assert clock.elapsed == pytest.approx(1000, abs=50)
    for found, expected in (
        (clock.remaining(), remaining),
        (clock.patience(), patience),
    ):
        assert (found is None) is (expected is None)
        assert expected is None or found == pytest.approx(expected, abs=50)


def test_the_samples_own_limit_begins_with_the_samples() -> None:
    clock = Clock(timeout=5000, sample_timeout=1500)
    clock.started -= 2000
    assert clock.patience() == 0
    clock.begin_samples()
    assert clock.patience() == pytest.approx(1500, abs=50)
    assert clock.remaining() == pytest.approx(3000, abs=50)
