"""The chat generator of ``examples/frameworks/with_haystack.py`` is guarded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from snne_guard.openai import AsyncGuardedOpenAI, GuardedOpenAI
from tests.frameworks.support import CALLS, QUESTION, framework, part_of_example
from tests.support.openai_server import Scripted, Server, always

framework("haystack")


@asynccontextmanager
async def generator(script: Scripted, on_uncertain: Any) -> AsyncIterator[Any]:
    """Give a generator."""
    from haystack.utils import Secret

    kind = part_of_example("with_haystack.py", "GuardedChatGenerator")
    kind.options = {"threshold": 0.4, "on_uncertain": on_uncertain}
    with Server(script) as server:
        key = Secret.from_token("x")
        made = kind(api_base_url=server.url, api_key=key, model="test-model")
        made.warm_up()
        yield made
        made.close()
        await made.close_async()


def asked() -> list[Any]:
    from haystack.dataclasses import ChatMessage

    return [ChatMessage.from_user(QUESTION)]


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_pipeline(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    from haystack import Pipeline

    async with generator(script, on_uncertain) as made:
        pipeline = Pipeline()
        pipeline.add_component("model", made)
        with made.client.assessments() as seen:
            result = pipeline.run({"model": {"messages": asked()}})
        assert result["model"]["replies"][0].text == text
        assert [one.decision for one in seen] == [decision]
        result = await made.run_async(asked())
        assert result["replies"][0].text == text


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_stream(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    chunks: list[str] = []
    others: list[str] = []

    async def take(chunk: Any) -> None:
        others.append(chunk.content)

    async with generator(script, on_uncertain) as made:
        with made.client.assessments() as seen:
            made.run(asked(), streaming_callback=lambda c: chunks.append(c.content))
        await made.run_async(asked(), streaming_callback=take)
    assert "".join(chunks) == "".join(others) == text
    assert [one.decision for one in seen] == [decision]


async def test_a_generator_that_was_closed_is_guarded_again() -> None:
    async with generator(always("Paris"), "refuse") as made:
        made.close()
        made.run(asked())
        assert isinstance(made.client, GuardedOpenAI)
        await made.close_async()
        await made.run_async(asked())
        assert isinstance(made.async_client, AsyncGuardedOpenAI)
