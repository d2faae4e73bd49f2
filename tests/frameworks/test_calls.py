"""Frameworks that ask a guarded client; ``make test-frameworks`` installs each in turn.

``tests/integrations/test_pydantic_ai.py`` tests the model that guards any other.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import openai
import pytest
from pydantic import BaseModel

from snne_guard.openai import AsyncGuardedOpenAI, GuardedOpenAI, guard_client
from tests.frameworks.support import QUESTION, framework, part_of_example
from tests.support.openai_server import APART, Scripted, Server, always, split

REFUSAL = "I am not certain enough of the answer to give one."


class Asks(NamedTuple):
    """What asks a guarded client, for a whole text or for the parts of a stream."""

    client: Any
    whole: Callable[[], Awaitable[str | None]]
    parts: Callable[[], Awaitable[list[str | None]]]


@asynccontextmanager
async def guarded(url: str, on_uncertain: Any) -> AsyncGenerator[AsyncGuardedOpenAI]:
    async with openai.AsyncOpenAI(base_url=url, api_key="x", max_retries=0) as own:
        yield guard_client(own, threshold=0.4, on_uncertain=on_uncertain)


@asynccontextmanager
async def agents(
    url: str, on_uncertain: str, model: str, **options: Any
) -> AsyncGenerator[Asks]:
    package = framework("agents")
    package.set_tracing_disabled(True)
    async with guarded(url, on_uncertain) as client:
        asks = getattr(package, model)("test-model", openai_client=client)
        agent = package.Agent(name="a", model=asks, **options)

        async def whole() -> Any:
            return (await package.Runner.run(agent, QUESTION)).final_output

        async def parts() -> list[str | None]:
            result = package.Runner.run_streamed(agent, QUESTION)
            return [
                event.data.delta
                async for event in result.stream_events()
                if event.type == "raw_response_event"
                and event.data.type == "response.output_text.delta"
            ]

        yield Asks(client, whole, parts)


@asynccontextmanager
async def haystack(url: str, on_uncertain: str, _: str) -> AsyncGenerator[Asks]:
    package = framework("haystack")
    from haystack.dataclasses import ChatMessage
    from haystack.utils import Secret

    kind = part_of_example("with_haystack.py", "GuardedChatGenerator")
    kind.options = {"threshold": 0.4, "on_uncertain": on_uncertain}
    model = kind(api_base_url=url, api_key=Secret.from_token("x"), model="test-model")
    model.warm_up()
    pipeline = package.Pipeline()
    pipeline.add_component("model", model)
    given = {"messages": [ChatMessage.from_user(QUESTION)]}

    async def whole() -> Any:
        return pipeline.run({"model": given})["model"]["replies"][0].text

    async def parts() -> list[str | None]:
        found: list[str | None] = []
        model.run(**given, streaming_callback=lambda part: found.append(part.content))
        return found

    yield Asks(model.client, whole, parts)
    model.close()
    model.warm_up()
    assert isinstance(model.client, GuardedOpenAI)
    await model.warm_up_async()
    assert isinstance(model.async_client, AsyncGuardedOpenAI)
    model.close()
    await model.close_async()


@asynccontextmanager
async def llama_index(url: str, on_uncertain: str, _: str) -> AsyncGenerator[Asks]:
    framework("llama_index")
    from llama_index.core.llms import ChatMessage
    from llama_index.llms.openai import OpenAI

    asked = [ChatMessage(content=QUESTION)]
    async with guarded(url, on_uncertain) as client:
        model = OpenAI(model="gpt-4.1-mini", async_openai_client=client)

        async def whole() -> Any:
            return (await model.achat(asked)).message.content

        async def parts() -> list[str | None]:
            return [chunk.delta async for chunk in await model.astream_chat(asked)]

        yield Asks(client, whole, parts)


@asynccontextmanager
async def pydantic_ai(url: str, on_uncertain: str, model: str) -> AsyncGenerator[Asks]:
    package = framework("pydantic_ai")
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    async with guarded(url, on_uncertain) as client:
        provider = OpenAIProvider(openai_client=client)
        agent = package.Agent(getattr(models, model)("test-model", provider=provider))

        async def whole() -> Any:
            return (await agent.run(QUESTION)).output

        async def parts() -> list[str | None]:
            async with agent.run_stream(QUESTION) as stream:
                texts = stream.stream_text(delta=True, debounce_by=None)
                return [part async for part in texts]

        yield Asks(client, whole, parts)


FRAMEWORKS: list[tuple[Any, str]] = [
    (agents, "OpenAIChatCompletionsModel"),
    (agents, "OpenAIResponsesModel"),
    (haystack, ""),
    (llama_index, ""),
    (pydantic_ai, "OpenAIChatModel"),
    (pydantic_ai, "OpenAIResponsesModel"),
]


@pytest.mark.parametrize(("opened", "model"), FRAMEWORKS)
@pytest.mark.parametrize(
    ("script", "on_uncertain", "text", "decision"),
    [
        (always("Paris it is"), "refuse", "Paris it is", "accept"),
        (split("Paris it is", *APART), "refuse", REFUSAL, "refuse"),
        (split("Paris it is", *APART), "flag", "Paris it is", "flag"),
    ],
)
async def test_answers_and_streams_are_guarded(
    *,
    opened: Any,
    model: str,
    script: Scripted,
    on_uncertain: str,
    text: str,
    decision: str,
) -> None:
    with Server(script) as server:
        async with opened(server.url, on_uncertain, model) as asks:
            with asks.client.assessments() as seen:
                assert await asks.whole() == text
                parts = list(filter(None, await asks.parts()))
    assert "".join(parts) == text
    assert (len(parts) > 1) == (on_uncertain == "flag")
    assert [one.decision for one in seen] == [decision] * 2


class City(BaseModel):
    name: str


@pytest.mark.parametrize("model", [model for _, model in FRAMEWORKS[:2]])
async def test_refused_structured_output_is_an_error_of_agents(model: str) -> None:
    cities = [f'{{"name": "{name}"}}' for name in ("Paris", "Rome", "Lyon", "Bonn")]
    with Server(split(*cities)) as server:
        async with agents(server.url, "refuse", model, output_type=City) as asks:
            refused = framework("agents").exceptions.ModelRefusalError
            with pytest.raises(refused, match=REFUSAL):
                await asks.whole()
