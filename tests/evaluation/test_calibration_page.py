"""What the page about a calibration says of its chart."""

from __future__ import annotations

import html
from typing import Any

import pytest

from snne_guard.evaluation.calibrating.calibrate import run_calibration
from snne_guard.evaluation.calibrating.promise import Promise
from snne_guard.evaluation.reporting.calibration import calibration_html
from tests.support.calibrating import recordings

ASKED = "The rate that was asked for is dotted."
CHOSEN = "The upright line ends at the chosen threshold."
NONE = "There is no chosen threshold, since nothing may be accepted."
BELOW = "The promise is a bound, so that lies below what was asked for."
CHANCE = "Where the curve lies below it, so few answers may be so by chance."


@pytest.mark.parametrize(
    ("count", "promise", "said"),
    [
        (300, {"error_rate": 0.15}, {ASKED, CHOSEN, BELOW}),
        (20, {"error_rate": 0.15}, {ASKED, NONE, CHANCE}),
        (300, {"coverage": 0.5}, {CHOSEN}),
        (20, {"joint_error": 0.01}, {NONE}),
    ],
)
def test_its_caption_is_of_what_is_drawn(
    count: int, promise: dict[str, Any], said: set[str]
) -> None:
    run = run_calibration(recordings(count), Promise(**promise))
    page = html.unescape(calibration_html(run))
    assert {one for one in (ASKED, CHOSEN, NONE, BELOW, CHANCE) if one in page} == said
    assert ("chosen threshold</li>" in page) is (CHOSEN in said)
