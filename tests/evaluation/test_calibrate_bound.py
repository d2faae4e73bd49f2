"""What a calibration of recordings is bound to: how they were drawn and scored."""

from __future__ import annotations

from typing import Any

import pytest

from snne_guard.decision.bound_settings import ANSWER_SETTINGS
from snne_guard.evaluation import calibrate, run_calibration
from snne_guard.evaluation.calibrating.promise import Promise
from tests.support.calibrating import recordings


def test_it_is_bound_to_how_they_were_drawn_and_scored() -> None:
    made = calibrate(recordings(300), error_rate=0.15)
    assert made.settings == {
        "model": "openai:m",
        "prompt_version": None,
        "temperature": 1.0,
        "n": 5,
        "include_answer": True,
        "rounds": None,
        "method": "snne",
        "similarity": "content_f1",
        "anchor": 0.7,
        "tau": 1.0,
        "reply_models": ["m-1"],
    }
    assert made.guard_settings()["n"] == 5
    own = calibrate(
        recordings(300, settings={"temperature": 1.0}),
        error_rate=0.15,
        n=3,
        include_answer=False,
        similarity="rouge_l",
        tau=0.5,
        model="k",
        prompt_version="v2",
    )
    changed = {
        "model": "k",
        "prompt_version": "v2",
        "n": 3,
        "include_answer": False,
        "similarity": "rouge_l",
        "anchor": 0.0,
        "tau": 0.5,
    }
    assert own.settings == {**made.settings, **changed}


def test_it_is_bound_to_a_provider_that_takes_no_temperature() -> None:
    drawn = {"models": ["m-1"], "reasons": ["temperature_unset", "suspect_agreement"]}
    run = run_calibration(recordings(60, drawn=drawn), Promise(error_rate=0.4))
    assert run.calibration.settings["temperature_unset"] is True
    assert "the samples of 60 recordings agree" in " ".join(run.warnings)


@pytest.mark.parametrize(
    "said",
    [
        {"answer_temperature": 0.1},
        {"answer_temperature": None, "top_p": None},
        {"top_p": 0.9},
        {"max_tokens": 32, "stop": ["\n", "."]},
        {"max_tokens": None, "stop": None},
        {},
    ],
)
def test_it_is_bound_to_what_answers_were_drawn_with_where_that_is_said(
    said: dict[str, Any],
) -> None:
    rows = recordings(60, settings={"model": "m", **said})
    settings = calibrate(rows, error_rate=0.4).settings
    names = ANSWER_SETTINGS
    assert {name: settings[name] for name in names if name in settings} == said
