"""LlamaIndex: a query engine whose model asks a guarded client.

python examples/frameworks/with_llama_index.py

The documents are compared sentence by sentence, which needs the extra ``spans``.
"""

from __future__ import annotations

from typing import Any

import openai
from llama_index.core import Document, SummaryIndex
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai import OpenAI

from snne_guard import guard_client
from snne_guard.langchain.embedded import embedded_server_url


def question(messages: list[Any]) -> str:
    """Return what the user asks: the prompt of a query engine holds the sources too."""
    text: str = messages[-1]["content"]
    return text.rpartition("Query: ")[2].partition("\n")[0]


def sources(messages: list[Any]) -> str:
    """Return the sources, which stand between two lines in the same prompt."""
    text: str = messages[-1]["content"]
    return text.split("-" * 21)[1]


# A server in this process; openai.OpenAI() alone asks OpenAI, with your key.
own = openai.OpenAI(base_url=embedded_server_url(), api_key="none-needed")
client = guard_client(own, threshold=0.5, on_uncertain="refuse", question=question)
# LlamaIndex takes names that it knows; the server has one model and ignores it.
settings: dict[str, Any] = {
    "model": "gpt-4.1-mini",
    "temperature": 0,
    "max_tokens": 48,
    "additional_kwargs": {"seed": 1, "stop": ["\n", "."]},
}
llm = OpenAI(openai_client=client, **settings)

answer = llm.chat([ChatMessage(content="What is the chemical symbol for gold?")])
print(answer.message.content)
print(answer.raw.snne_guard)  # the completion, with the assessment

chunks = llm.stream_chat([ChatMessage(content="Who won the 1907 chess cup of Ebnat?")])
print("".join(chunk.delta or "" for chunk in chunks))

index = SummaryIndex.from_documents([Document(text="The library opens at 9.")])
# Here the sources count too: what they do not say is flagged.
reader = guard_client(own, question=question, context=sources, min_grounded=0.3)
reading = OpenAI(openai_client=reader, **settings)
with reader.assessments() as seen:
    response = index.as_query_engine(llm=reading).query("When does the library open?")
print(response)
print([(assessment.decision, assessment.grounded) for assessment in seen])
own.close()
