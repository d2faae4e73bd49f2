"""A guard that starts from a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from snne_guard import ConfigurationError, SNNEGuard
from tests.langchain.support import chat_openai, metadata_of
from tests.support.calibrations import calibration
from tests.support.openai_server import Server, always

MADE: dict[str, Any] = {
    "model": "test-model",
    "n": 3,
    "temperature": 0.8,
    "similarity": "rouge_l",
    "anchor": 0.0,
    "answer_temperature": None,
    "max_tokens": 50,
}
"""Settings that are not the default ones."""


def test_a_guard_starts_from_its_calibration(tmp_path: Path) -> None:
    path = tmp_path / "guard.json"
    made = calibration(**MADE)
    made.save(path)
    with Server(always()) as server:
        model = chat_openai(server, max_completion_tokens=50)
        for source in (made, path, str(path)):
            guard = SNNEGuard(model, calibration=source, on_uncertain="refuse")
            record = metadata_of(guard.invoke("Where?"))
            assert (record["decision"], record["threshold"]) == ("accept", 0.4)
            assert (record["n_requested"], record["method"]) == (3, "snne")
            assert record["reasons"] == []
        assert {asked.body["temperature"] for asked in server.samples} == {0.8}


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"model": "another"}, {}, "model"),
        ({}, {"n": 4}, r"\bn\b"),
        ({"answer_temperature": 0.3}, {}, "answer_temperature"),
        ({}, {"threshold": 0.2}, "either threshold or calibration"),
    ],
)
def test_a_guard_that_differs_from_its_calibration_does_not_start(
    changes: Any, options: Any, message: str
) -> None:
    with Server(always()) as server:
        model = chat_openai(server, max_completion_tokens=50)
        made = calibration(**MADE | changes)
        with pytest.raises(ConfigurationError, match=message):
            SNNEGuard.from_calibration(model, made, **options)
