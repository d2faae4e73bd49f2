"""The OpenAI Agents SDK: agents that ask a guarded client.

python examples/frameworks/with_openai_agents.py
"""

from __future__ import annotations

import asyncio

from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    Runner,
    set_tracing_disabled,
)
from openai import AsyncOpenAI

from snne_guard import guard_client
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url

set_tracing_disabled(True)  # it would send traces to OpenAI


async def main() -> None:
    # A server in this process; AsyncOpenAI() alone asks OpenAI, with your key.
    own = AsyncOpenAI(base_url=embedded_server_url(), api_key="none-needed")
    client = guard_client(own, threshold=0.5, on_uncertain="refuse")
    agent = Agent(
        name="assistant",
        instructions="Answer in one short sentence.",
        model=OpenAIChatCompletionsModel(MODEL_NAME, openai_client=client),
        model_settings=ModelSettings(
            temperature=0, max_tokens=64, extra_args={"stop": ["\n", "."], "seed": 1}
        ),
    )
    with client.assessments() as seen:
        gold = await Runner.run(agent, "What is the chemical symbol for gold?")
        print(gold.final_output)
        streamed = Runner.run_streamed(
            agent, "Who won the 1907 village chess cup of Ebnat?"
        )
        async for event in streamed.stream_events():
            if event.type == "raw_response_event":
                print(getattr(event.data, "delta", ""), end="")
        print()
    for assessment in seen:
        print(assessment.decision, assessment.uncertainty)
    await own.close()


asyncio.run(main())
