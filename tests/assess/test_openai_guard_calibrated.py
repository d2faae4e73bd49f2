"""The guards of the ``openai`` package hold to a calibration as the other one does."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest

from snne_guard import AsyncOpenAIGuard, ConfigurationError, OpenAIGuard
from snne_guard.types import Assessment
from tests.support.calibrated import READS, calibration
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.guarding import AGREE, split

QUESTION = "What is the capital of France?"


def assessed(
    server: ChatServer, *, tasks: bool, made: Any = None, asked: Any = None, **of: Any
) -> Assessment:
    """Return what a calibrated guard finds, in threads or in tasks."""
    found = calibration() if made is None else made
    given: dict[str, Any] = {"model": "test-model", **of}
    settings: dict[str, Any] = {"api_key": "x", "base_url": server.url}
    if not tasks:
        with openai.OpenAI(**settings) as client:
            guard = OpenAIGuard.from_calibration(client, found, **given)
            return guard.assess(QUESTION, **(asked or {}))

    async def ask() -> Assessment:
        async with openai.AsyncOpenAI(**settings) as client:
            guard = AsyncOpenAIGuard.from_calibration(client, found, **given)
            return await guard.assess(QUESTION, **(asked or {}))

    return asyncio.run(ask())


TWINS = pytest.mark.parametrize("tasks", [False, True])


@TWINS
def test_what_is_as_it_was_calibrated_is_certified(tasks: bool, tmp_path: Path) -> None:
    calibration().save(tmp_path / "guard.json")
    with ChatServer(split("Paris", AGREE)) as server:
        found = assessed(server, tasks=tasks, made=str(tmp_path / "guard.json"))
    assert (found.decision, found.certified, found.reasons) == ("accept", True, ())
    assert (found.p_wrong, *(found.p_wrong_interval or ())) == READS(0.0)


@TWINS
def test_another_model_does_not_start(tasks: bool) -> None:
    with (
        ChatServer(split("Paris", AGREE)) as server,
        pytest.raises(ConfigurationError, match="here it is 'other'; n was 5"),
    ):
        assessed(server, tasks=tasks, model="other", n=3)


@TWINS
def test_another_model_for_one_call_counts_as_uncertain(tasks: bool) -> None:
    def nameless(request: Request) -> Reply:
        return replace(split("Paris", AGREE)(request), model="test-model")

    for script in (split("Paris", AGREE), nameless):
        with ChatServer(script) as server:
            found = assessed(server, tasks=tasks, asked={"model": "other"})
        # The server says who has replied, whoever was asked.
        other = script is not nameless
        assert found.certified is not other
        assert found.reasons == (("uncalibrated_model",) if other else ())


def test_a_guard_whose_calls_name_the_model_looks_at_each() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        asked = {"model": "test-model"}
        found = assessed(server, tasks=False, model=None, asked=asked)
        other = assessed(server, tasks=False, model=None, asked={"model": "other"})
    assert (found.decision, found.certified) == ("accept", True)
    assert (other.decision, other.reasons) == ("flag", ("uncalibrated_model",))


def test_a_guard_without_a_calibration_takes_any_model() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        settings: dict[str, Any] = {"api_key": "x", "base_url": server.url}
        with openai.OpenAI(**settings) as client:
            guard = OpenAIGuard(client, model="m", threshold=0.4)
            found = guard.assess(QUESTION, model="other")
    assert (found.decision, found.certified, found.reasons) == ("accept", False, ())


GREEDY = calibration(answer_temperature=0.0)
UNCALIBRATED = "uncalibrated_answer_temperature"


@TWINS
@pytest.mark.parametrize(
    ("options", "asked", "certified"),
    [
        ({"temperature": 0}, {}, True),
        ({}, {"temperature": 0}, True),
        ({"temperature": 0}, {"temperature": 0.7}, False),
        ({"temperature": 0}, {"extra_body": {"temperature": 0.7}}, False),
        ({}, {"model": "test-model"}, False),  # left to the model
    ],
)
def test_an_answer_at_another_temperature_is_outside_the_promise(
    tasks: bool, options: Any, asked: Any, *, certified: bool
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        of = {"made": GREEDY, "options": options, "asked": asked}
        found = assessed(server, tasks=tasks, **of)
    assert found.certified is certified
    assert found.reasons == (() if certified else (UNCALIBRATED,))


@TWINS
@pytest.mark.parametrize(
    ("options", "asked", "certified"),
    [
        ({"top_p": 0.9}, {}, True),
        ({}, {"top_p": 0.9}, True),
        ({"top_p": 0.9}, {"top_p": 0.5}, False),
        ({"top_p": 0.9}, {"extra_body": {"top_p": 0.5}}, False),
        ({}, {"model": "test-model"}, False),
    ],
)
def test_an_answer_with_another_top_p_is_outside_the_promise(
    tasks: bool, options: Any, asked: Any, *, certified: bool
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        of = {"made": calibration(top_p=0.9), "options": options, "asked": asked}
        found = assessed(server, tasks=tasks, **of)
    assert found.certified is certified
    assert found.reasons == (() if certified else ("uncalibrated_top_p",))


@TWINS
@pytest.mark.parametrize(
    ("made", "options", "asked", "certified"),
    [
        ({"max_tokens": 32}, {"max_tokens": 32}, {}, True),
        ({"max_tokens": 32}, {}, {"max_completion_tokens": 32}, True),
        ({"max_tokens": 32}, {"max_tokens": 32}, {"max_tokens": 1024}, False),
        ({"max_tokens": 32}, {}, {"extra_body": {"max_tokens": 64}}, False),
        ({"max_tokens": 32}, {}, {"model": "test-model"}, False),
        ({"max_tokens": None}, {}, {"max_tokens": 32}, False),
        ({"max_tokens": None}, {}, {}, True),
        ({"stop": ["\n", "."]}, {"stop": [".", "\n"]}, {}, True),
        ({"stop": ["."]}, {}, {"stop": "."}, True),
        ({"stop": ["."]}, {"stop": ["."]}, {"stop": ["x"]}, False),
        ({"stop": ["."]}, {}, {"model": "test-model"}, False),
        ({"stop": None}, {}, {"stop": ["."]}, False),
        ({"stop": None}, {}, {}, True),
    ],
)
def test_an_answer_that_ends_elsewhere_is_outside_the_promise(
    tasks: bool, made: Any, options: Any, asked: Any, *, certified: bool
) -> None:
    [name] = made
    with ChatServer(split("Paris", AGREE)) as server:
        of = {"made": calibration(**made), "options": options, "asked": asked}
        found = assessed(server, tasks=tasks, **of)
    assert found.certified is certified
    assert found.reasons == (() if certified else (f"uncalibrated_{name}",))


@TWINS
def test_a_guard_whose_answers_have_another_temperature_does_not_start(
    tasks: bool,
) -> None:
    told = "answer_temperature was 0.0, here it is 0.7"
    with ChatServer(split("Paris", AGREE)) as server:
        of: dict[str, Any] = {"made": GREEDY, "options": {"temperature": 0.7}}
        with pytest.raises(ConfigurationError, match=told):
            assessed(server, tasks=tasks, **of)
        found = assessed(server, tasks=tasks, **of, allow_mismatch=True)
    assert (found.certified, found.reasons) == (False, ("calibration_mismatch",))
