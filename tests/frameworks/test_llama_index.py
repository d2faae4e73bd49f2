"""LlamaIndex's OpenAI class asks a guarded client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from snne_guard.openai import guard_client
from tests.frameworks.support import CALLS, QUESTION, REFUSAL, framework
from tests.support.openai_server import APART, Scripted, Server, split

framework("llama_index")


@asynccontextmanager
async def model(
    script: Scripted, on_uncertain: Any, **options: Any
) -> AsyncIterator[Any]:
    """Give a model of LlamaIndex, and a guarded client that it asks."""
    from llama_index.llms.openai import OpenAI

    given: Any = {"threshold": 0.4, "on_uncertain": on_uncertain, **options}
    with Server(script) as server:
        to: Any = {"base_url": server.url, "api_key": "x", "max_retries": 0}
        with openai.OpenAI(**to) as own:
            async with openai.AsyncOpenAI(**to) as other:
                client, tasks = guard_client(own, **given), guard_client(other, **given)
                clients = {"openai_client": client, "async_openai_client": tasks}
                yield client, OpenAI(model="gpt-4.1-mini", **clients)


def asked() -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(content=QUESTION)]


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_chat(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    async with model(script, on_uncertain) as (_, llm):
        for answer in (llm.chat(asked()), await llm.achat(asked())):
            assert answer.message.content == text
            assert answer.raw.snne_guard["decision"] == decision
        assert llm.complete(QUESTION).text == text


@pytest.mark.parametrize(("script", "on_uncertain", "text", "decision"), CALLS)
async def test_a_stream(
    script: Scripted, on_uncertain: str, text: str, decision: str
) -> None:
    async with model(script, on_uncertain) as (_, llm):
        chunks = list(llm.stream_chat(asked()))
        others = [chunk async for chunk in await llm.astream_chat(asked())]
    for parts in (chunks, others):
        assert "".join(part.delta for part in parts) == text
        assert parts[-1].raw.snne_guard["decision"] == decision


async def test_a_query_engine() -> None:
    from llama_index.core import Document, SummaryIndex

    questions: list[str] = []

    def question(messages: list[Any]) -> str:
        text: str = messages[-1]["content"]
        questions.append(text.rpartition("Query: ")[2].partition("\n")[0])
        return questions[-1]

    script = split("Paris it is", *APART)
    async with model(script, "refuse", question=question) as (client, llm):
        index = SummaryIndex.from_documents([Document(text="France is a country.")])
        with client.assessments() as seen:
            response = index.as_query_engine(llm=llm).query(QUESTION)
    assert str(response) == REFUSAL
    assert [one.decision for one in seen] == ["refuse"]
    assert questions == [QUESTION]
