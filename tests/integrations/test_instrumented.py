"""What an instrumentation of LangChain is told, which sits in everything that runs."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from snne_guard import GuardedChatModel, SNNEGuard
from tests.integrations.conftest import Needs
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.guarding import split


@pytest.fixture
def spans(needs: Needs) -> Iterator[Callable[[], list[Any]]]:
    """Return what OpenInference has made of all that was run."""
    openinference = needs("openinference.instrumentation.langchain")
    sdk, export = needs("opentelemetry.sdk.trace"), "opentelemetry.sdk.trace.export"
    memory = needs(f"{export}.in_memory_span_exporter").InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(needs(export).SimpleSpanProcessor(memory))
    openinference.LangChainInstrumentor().instrument(tracer_provider=provider)
    yield lambda: list(memory.get_finished_spans())
    openinference.LangChainInstrumentor().uninstrument()


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("on_uncertain", ["flag", "refuse"])
def test_it_sees_each_request_once_and_no_answer_that_is_withheld(
    on_uncertain: Any,
    wrapped: bool,
    asynchronous: bool,
    spans: Callable[[], list[Any]],
) -> None:
    with ChatServer(split("zanzibar", ["quetzal", "ytterbium"])) as server:
        guard = SNNEGuard(
            chat_openai(server),
            n=3,
            method="snne",
            threshold=0.2,
            on_uncertain=on_uncertain,
        )
        asked = GuardedChatModel(guard) if wrapped else guard
        if asynchronous:
            asyncio.run(asked.ainvoke("Who?"))
        else:
            asked.invoke("Who?")
    found = spans()
    ids = {span.context.span_id: span.name for span in found}
    outer = type(asked).__name__
    assert Counter(
        (span.name, ids[span.parent.span_id] if span.parent else None) for span in found
    ) == {(outer, None): 1, ("ChatOpenAI", outer): 2}
    told = json.dumps([dict(span.attributes) for span in found], default=str)
    assert ("zanzibar" in told) == (on_uncertain == "flag")
