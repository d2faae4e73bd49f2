"""A calibrated guard whose answers are drawn otherwise than the graded ones."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import ConfigurableField

from snne_guard import ConfigurationError, GuardedChatModel, SNNEGuard
from snne_guard.decision.bound_settings import ANSWER_SETTINGS
from snne_guard.sampling.options import ANSWER_OPTIONS
from tests.support.calibrated import calibration
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.guarding import AGREE, WAYS, ask, record, split

QUESTION = "What is the capital of France?"
TAKEN: tuple[str, bool, list[str]] = ("accept", True, [])
NOT_TAKEN = ("flag", False, ["uncalibrated_answer_temperature"])
GREEDY = calibration(answer_temperature=0.0)


def found_by(guard: Any, way: str = "invoke", config: Any = None, **call: Any) -> Any:
    found = record(ask(guard, QUESTION, way, config, **call))
    return found["decision"], found["certified"], found["reasons"]


@pytest.mark.parametrize(
    ("made", "here"), [(0.0, 0.7), (0.0, None), (None, 0.0), (0.7, 0.0)]
)
def test_a_model_that_answers_at_another_one_does_not_start(
    made: float | None, here: float | None
) -> None:
    told = f"answer_temperature was {made}, here it is {here}"
    found = calibration(answer_temperature=made)
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, temperature=here)
        with pytest.raises(ConfigurationError, match=told):
            SNNEGuard.from_calibration(model, found)
        bound = chat_openai(server, temperature=made).bind(temperature=here)
        with pytest.raises(ConfigurationError, match=told):
            SNNEGuard.from_calibration(bound, found)
        assert not server.requests
        allowed = SNNEGuard.from_calibration(model, found, allow_mismatch=True)
        assert found_by(allowed) == ("accept", False, ["calibration_mismatch"])


@pytest.mark.parametrize("here", [0.0, 0.7, None])
def test_a_calibration_that_does_not_say_it_binds_nothing(here: float | None) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, temperature=here)
        guard = SNNEGuard.from_calibration(model, calibration())
        assert found_by(guard) == found_by(guard, temperature=0.2) == TAKEN


@pytest.mark.parametrize("way", WAYS)
def test_a_call_at_another_one_is_outside_the_promise(way: str) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, temperature=0)
        guard = SNNEGuard.from_calibration(model, GREEDY)
        for runnable in (guard, GuardedChatModel(guard)):
            assert found_by(runnable, way) == TAKEN
            assert found_by(runnable, way, temperature=0) == TAKEN
            assert found_by(runnable, way, temperature=0.7) == NOT_TAKEN
            assert found_by(runnable.bind(temperature=None), way) == NOT_TAKEN
        waved = SNNEGuard.from_calibration(model, GREEDY, allow_mismatch=True)
        found = found_by(waved, way, temperature=0.7)
    assert found == ("accept", False, ["uncalibrated_answer_temperature"])


def test_one_that_the_configuration_chooses_is_looked_at_in_each_call() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, temperature=0).configurable_fields(
            temperature=ConfigurableField(id="warmth")
        )
        guard = SNNEGuard.from_calibration(model, GREEDY)
        assert found_by(guard) == TAKEN
        warm = {"configurable": {"warmth": 0.7}}
        assert found_by(guard, config=warm) == NOT_TAKEN


def test_where_any_of_several_may_have_answered_all_must_be_as_graded() -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        greedy, warm = (chat_openai(server, temperature=one) for one in (0, 0.7))
        for several, expected in (
            (greedy.with_fallbacks([warm]), NOT_TAKEN),
            (greedy.with_fallbacks([greedy]), TAKEN),
        ):
            guard = SNNEGuard.from_calibration(several, GREEDY)
            assert found_by(guard) == expected


def test_where_nobody_knows_it_nothing_is_said() -> None:
    model = FakeListChatModel(responses=["Paris"])
    made = calibration(model=None, temperature_unset=True, answer_temperature=0.0)
    guard = SNNEGuard.from_calibration(model, made)
    assert found_by(guard) == ("accept", True, ["temperature_unset"])
    [reason] = NOT_TAKEN[2]
    assert found_by(guard, temperature=0.7)[2] == ["temperature_unset", reason]


CUT_OFF = calibration(top_p=0.9)
OTHERWISE = ("flag", False, ["uncalibrated_top_p"])


@pytest.mark.parametrize(
    ("made", "here"), [(0.9, 0.5), (0.9, None), (None, 0.9), (None, 1.0), (1.0, None)]
)
def test_a_model_that_answers_with_another_top_p_does_not_start(
    made: float | None, here: float | None
) -> None:
    told = f"top_p was {made}, here it is {here}"
    found = calibration(top_p=made)
    with ChatServer(split("Paris", AGREE)) as server:
        for model in (
            chat_openai(server, top_p=here),
            chat_openai(server, top_p=made).bind(top_p=here),
            chat_openai(server, extra_body={"top_p": here}),
        ):
            with pytest.raises(ConfigurationError, match=told):
                SNNEGuard.from_calibration(model, found)
            allowed = SNNEGuard.from_calibration(model, found, allow_mismatch=True)
            assert found_by(allowed) == ("accept", False, ["calibration_mismatch"])


@pytest.mark.parametrize(
    ("made", "here"), [({}, 0.5), ({"top_p": None}, None), ({"top_p": 1}, 1.0)]
)
def test_a_top_p_that_nobody_recorded_or_that_is_the_same_is_no_other(
    made: dict[str, Any], here: float | None
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, top_p=here)
        guard = SNNEGuard.from_calibration(model, calibration(**made))
        assert found_by(guard) == TAKEN


@pytest.mark.parametrize("way", WAYS)
def test_a_call_with_another_top_p_is_outside_the_promise(way: str) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, top_p=0.9)
        guard = SNNEGuard.from_calibration(model, CUT_OFF)
        for runnable in (guard, GuardedChatModel(guard)):
            assert found_by(runnable, way) == TAKEN
            assert found_by(runnable, way, top_p=0.9) == TAKEN
            assert found_by(runnable, way, top_p=0.5) == OTHERWISE
            assert found_by(runnable.bind(top_p=None), way) == OTHERWISE


def test_a_top_p_that_nobody_can_see_is_no_other() -> None:
    model = FakeListChatModel(responses=["Paris"])
    made = calibration(model=None, temperature_unset=True, top_p=0.9)
    guard = SNNEGuard.from_calibration(model, made)
    assert found_by(guard) == ("accept", True, ["temperature_unset"])


ENDS: list[tuple[str, Any, Any]] = [
    ("max_tokens", 32, 1024),
    ("max_tokens", 32, None),
    ("max_tokens", None, 32),
    ("stop", ["."], ["\n"]),
    ("stop", ["."], None),
    ("stop", None, ["."]),
]
"""Settings that say where a reply ends: the graded ones', and others."""


