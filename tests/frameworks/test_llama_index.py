"""LlamaIndex's OpenAI class asks a guarded client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from snne_guard.openai import guard_client
from tests.frameworks.support import CALLS, QUESTION, framework
from tests.support.openai_server import Scripted, Server

framework("llama_index")


@asynccontextmanager
async def model(script: Scripted, on_uncertain: Any) -> AsyncIterator[Any]:
    """Give a model of LlamaIndex that asks guarded clients."""
    from llama_index.llms.openai import OpenAI

    given: Any = {"threshold": 0.4, "on_uncertain": on_uncertain}
    with Server(script) as server:
        to: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        with openai.OpenAI(**to) as own:
            async with openai.AsyncOpenAI(**to) as other:
                client, tasks = guard_client(own, **given), guard_client(other, **given)
                clients = {"openai_client": client, "async_openai_client": tasks}
                yield OpenAI(model="gpt-4.1-mini", **clients)


def asked() -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(content=QUESTION)]


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_chat(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    async with model(script, on_uncertain) as llm:
        for answer in (llm.chat(asked()), await llm.achat(asked())):
            assert answer.message.content == text
            assert answer.raw.snne_guard["decision"] == decision
        assert llm.complete(QUESTION).text == text


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_stream(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    async with model(script, on_uncertain) as llm:
        chunks = list(llm.stream_chat(asked()))
        others = [chunk async for chunk in await llm.astream_chat(asked())]
    for parts in (chunks, others):
        assert "".join(part.delta for part in parts) == text
        assert parts[-1].raw.snne_guard["decision"] == decision
