"""A model of Pydantic AI is guarded where it stands, whichever provider it asks."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.exceptions import ContentFilterError, ModelHTTPError
from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from snne_guard import ConfigurationError, Prices, UncertainAnswerError
from snne_guard.self_check import SelfCheck
from snne_guard_integrations.pydantic_ai import GuardedModel
from tests.integrations.pydantic_models import (
    APART,
    QUESTION,
    REFUSAL,
    Asked,
    Reply,
    record_of,
    responding,
    scripted,
)
from tests.support.calibrations import calibration
from tests.support.observers import Watcher


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


def another(*replies: Reply, name: str = "other", asked: Asked | None = None) -> Any:
    """Return a model that gives each reply in turn, or fails once there is none."""
    given = iter(replies)

    async def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if asked is not None:
            asked.append(dict(info.model_settings or {}))
        said = next(given, None)
        if said is None:
            raise ModelHTTPError(500, name)
        return responding(TextPart(said)) if isinstance(said, str) else said

    return FunctionModel(reply, model_name=name)


async def test_another_model_draws_one_of_the_replies() -> None:
    asked = Asked()
    other = another("Lyon", asked=asked)
    guarded = GuardedModel(scripted("Paris"), other_models=[other], n=4, threshold=0.1)
    settings = ModelSettings(max_tokens=9, temperature=0, seed=3)
    result = await Agent(guarded).run(QUESTION, model_settings=settings)
    record = record_of(result)
    assert result.output == "Paris"
    assert (record["n_used"], record["decision"]) == (4, "flag")
    assert asked == [{"max_tokens": 9}]
    assert record["other_models"]["other"]["models"] == ["other"]
    failed = record_of(await Agent(guarded).run(QUESTION))
    assert (failed["n_used"], failed["uncertainty"]) == (3, 0.0)
    assert "other_model_failed" in failed["reasons"]


async def test_another_model_fills_the_same_output() -> None:
    class City(BaseModel):
        name: str

    def call(name: str) -> ModelResponse:
        return responding(ToolCallPart("final_result", {"name": name}))

    for said, decision in (("Paris", "accept"), ("Lyon", "flag")):
        model = GuardedModel(
            scripted(call("Paris")), other_models=[another(call(said))], threshold=0.1
        )
        result = await Agent(model, output_type=City).run(QUESTION)
        assert result.output == City(name="Paris")
        assert record_of(result)["decision"] == decision


def test_the_guarded_model_is_no_other_one() -> None:
    with pytest.raises(ConfigurationError, match="'scripted' is the guarded model"):
        GuardedModel(scripted("Paris"), other_models=[another(name="scripted")])


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


async def test_tokens_of_thoughts_and_of_caches_are_counted() -> None:
    usage = RequestUsage(
        input_tokens=9,
        output_tokens=7,
        cache_write_tokens=4,
        details={"thoughts_tokens": 5},
    )
    reply = responding(TextPart("Paris"), finish_reason="stop", usage=usage)
    prices = Prices(prompt=1.0, completion=0.0, cache_creation=2.0)
    guarded = GuardedModel(scripted(reply), n=3, prices=prices)
    cost = record_of(await Agent(guarded).run(QUESTION))["cost"]
    assert (cost["reasoning_tokens"], cost["cache_creation_tokens"]) == (15, 12)
    assert cost["money"] == pytest.approx(39e-6)


@pytest.mark.parametrize(("limit", "decision"), [(9, "accept"), (None, "flag")])
async def test_a_calibration_covers_the_settings_it_was_made_for(
    limit: int | None, decision: str
) -> None:
    made = calibration(model="scripted", max_tokens=9)
    agent = Agent(GuardedModel(scripted("Paris"), calibration=made))
    settings = ModelSettings(max_tokens=limit) if limit else None
    result = await agent.run(QUESTION, model_settings=settings)
    assert record_of(result)["decision"] == decision


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("views", {"views": ["plain", "examples"]}),
        ("views", {"views": ["reasoning"], "method": "wsnne"}),
        ("self_check", {"self_check": SelfCheck().prompt, "self_check_weight": 0.5}),
        ("self_check", {"self_check": "Right? Yes or No?", "self_check_weight": 0.3}),
        ("grounding", {"min_grounded": 0.5, "grounding": "judge"}),
    ],
)
def test_nor_does_a_calibration_bring_what_no_draw_would_ask(
    name: str, made: dict[str, Any]
) -> None:
    given = calibration(model="scripted", context_from="text", **made)
    with pytest.raises(ConfigurationError, match=f"no option {name}="):
        GuardedModel(scripted("Paris"), calibration=given, context=None)


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
    refused: dict[str, Any] = {
        "views": ["plain"],
        "self_check": True,
        "spans": "judge",
        "grounding": "judge",
    }
    for name, value in refused.items():
        told = re.escape(f"no option {name}={value!r}")
        with pytest.raises(ConfigurationError, match=told):
            GuardedModel(TestModel(), **{"min_grounded": 0.5, name: value})
    with pytest.raises(ConfigurationError, match="did you mean 'threshold'"):
        GuardedModel(TestModel(), treshold=0.4)  # type: ignore[call-arg]
    with pytest.raises(ConfigurationError, match="does not support batches"):
        await GuardedModel(TestModel()).batch_encode(None)
