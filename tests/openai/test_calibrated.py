"""A calibration holds for the model and the settings that it was made for."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard import ConfigurationError
from snne_guard.openai import guard_client
from tests.openai.guarded import PATHS, guarded
from tests.support.calibrations import calibration
from tests.support.openai_clients import WAYS
from tests.support.openai_server import always

CALIBRATION = calibration(model="test-model", answer_temperature=0.0, max_tokens=9)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("path", "limit"),
    [(PATHS[0], "max_completion_tokens"), (PATHS[1], "max_output_tokens")],
)
def test_it_holds_for_requests_like_the_graded_ones(
    path: str, limit: str, way: str
) -> None:
    alike: dict[str, Any] = {"temperature": 0, limit: 9}
    others: list[dict[str, Any]] = [
        {**alike, "model": "other"},
        {**alike, "temperature": 0.5},
        {**alike, limit: 10},
        {limit: 9},
    ]
    with guarded(always("Paris"), way, calibration=CALIBRATION) as (_, call):
        assert call(path, **alike).snne_guard["decision"] == "accept"
        for other in others:
            record = call(path, **other).snne_guard
            found = (record["uncertainty"], record["decision"], record["reasons"])
            assert found == (0.0, "flag", ["uncalibrated"])


def test_a_guard_with_other_settings_refuses_to_start() -> None:
    with (
        openai.OpenAI(api_key="x") as own,
        pytest.raises(ConfigurationError, match="n=5, here n=6"),
    ):
        guard_client(own, calibration=CALIBRATION, n=6)
