"""A calibrated guard whose provider does not take the temperature of the samples."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard import SNNEGuard
from snne_guard.decision import Calibration
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, Reply, Request, chat_openai
from tests.support.guarding import AGREE, WAYS, ask, is_sample, record, split

QUESTION = "What is the capital of France?"
UNSUPPORTED = {
    "error": {
        "message": "Unsupported value: 'temperature' does not support 1.0.",
        "type": "invalid_request_error",
        "param": "temperature",
        "code": "unsupported_value",
    }
}


def refusing(request: Request) -> Reply:
    if is_sample(request):
        return Reply(status=400, body=UNSUPPORTED)
    return Reply(texts=["Paris"])


def found(script: Any, made: Calibration, way: str = "invoke", **options: Any) -> Any:
    with ChatServer(script) as server:
        guard = SNNEGuard.from_calibration(chat_openai(server), made, **options)
        told = [record(ask(guard, QUESTION, way)) for _ in range(2)]
    [first, second] = [
        (one["decision"], one["certified"], one["reasons"]) for one in told
    ]
    assert first == second
    return first


@pytest.mark.parametrize("way", WAYS)
def test_samples_at_the_provider_s_own_temperature_count_as_uncertain(way: str) -> None:
    reasons = ["temperature_unset", "uncalibrated_temperature"]
    assert found(refusing, calibration(), way) == ("flag", False, reasons)


def test_where_the_graded_answers_were_drawn_so_too_they_are_covered() -> None:
    made = calibration(temperature_unset=True)
    assert found(refusing, made) == ("accept", True, ["temperature_unset"])
    taken = found(split("Paris", AGREE), made)
    assert taken == ("flag", False, ["uncalibrated_temperature"])


def test_who_allows_a_mismatch_allows_this_one() -> None:
    reasons = ["temperature_unset", "uncalibrated_temperature"]
    allowed = found(refusing, calibration(), allow_mismatch=True)
    assert allowed == ("accept", False, reasons)
