"""A guarded ``openai`` client on a real llama.cpp server and a real model."""

from __future__ import annotations

from typing import Any

import openai
import pytest

from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard_integrations.openai import assessment, guard_client
from tests.support.examples import printed
from tests.support.guarded_openai import content

pytestmark = pytest.mark.usefixtures("embedded")  # which skips where there is none

REQUEST: dict[str, Any] = {
    "model": MODEL_NAME,
    "temperature": 0,
    "seed": 1,
    "max_tokens": 16,
    "stop": ["\n", "."],
    "messages": [
        {"role": "system", "content": "Answer in one short sentence."},
        {"role": "user", "content": "What is the chemical symbol for gold?"},
    ],
}


def test_whole_and_streamed_answers_are_the_client_s_own() -> None:
    with openai.OpenAI(base_url=embedded_server_url(), api_key="none") as own:
        client = guard_client(own, n=3, threshold=0.5)
        plain = own.chat.completions.create(**REQUEST)
        whole = client.chat.completions.create(**REQUEST)
        stream = client.chat.completions.create(**REQUEST, stream=True)
        chunks = list(stream)
    assert whole.choices[0].message.content == plain.choices[0].message.content
    assert content(chunks) == plain.choices[0].message.content
    assert whole.usage is not None
    assert plain.usage is not None
    assert whole.usage.completion_tokens == plain.usage.completion_tokens
    assert whole.choices[0].logprobs is None
    for found in (assessment(whole), assessment(stream)):
        assert found["method"] == "wsnne"
        assert found["n_used"] == 3
        assert found["cost"]["calls"] == 2


async def test_the_async_client_does_the_same() -> None:
    async with openai.AsyncOpenAI(
        base_url=embedded_server_url(), api_key="none"
    ) as own:
        client = guard_client(own, n=3, threshold=0.5, on_uncertain="refuse")
        stream = await client.chat.completions.create(**REQUEST, stream=True)
        chunks = [chunk async for chunk in stream]
        whole = await client.chat.completions.create(**REQUEST)
    assert assessment(stream)["decision"] in {"accept", "refuse"}
    assert content(chunks)
    assert assessment(whole)["n_used"] == 3


def test_the_example_answers_what_it_knows_and_refuses_what_it_makes_up() -> None:
    lines = printed("integrations/with_openai")
    assert "Au" in lines[1]
    assert lines[2].startswith("accept, u=0.")
    assert lines[4] == "I would be making that up."
    assert lines[5].startswith("refuse, u=")
    assert lines[6].startswith("streamed: The chemical symbol")
    assert lines[7] == "accept"
