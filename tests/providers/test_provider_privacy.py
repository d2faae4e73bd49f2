"""No provider's class tells anybody of a sample, or of an answer that was withheld."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.runnables import RunnableLambda

from snne_guard import SNNEGuard
from tests.providers.cases import CASES, Case, asked
from tests.support.guarding import ask, split
from tests.support.handlers import EverythingHandler, find_text

TEXTS = ["Xanadu", "Xylon", "Xerxes city", "X marks it"]
"""What the samples say; nothing else has an X in it."""


@asked()
def test_handlers_hear_neither_samples_nor_a_withheld_answer(
    case: Case, way: str
) -> None:
    handler = EverythingHandler()
    with case.server(split("Yonder", TEXTS)) as server:
        model = case.chat(server, **({"streaming": True} if case.streams else {}))
        guard = SNNEGuard(
            model,
            threshold=0.1,
            on_uncertain="refuse",
            refusal="no idea",
            trace_samples=False,
        )
        found = ask(guard, "Capital?", way, {"callbacks": [handler]})
    assert found.text == "no idea"
    for text in ("Yonder", "Xan", "Xyl", "Xerxes", "marks"):
        assert handler.leaks(text) == []


STREAMED = [
    pytest.param(case, id=name)
    for name, case in CASES.items()
    if (case.streams or case.row == "Ollama") and "ainvoke" in case.ways
]


@pytest.mark.parametrize("case", STREAMED)
def test_events_of_a_chain_hold_no_token_of_a_sample(case: Case) -> None:
    async def listen(chain: Any) -> list[Any]:
        found = chain.astream_events("Capital?", version="v2")
        return [event async for event in found]

    with case.server(split("Yonder", TEXTS)) as server:
        guard = SNNEGuard(case.chat(server), trace_samples=False)
        events = asyncio.run(listen(RunnableLambda(lambda text: text) | guard))
    assert find_text("Yonder", events)
    for text in ("Xan", "Xyl", "Xerxes", "marks"):
        assert find_text(text, events) == []
