"""Pydantic AI: any model of it is guarded by a model around it.

python examples/frameworks/with_pydantic_ai.py
"""

from __future__ import annotations

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard_integrations.pydantic_ai import GuardedModel

# A server in this process; any other model or name goes here, "anthropic:..." too.
provider = OpenAIProvider(base_url=embedded_server_url(), api_key="none-needed")
model = OpenAIChatModel(MODEL_NAME, provider=provider)

agent = Agent(
    GuardedModel(model, threshold=0.5, on_uncertain="refuse"),
    instructions="Answer in one short sentence.",
    model_settings=ModelSettings(
        temperature=0, seed=1, max_tokens=64, stop_sequences=["\n", "."]
    ),
)


async def main() -> None:
    result = await agent.run("What is the chemical symbol for gold?")
    print(result.output)
    metadata = result.response.metadata or {}
    print(metadata["snne_guard"])
    question = "Who won the 1907 village chess cup of Ebnat?"
    async with agent.run_stream(question) as stream:
        async for text in stream.stream_text(delta=True):
            print(text, end="")
        print()


asyncio.run(main())
