"""The OpenAI Agents SDK asks a guarded client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from snne_guard.openai import guard_client
from tests.frameworks.support import CALLS, QUESTION, REFUSAL, framework
from tests.support.openai_server import Scripted, Server, split

agents: Any = framework("agents")
agents.set_tracing_disabled(True)

MODELS = ("OpenAIChatCompletionsModel", "OpenAIResponsesModel")


@asynccontextmanager
async def agent(
    script: Scripted, on_uncertain: Any, model: str, **options: Any
) -> AsyncIterator[tuple[Any, Any]]:
    """Give a guarded client, and an agent that asks it."""
    to: Any = {"api_key": "x", "max_retries": 0}
    with Server(script) as server:
        async with openai.AsyncOpenAI(base_url=server.url, **to) as own:
            client = guard_client(own, threshold=0.4, on_uncertain=on_uncertain)
            asks = getattr(agents, model)("test-model", openai_client=client)
            yield client, agents.Agent(name="a", model=asks, **options)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_run(
    script: Scripted, on_uncertain: str, text: str, decision: str, model: str
) -> None:
    async with agent(script, on_uncertain, model) as (client, asks):
        with client.assessments() as seen:
            result = await agents.Runner.run(asks, QUESTION)
    assert result.final_output == text
    assert [one.decision for one in seen] == [decision]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_stream(
    script: Scripted, on_uncertain: str, text: str, decision: str, model: str
) -> None:
    async with agent(script, on_uncertain, model) as (client, asks):
        with client.assessments() as seen:
            result = agents.Runner.run_streamed(asks, QUESTION)
            deltas = [
                event.data.delta
                async for event in result.stream_events()
                if event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ]
    assert "".join(deltas) == result.final_output == text
    assert (len(deltas) > 1) == (on_uncertain == "flag")
    assert [one.decision for one in seen] == [decision]


class City(BaseModel):
    name: str


@pytest.mark.parametrize("model", MODELS)
async def test_refused_structured_output_is_an_error(model: str) -> None:
    cities = [f'{{"name": "{name}"}}' for name in ("Paris", "Rome", "Lyon", "Bonn")]
    script = split(*cities)
    async with agent(script, "refuse", model, output_type=City) as (_, asks):
        with pytest.raises(agents.exceptions.ModelRefusalError, match=REFUSAL):
            await agents.Runner.run(asks, QUESTION)
