"""Whom a calibrated guard takes replies to be from that do not say who gave them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import ConfigurableField, Runnable

from snne_guard import GuardedChatModel, SNNEGuard
from tests.support.calibrated import calibration
from tests.support.guarding import WAYS, ask, record

QUESTION = "What is the capital of France?"


class Silent(BaseChatModel):
    """A model that has a name, and does not say it in its replies."""

    called: str | None = "test-model"
    temperature: float | None = None
    down: bool = False

    @property
    def _llm_type(self) -> str:
        return "silent"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        del stop
        return {"ls_model_name": kwargs.get("model", self.called)}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **kwargs: Any,
    ) -> ChatResult:
        del messages, stop, run_manager, kwargs
        if self.down:
            msg = "down"
            raise ValueError(msg)
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Paris"))])


def found_by(guard: Runnable[Any, Any], way: str = "invoke", **call: Any) -> Any:
    found = record(ask(guard, QUESTION, way, **call))
    return found["decision"], found["certified"], found["reasons"]


TAKEN: tuple[str, bool, list[str]] = ("accept", True, [])
NOT_TAKEN = ("flag", False, ["uncalibrated_model"])


def test_a_reply_without_a_name_is_taken_to_be_from_the_model_that_was_asked() -> None:
    guard = SNNEGuard.from_calibration(Silent(), calibration())
    assert found_by(guard) == found_by(GuardedChatModel(guard)) == TAKEN
    assert found_by(guard, stop=["."]) == TAKEN
    same = Silent(down=True).with_fallbacks([Silent()])
    assert found_by(SNNEGuard.from_calibration(same, calibration())) == TAKEN


@pytest.mark.parametrize("way", WAYS)
def test_a_call_that_asks_another_model_is_outside_the_promise(way: str) -> None:
    guard = SNNEGuard.from_calibration(Silent(), calibration())
    chat_model = GuardedChatModel(guard)
    assert found_by(guard, way, model="other") == NOT_TAKEN
    assert found_by(guard.bind(model="other"), way) == NOT_TAKEN
    assert found_by(chat_model, way, model="other") == NOT_TAKEN
    assert found_by(chat_model.bind(model="other"), way) == NOT_TAKEN
    assert found_by(guard, way) == TAKEN


@pytest.mark.parametrize("model", ["test-model", None])
def test_where_several_may_have_answered_it_could_be_any_of_them(
    model: str | None,
) -> None:
    made = calibration(model=model)
    several = Silent(down=True).with_fallbacks([Silent(called="other")])
    assert found_by(SNNEGuard.from_calibration(several, made)) == NOT_TAKEN


def test_whom_the_configuration_of_a_call_chooses_is_who_was_asked() -> None:
    chosen: Any = {"configurable": {"which": "other"}}
    model = Silent().configurable_fields(called=ConfigurableField(id="which"))
    guard = SNNEGuard.from_calibration(model, calibration())
    for runnable in (guard, GuardedChatModel(guard)):
        assert found_by(runnable) == TAKEN
        assert found_by(runnable, config=chosen) == NOT_TAKEN


def test_a_model_without_a_name_is_that_of_a_calibration_without_one() -> None:
    nameless = Silent(called=None)
    made = calibration(model=None)
    assert found_by(SNNEGuard.from_calibration(nameless, made)) == TAKEN
    assert found_by(SNNEGuard.from_calibration(nameless, calibration())) == NOT_TAKEN
    versioned = calibration(model=None, reply_models=["test-model-v1"])
    assert found_by(SNNEGuard.from_calibration(nameless, versioned)) == NOT_TAKEN


def test_where_a_version_was_calibrated_a_reply_must_say_that_it_is_from_it() -> None:
    versioned = calibration(reply_models=["test-model-v1"])
    assert found_by(SNNEGuard.from_calibration(Silent(), versioned)) == NOT_TAKEN
    plain = calibration(reply_models=["test-model"])
    assert found_by(SNNEGuard.from_calibration(Silent(), plain)) == TAKEN