@pytest.mark.parametrize(("name", "made", "here"), ENDS)
def test_a_model_whose_answers_end_elsewhere_does_not_start(
    name: str, made: Any, here: Any
) -> None:
    found = calibration(**{name: made})
    with ChatServer(split("Paris", AGREE)) as server:
        models: list[Any] = [chat_openai(server, **{name: here})]
        if here is not None:
            models.append(chat_openai(server, **{name: made}).bind(**{name: here}))
            models.append(chat_openai(server, extra_body={name: here}))
        for model in models:
            with pytest.raises(ConfigurationError) as caught:
                SNNEGuard.from_calibration(model, found)
            assert f"{name} was {made!r}, here it is {here!r}" in str(caught.value)
            allowed = SNNEGuard.from_calibration(model, found, allow_mismatch=True)
            assert found_by(allowed) == ("accept", False, ["calibration_mismatch"])
        unknown = SNNEGuard.from_calibration(models[0], calibration())
        assert found_by(unknown) == TAKEN


@pytest.mark.parametrize(("name", "made", "here"), ENDS)
@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_ends_elsewhere_is_outside_the_promise(
    way: str, name: str, made: Any, here: Any
) -> None:
    with ChatServer(split("Paris", AGREE)) as server:
        model = chat_openai(server, **{name: made})
        guard = SNNEGuard.from_calibration(model, calibration(**{name: made}))
        for runnable in (guard, GuardedChatModel(guard)):
            assert found_by(runnable, way) == TAKEN
            assert found_by(runnable, way, **{name: made}) == TAKEN
            if here is not None or name != "stop":  # no stop says nothing in a call
                other = ("flag", False, [f"uncalibrated_{name}"])
                assert found_by(runnable, way, **{name: here}) == other
                assert found_by(runnable.bind(**{name: here}), way) == other


def test_what_is_looked_for_is_what_a_calibration_binds() -> None:
    assert set(ANSWER_OPTIONS) == ANSWER_SETTINGS
