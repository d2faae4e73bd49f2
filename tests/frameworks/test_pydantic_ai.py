"""Pydantic AI's models for OpenAI ask a guarded client.

``tests/integrations/test_pydantic_ai.py`` tests the model that guards any other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from snne_guard.openai import guard_client
from tests.frameworks.support import CALLS, QUESTION, framework
from tests.support.openai_server import Scripted, Server

pydantic_ai: Any = framework("pydantic_ai")

MODELS = ("OpenAIChatModel", "OpenAIResponsesModel")


@asynccontextmanager
async def agent(
    script: Scripted, on_uncertain: Any, model: str
) -> AsyncIterator[tuple[Any, Any]]:
    """Give a guarded client, and an agent that asks it."""
    from pydantic_ai.models import openai as models
    from pydantic_ai.providers.openai import OpenAIProvider

    to: Any = {"api_key": "x", "max_retries": 0}
    with Server(script) as server:
        async with openai.AsyncOpenAI(base_url=server.url, **to) as own:
            client = guard_client(own, threshold=0.4, on_uncertain=on_uncertain)
            provider = OpenAIProvider(openai_client=client)
            asks = getattr(models, model)("test-model", provider=provider)
            yield client, pydantic_ai.Agent(asks)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_run(
    script: Scripted, on_uncertain: str, text: str, decision: str, model: str
) -> None:
    async with agent(script, on_uncertain, model) as (client, asks):
        with client.assessments() as seen:
            result = await asks.run(QUESTION)
    assert result.output == text
    assert [one.decision for one in seen] == [decision]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_stream(
    script: Scripted, on_uncertain: str, text: str, decision: str, model: str
) -> None:
    async with agent(script, on_uncertain, model) as (client, asks):
        with client.assessments() as seen:
            async with asks.run_stream(QUESTION) as stream:
                parts = stream.stream_text(delta=True, debounce_by=None)
                deltas = [part async for part in parts]
    assert "".join(deltas) == text
    assert (len(deltas) > 1) == (on_uncertain == "flag")
    assert [one.decision for one in seen] == [decision]
