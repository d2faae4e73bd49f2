"""A model of Pydantic AI is guarded where it stands, whichever provider it asks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import cycle
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.exceptions import ContentFilterError
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from snne_guard import ConfigurationError, UncertainAnswerError
from snne_guard_integrations.pydantic_ai import GuardedModel
from tests.support.calibrations import calibration
from tests.support.observers import Watcher
from tests.support.openai_server import Server, split

APART = ("Rome", "Lyon", "Bonn", "Oslo")
REFUSAL = "I am not certain enough of the answer to give one."
QUESTION = "Capital of France?"

Reply = str | ModelResponse
Asked = list[dict[str, Any]]


def scripted(answer: Reply, *samples: Reply, asked: Asked | None = None) -> Any:
    """Answer with one reply; give each sample the next of the others."""
    others: Iterator[Reply] = cycle(samples or (answer,))

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        settings = dict(info.model_settings or {})
        if asked is not None:
            asked.append(settings)
        given = next(others) if settings.get("temperature") == 1.0 else answer
        if isinstance(given, str):
            return ModelResponse(parts=[TextPart(given)], finish_reason="stop")
        return given

    return FunctionModel(reply, model_name="scripted")


def responding(*parts: ModelResponsePart, **fields: Any) -> ModelResponse:
    return ModelResponse(parts=[*parts], **fields)


def record_of(result: Any) -> dict[str, Any]:
    metadata = result.response.metadata
    assert metadata is not None
    record: dict[str, Any] = metadata["snne_guard"]
    return record


async def test_an_answer_carries_its_assessment() -> None:
    watcher, asked = Watcher(), Asked()
    model = scripted("Paris", asked=asked)
    guarded = GuardedModel(model, threshold=0.4, observers=[watcher])
    result = await Agent(guarded, instructions="Be brief.").run(QUESTION)
    bare = await Agent(model, instructions="Be brief.").run(QUESTION)
    assert result.output == "Paris"
    record = record_of(result)
    assert (record["decision"], record["n_used"]) == ("accept", 5)
    assert record["cost"]["calls"] == 5
    assert record == watcher.only.to_metadata()
    assert watcher.only.answer is not None
    assert watcher.only.answer.model == "scripted"
    assert result.usage.output_tokens == bare.usage.output_tokens
    assert json.loads(result.all_messages_json())[-1]["metadata"]["snne_guard"]
    assert [settings.get("temperature") for settings in asked[:5]] == [None, *[1.0] * 4]


async def test_a_refusal_says_nothing_of_the_answer() -> None:
    drawn = responding(
        TextPart("Paris"),
        finish_reason="stop",
        provider_details={"logprobs": [{"token": "Paris", "logprob": -0.1}]},
    )
    model = scripted(drawn, *APART)
    guarded = GuardedModel(model, threshold=0.4, on_uncertain="refuse")
    result = await Agent(guarded).run(QUESTION)
    assert result.output == REFUSAL
    assert record_of(result)["decision"] == "refuse"
    assert result.response.finish_reason == "stop"
    assert b"Paris" not in result.all_messages_json()


async def test_a_withheld_answer_can_be_an_error() -> None:
    model = scripted("Paris", *APART)
    guarded = GuardedModel(model, threshold=0.4, on_uncertain="raise")
    with pytest.raises(UncertainAnswerError, match=r"uncertainty of 1\.000"):
        await Agent(guarded).run(QUESTION)


async def test_another_model_can_answer_instead() -> None:
    other = scripted("It is Paris.")
    guarded = GuardedModel(
        scripted("Paris", *APART),
        threshold=0.4,
        on_uncertain="fallback",
        fallback=other,
    )
    result = await Agent(guarded).run(QUESTION)
    assert result.output == "It is Paris."
    assert record_of(result)["decision"] == "fallback"


async def test_a_function_can_answer_instead() -> None:
    model = scripted("Paris", *APART)
    own = responding(TextPart("Ask me later."), metadata={"mine": 1})

    guarded = GuardedModel(model, threshold=0.4, on_uncertain=lambda _: own)
    result = await Agent(guarded).run(QUESTION)
    assert result.output == "Ask me later."
    assert set(result.response.metadata or {}) == {"mine", "snne_guard"}
    assert own.metadata == {"mine": 1}


async def test_a_stream_comes_after_the_decision() -> None:
    model = scripted("Paris", *APART)
    guarded = GuardedModel(model, threshold=0.4, on_uncertain="refuse")
    async with Agent(guarded).run_stream(QUESTION) as stream:
        deltas = [part async for part in stream.stream_text(delta=True)]
        last = stream.all_messages()[-1]
    assert deltas == [REFUSAL]
    assert isinstance(last, ModelResponse)
    assert last.metadata is not None
    assert last.metadata["snne_guard"]["decision"] == "refuse"


class City(BaseModel):
    name: str


def city(name: str) -> ModelResponse:
    call = ToolCallPart("final_result", {"name": name})
    return responding(call, finish_reason="tool_call")


async def test_structured_output_is_compared() -> None:
    guarded = GuardedModel(scripted(city("Paris")), threshold=0.4)
    result = await Agent(guarded, output_type=City).run(QUESTION)
    assert result.output == City(name="Paris")
    calling = result.all_messages()[1]
    assert isinstance(calling, ModelResponse)
    assert (calling.metadata or {})["snne_guard"]["decision"] == "accept"


async def test_refused_structured_output_is_filtered() -> None:
    model = scripted(city("Paris"), *map(city, APART))
    guarded = GuardedModel(model, threshold=0.4, on_uncertain="refuse")
    with pytest.raises(ContentFilterError) as error:
        await Agent(guarded, output_type=City).run(QUESTION)
    assert "Paris" not in str(error.value.body)


async def test_a_refusal_is_text_where_text_is_allowed_too() -> None:
    model = scripted(city("Paris"), *map(city, APART))
    guarded = GuardedModel(
        model, threshold=0.4, on_uncertain="refuse", tool_calls="score"
    )
    either: Any = [str, City]
    result = await Agent(guarded, output_type=either).run(QUESTION)
    assert result.output == REFUSAL


async def test_a_function_must_give_a_response() -> None:
    guarded = GuardedModel(
        scripted("Paris", *APART),
        threshold=0.4,
        on_uncertain=lambda assessment: [str(assessment.answer)],
    )
    with pytest.raises(ConfigurationError, match=r"a ModelResponse .*, got list$"):
        await Agent(guarded).run(QUESTION)


async def test_an_answer_that_calls_a_tool_passes_unscored() -> None:
    asked = Asked()
    calling = responding(ToolCallPart("look_up", {}), finish_reason="tool_call")

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.append(dict(info.model_settings or {}))
        return calling if len(messages) == 1 else responding(TextPart("Paris"))

    agent = Agent(GuardedModel(FunctionModel(reply), threshold=0.4))

    @agent.tool_plain
    def look_up() -> str:
        return "Paris"

    result = await agent.run(QUESTION)
    first = result.all_messages()[1]
    assert isinstance(first, ModelResponse)
    assert (first.metadata or {})["snne_guard"]["reasons"] == ["tool_calls"]
    assert record_of(result)["decision"] == "accept"
    assert len(asked) == 1 + 5


@pytest.mark.parametrize(
    ("params", "settings"),
    [
        (ModelRequestParameters(native_tools=[WebSearchTool()]), {}),
        (ModelRequestParameters(), {"openai_conversation_id": "conv_1"}),
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


async def test_samples_have_a_temperature_and_seeds_of_their_own() -> None:
    asked = Asked()
    guarded = GuardedModel(scripted("Paris", asked=asked), n=4, temperature=0.7)
    settings = ModelSettings(temperature=0.0, seed=7, max_tokens=9)
    await Agent(guarded, model_settings=settings).run(QUESTION)
    answer, *samples = asked
    assert answer == settings
    assert {one["temperature"] for one in samples} == {0.7}
    assert {one["max_tokens"] for one in samples} == {9}
    assert [one["seed"] for one in asked] == [7, 8, 9, 10]
    assert settings == {"temperature": 0.0, "seed": 7, "max_tokens": 9}


@pytest.mark.parametrize(("limit", "decision"), [(9, "accept"), (None, "flag")])
async def test_a_calibration_covers_the_settings_it_was_made_for(
    limit: int | None, decision: str
) -> None:
    made = calibration(model="scripted", max_tokens=9)
    agent = Agent(GuardedModel(scripted("Paris"), calibration=made))
    settings = ModelSettings(max_tokens=limit) if limit else None
    result = await agent.run(QUESTION, model_settings=settings)
    assert record_of(result)["decision"] == decision


async def test_the_question_is_the_last_prompt() -> None:
    found: list[str | None] = []

    def alike(texts: Any, *, question: str | None = None) -> Any:
        import numpy as np

        found.append(question)
        return np.ones((len(texts), len(texts)))

    model = scripted("Paris", *APART)
    image = BinaryContent(b"x", media_type="image/png")
    agent = Agent(GuardedModel(model, similarity=alike))
    first = await agent.run(["Capital of ", image, "France?"])
    await agent.run("And of Italy?", message_history=first.all_messages())
    agent = Agent(GuardedModel(model, similarity=alike, question=lambda m: str(len(m))))
    await agent.run(QUESTION)
    assert found == ["Capital of France?", "And of Italy?", "1"]


async def test_an_answer_that_is_more_than_text_is_not_scored() -> None:
    answer = responding(FilePart(BinaryContent(b"x", media_type="image/png")))
    guarded = GuardedModel(scripted(answer, "Paris"), threshold=0.4)
    response = await guarded.request([], None, ModelRequestParameters())
    record = (response.metadata or {})["snne_guard"]
    assert record["decision"] == "flag"
    assert record["uncertainty"] is None


async def test_what_would_go_past_the_guard_is_refused() -> None:
    refused: dict[str, Any] = {"views": 1, "self_check": True, "spans": "judge"}
    for name, value in refused.items():
        with pytest.raises(ConfigurationError, match=f"no option {name}={value!r}"):
            GuardedModel(TestModel(), **{name: value})
    with pytest.raises(TypeError, match="treshold"):
        GuardedModel(TestModel(), treshold=0.4)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="does not support batches"):
        await GuardedModel(TestModel()).batch_encode(None)
