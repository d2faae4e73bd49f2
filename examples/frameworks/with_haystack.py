"""Haystack: a chat generator whose clients are guarded.

python examples/frameworks/with_haystack.py
"""

from __future__ import annotations

from typing import Any, ClassVar

from haystack import Pipeline
from haystack.components.builders import ChatPromptBuilder
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.utils import Secret

from snne_guard import guard_client
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url


class GuardedChatGenerator(OpenAIChatGenerator):
    """Guards each client that it makes, so that none is bare after ``close``."""

    options: ClassVar[dict[str, Any]] = {"threshold": 0.5, "on_uncertain": "refuse"}

    def warm_up(self) -> None:
        if self.client is None:
            super().warm_up()
            self.client = guard_client(self.client, **self.options)

    async def warm_up_async(self) -> None:
        if self.async_client is None:
            await super().warm_up_async()
            self.async_client = guard_client(self.async_client, **self.options)


# A server in this process; without these two arguments it asks OpenAI, with your key.
generator = GuardedChatGenerator(
    api_base_url=embedded_server_url(),
    api_key=Secret.from_token("none-needed"),
    model=MODEL_NAME,
    generation_kwargs={
        "temperature": 0,
        "seed": 1,
        "max_tokens": 64,
        "stop": ["\n", "."],
    },
)
generator.warm_up()

template = [
    ChatMessage.from_system("Answer in one short sentence."),
    ChatMessage.from_user("{{ question }}"),
]
pipeline = Pipeline()
pipeline.add_component("prompt", ChatPromptBuilder(template, required_variables="*"))
pipeline.add_component("model", generator)
pipeline.connect("prompt.prompt", "model.messages")

with generator.client.assessments() as seen:
    for question in (
        "What is the chemical symbol for gold?",
        "Who won the 1907 village chess cup of Ebnat?",
    ):
        result = pipeline.run({"prompt": {"question": question}})
        print(result["model"]["replies"][0].text)
for assessment in seen:
    print(assessment.decision, assessment.uncertainty)
generator.close()
