"""DSPy: an engine that asks a guarded client.

python examples/frameworks/with_dspy.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import dspy
from dspy.lm15 import (
    OpenAIChatLM,
    Request,
    Response,
    response_from_openai_chat,
    response_to_events,
)
from dspy.utils.exceptions import LMError
from openai import OpenAI

from snne_guard import guard_client
from snne_guard.langchain.embedded import MODEL_NAME, embedded_server_url
from snne_guard.openai import GuardedOpenAI


class GuardedEngine:
    """Has a guarded client answer what DSPy asks its model."""

    # With a schema, replies are JSON without the marks of DSPy's other adapters.
    supports_response_schema = True
    supported_params = ("response_format",)

    def __init__(self, client: GuardedOpenAI) -> None:
        self.client = client
        self._dialect = OpenAIChatLM(api_key="unused")  # writes requests, sends none

    def complete(self, request: Request) -> Response:
        body = json.loads(self._dialect.build_request(request, stream=False).body)
        completion = self.client.chat.completions.create(**body)
        return response_from_openai_chat(completion.to_dict(), model=request.model)

    def stream(self, request: Request) -> Iterator[Any]:
        return response_to_events(self.complete(request))

    def close(self) -> None:
        self.client.close()


# A server in this process; OpenAI() without arguments asks OpenAI, with your key.
own = OpenAI(base_url=embedded_server_url(), api_key="none-needed")
# A refusal would not have the fields that DSPy wants, so an error stands for it.
client = guard_client(own, threshold=0.5, on_uncertain="raise")
lm = dspy.LM(
    MODEL_NAME,
    engine=GuardedEngine(client),
    cache=False,  # what comes from DSPy's cache is not assessed again
    temperature=0.0,
    max_tokens=64,
)
dspy.configure(lm=lm, adapter=dspy.JSONAdapter())
answer = dspy.Predict("question -> answer")
answer.demos = [
    dspy.Example(question="What is the capital of France?", answer="Paris"),
    dspy.Example(question="Who wrote Faust?", answer="Goethe"),
]

with client.assessments() as seen:
    for question in (
        "What is the chemical symbol for gold?",
        "Who won the 1907 village chess cup of Ebnat?",
    ):
        try:
            print(answer(question=question).answer)
        except LMError as error:
            print(error.__cause__)
for assessment in seen:
    print(assessment.decision, assessment.uncertainty)
own.close()
