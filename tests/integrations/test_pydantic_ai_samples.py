"""What the samples of a guarded model of Pydantic AI are asked with, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from snne_guard import ConfigurationError
from snne_guard_integrations.pydantic_ai import GuardedModel
from tests.integrations.pydantic_models import (
    APART,
    QUESTION,
    Asked,
    record_of,
    scripted,
)
from tests.support.openai_server import Server, split


@pytest.mark.parametrize(
    ("params", "settings"),
    [
        (ModelRequestParameters(native_tools=[WebSearchTool()]), {}),
        (ModelRequestParameters(), {"openai_conversation_id": "conv_1"}),
        (ModelRequestParameters(), {"openrouter_preset": "p"}),
        (ModelRequestParameters(), {"extra_body": {"plugins": [{"id": "web"}]}}),
    ],
)
async def test_no_sample_is_drawn_where_it_would_act_at_the_provider(
    params: ModelRequestParameters, settings: Any
) -> None:
    asked = Asked()
    guarded = GuardedModel(scripted("Paris", asked=asked), threshold=0.4)
    response = await guarded.request([], settings, params)
    assert len(asked) == 1
    assert "side_effects" in (response.metadata or {})["snne_guard"]["reasons"]


@pytest.mark.parametrize("wrap", [lambda model: model, WrapperModel, FallbackModel])
async def test_a_model_that_searches_by_itself_draws_no_sample(
    wrap: Callable[[Any], Any],
) -> None:
    asked = Asked()
    model = scripted("Paris", asked=asked, name="gpt-4o-search-preview")
    record = record_of(await Agent(GuardedModel(wrap(model))).run(QUESTION))
    assert (len(asked), record["reasons"][0]) == (1, "side_effects")
    with pytest.raises(ConfigurationError, match="act on the world"):
        GuardedModel(scripted("Paris"), other_models=[wrap(model)])


@pytest.mark.parametrize("wrap", [lambda model: model, WrapperModel, FallbackModel])
async def test_samples_are_not_stored(wrap: Callable[[Any], Any]) -> None:
    with Server(split("Paris", *APART)) as server:
        provider = OpenAIProvider(base_url=server.url, api_key="x")
        model = OpenAIResponsesModel("test-model", provider=provider)
        guarded = GuardedModel(wrap(model), threshold=0.4, on_uncertain="refuse")
        result = await Agent(guarded).run(QUESTION)
    assert ["store" in one.body for one in server.answers] == [False]
    assert [one.body["store"] for one in server.samples] == [False] * 4
    # Else a later request could continue from the answer that was withheld.
    assert result.response.provider_response_id is None


WRAPPERS: dict[str, Callable[[Any], Any]] = {
    "bare": lambda model: model,
    "wrapped": WrapperModel,
    "with fallbacks": lambda model: FallbackModel(model, TestModel()),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
async def test_nothing_narrows_the_samples(wrapper: str) -> None:
    asked = Asked()
    model = scripted("Paris", asked=asked)
    model._settings = ModelSettings(top_p=0.1, seed=3)
    guarded = GuardedModel(WRAPPERS[wrapper](model), n=4, temperature=0.7)
    settings = ModelSettings(
        temperature=0.0, seed=7, max_tokens=9, extra_body={"top_k": 1, "user": "me"}
    )
    await Agent(guarded, model_settings=settings).run(QUESTION)
    answer, *samples = asked
    assert answer == {"top_p": 0.1, **settings}
    extra = {"user": "me"}
    expected = {"temperature": 0.7, "max_tokens": 9, "extra_body": extra}
    assert samples == [expected] * 3
    assert settings["seed"] == 7
    assert model.settings == {"top_p": 0.1, "seed": 3}


def rejecting(said: str, asked: Asked) -> Any:
    """Reject every temperature, with a message."""

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        settings = dict(info.model_settings or {})
        asked.append(settings)
        if "temperature" in settings:
            raise ModelHTTPError(400, "scripted", {"message": said, "code": None})
        return ModelResponse(parts=[TextPart("Paris")], finish_reason="stop")

    return FunctionModel(reply, model_name="scripted")


async def test_a_rejected_temperature_is_left_out_and_remembered() -> None:
    asked = Asked()
    model = rejecting("Unsupported value: 'temperature' does not support 1.", asked)
    agent = Agent(GuardedModel(model, n=3, threshold=0.4))
    sent = []
    for _ in range(2):
        record = record_of(await agent.run(QUESTION))
        assert (record["n_used"], record["reasons"]) == (3, ["temperature_unset"])
        assert record["cost"]["attempts"] == len(asked)
        sent.append(len(asked))
        asked.clear()
    assert sent[0] > sent[1] == 3


async def test_samples_that_may_be_greedy_mean_nothing() -> None:
    async def reply(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        settings: Any = info.model_settings or {}
        if settings.get("temperature", 0) > 0.9:
            said = {"message": "temperature must be below 0.9", "code": None}
            raise ModelHTTPError(400, "scripted", said)
        return ModelResponse(parts=[TextPart("Paris")], finish_reason="stop")

    model = FunctionModel(reply, model_name="scripted")
    agent = Agent(GuardedModel(model, n=3, threshold=0.4))
    settings = ModelSettings(temperature=0.2)
    for _ in range(2):
        record = record_of(await agent.run(QUESTION, model_settings=settings))
        assert (record["decision"], record["uncertainty"]) == ("flag", None)
        assert "greedy_samples" in record["reasons"]


async def test_an_error_that_quotes_the_question_teaches_nothing() -> None:
    asked = Asked()
    agent = Agent(GuardedModel(rejecting("No: what temperature is it?", asked), n=3))
    record = record_of(await agent.run("what temperature is it?"))
    assert (record["n_used"], record["reasons"][0]) == (1, "samples_failed")


class Elsewhere(FunctionModel):
    """A model of another provider."""

    provider_name: str = ""

    @property
    def system(self) -> str:
        return self.provider_name


@pytest.mark.parametrize(
    ("provider", "temperature"), [("anthropic", 1.0), ("mistral", 1.0), ("openai", 1.5)]
)
async def test_samples_have_a_temperature_that_the_provider_takes(
    provider: str, temperature: float
) -> None:
    asked = Asked()
    model = scripted("Paris", asked=asked)
    model.__class__, model.provider_name = Elsewhere, provider
    agent = Agent(GuardedModel(model, n=3, temperature=1.5, threshold=0.4))
    record = record_of(await agent.run(QUESTION))
    assert {one["temperature"] for one in asked[1:]} == {temperature}
    assert ("temperature_unset" in record["reasons"]) == (temperature != 1.5)


REASONING: dict[str, bool] = {"openai_supports_reasoning": True}


@pytest.mark.parametrize(
    ("profile", "dropped"),
    [
        ({"anthropic_disallows_sampling_settings": True}, True),
        (REASONING, True),
        ({**REASONING, "openai_supports_reasoning_effort_none": True}, False),
        ({}, False),
    ],
)
async def test_a_temperature_that_pydantic_ai_drops_is_unset(
    profile: Any, dropped: bool
) -> None:
    asked = Asked()
    model = scripted("Paris", asked=asked)
    model._profile = profile
    record = record_of(await Agent(GuardedModel(model, n=3)).run(QUESTION))
    assert ("temperature_unset" in record["reasons"]) == dropped
    assert all(("temperature" in one) != dropped for one in asked[1:])
