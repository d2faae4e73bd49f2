"""Whether uncertainties still come from where the calibration was made."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from snne_guard.decision import drift
from snne_guard.errors import InputError
from tests.decision.support import answers
from tests.support.calibrations import calibration

REFERENCE = tuple(answers(300)[0].tolist())


def test_harder_questions_are_seen() -> None:
    made = calibration(reference=REFERENCE)
    found = drift(made, answers(200, base=0.7, seed=1)[0])
    assert found.drifted
    assert found.p_value < 1e-6
    assert found.n == 200
    assert found.mean > found.mean_reference + 0.05
    assert found.accepted < found.accepted_reference
    assert found.statement.startswith("The uncertainties have changed: mean u 0.5")
    assert "calibrate again" in found.statement


def test_questions_of_the_same_kind_are_let_pass() -> None:
    found = drift(calibration(reference=REFERENCE), answers(200, seed=2)[0])
    assert not found.drifted
    assert found.statement.startswith("No change was found")


def test_the_figures_are_those_of_hand() -> None:
    made = calibration(reference=(0.0, 0.2, 0.4, 0.6))
    found = drift(made, [0.4, 0.5, math.inf])
    assert found.n == 2
    assert (found.mean_reference, found.mean) == pytest.approx((0.3, 0.45))
    assert (found.accepted_reference, found.accepted) == (0.75, 0.5)


def test_a_calibration_may_be_named_by_its_path(tmp_path: Path) -> None:
    made, u = calibration(reference=REFERENCE), answers(200, seed=2)[0]
    made.save(tmp_path / "guard.json")
    assert drift(str(tmp_path / "guard.json"), u) == drift(made, u)


@pytest.mark.parametrize(
    ("reference", "u", "message"),
    [
        ((), [0.5], "a reference in the calibration"),
        ((0.5,), [math.inf], "a scored answer"),
    ],
)
def test_nothing_to_compare_is_refused(
    reference: tuple[float, ...], u: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        drift(calibration(reference=reference), u)
