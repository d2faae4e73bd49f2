"""Tokens: each model's are counted once, under its own name, whoever answers."""

from __future__ import annotations

from itertools import cycle
from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.graph import START, MessagesState, StateGraph

from snne_guard import Assessment, Cost, Prices, SNNEGuard
from tests.langchain.leaks import Handler
from tests.langchain.support import (
    CALLS,
    REFUSING,
    ask,
    chat_openai,
    chunks_of,
    guarded,
    metadata_of,
)
from tests.support.openai_server import Server, always, split

APART = ("Lyon", "Nice", "Metz", "Lens")
DRAWN = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
SPOKEN = {"input_tokens": 5, "output_tokens": 1, "total_tokens": 6}


def totals(counter: Any) -> dict[str, dict[str, int]]:
    """Return the three sums of tokens of each model that LangChain has counted."""
    return {
        name: {count: usage[count] for count in DRAWN}
        for name, usage in counter.usage_metadata.items()
    }


@pytest.mark.parametrize("way", CALLS)
def test_a_fallback_counts_its_own_tokens(way: str) -> None:
    handler = Handler()
    with (
        Server(split("Paris", *APART)) as server,
        Server(always("Ask.", model="second-model")) as other,
        get_usage_metadata_callback() as counter,
    ):
        fallback = chat_openai(other, model="second-model")
        options: Any = {"on_uncertain": "fallback", "fallback": fallback}
        guard = guarded(server, threshold=0.4, prices=Prices(prompt=1, completion=2))
        guard = guard.model_copy(update=options)
        message = ask(guard, way, {"callbacks": [handler]})
    assert message.text == "Ask."
    assert totals(counter) == {"test-model": DRAWN, "second-model": SPOKEN}
    record = metadata_of(message)
    assert record["cost"]["money"] == pytest.approx(20e-6)
    assert record["fallback"]["model"] == "second-model"
    assert record["fallback"]["usage"]["total_tokens"] == 6
    starts = [args for name, args in handler.seen if name == "on_chat_model_start"]
    (_, guards), (_, fallbacks) = starts
    assert fallbacks["parent_run_id"] == guards["run_id"]


@pytest.mark.parametrize("way", CALLS)
def test_where_the_model_fails_a_fallback_counts_alone(way: str) -> None:
    with (
        Server(always(status=403)) as server,
        Server(always("Ask.", model="second-model")) as other,
        get_usage_metadata_callback() as counter,
    ):
        ask(guarded(server, fallback=chat_openai(other)), way)
    assert totals(counter) == {"second-model": SPOKEN}


def replaced(_: Assessment) -> AIMessage:
    return AIMessage("Ask.", response_metadata={"model_name": "nobody"})


@pytest.mark.parametrize("options", [REFUSING, {"on_uncertain": replaced}])
@pytest.mark.parametrize("way", CALLS)
def test_a_withheld_answer_is_counted(way: str, options: Any) -> None:
    with (
        Server(split("Paris", *APART)) as server,
        get_usage_metadata_callback() as counter,
    ):
        message = ask(guarded(server, **{"threshold": 0.4, **options}), way)
    assert message.text != "Paris"
    assert message.response_metadata["model_name"] == "test-model"
    assert totals(counter) == {"test-model": DRAWN}


@pytest.mark.parametrize("asynchronous", [False, True])
def test_langgraph_streams_a_fallback_once(asynchronous: bool) -> None:
    with (
        Server(split("Paris", *APART)) as server,
        Server(always("Ask.", model="second-model")) as other,
    ):
        options: Any = {"on_uncertain": "fallback", "fallback": chat_openai(other)}
        guard = guarded(server, threshold=0.4, **options)

        def node(state: MessagesState) -> dict[str, Any]:
            return {"messages": [guard.invoke(state["messages"])]}

        async def anode(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await guard.ainvoke(state["messages"])]}

        model: Any = anode if asynchronous else node
        graph = StateGraph(MessagesState).add_node("model", model)
        app = graph.add_edge(START, "model").compile()
        chunks = chunks_of(app, "Where?", asynchronous=asynchronous)
    assert "".join(chunk.text for chunk in chunks) == "Ask."


def test_tokens_written_to_a_cache_have_a_price() -> None:
    cost = Cost(prompt_tokens=10, cached_tokens=2, cache_creation_tokens=3)
    cost += Cost(cache_creation_tokens=1, money=None)
    prices = Prices(prompt=1e6, completion=0.0, cached=1e5)
    assert prices.of(cost) == pytest.approx(8.2)
    dear = Prices(prompt=1e6, completion=0.0, cached=1e5, cache_creation=2e6)
    assert dear.of(cost) == pytest.approx(12.2)
    with pytest.raises(ValueError, match="the price cache_creation"):
        SNNEGuard(chat_openai, prices=Prices(prompt=1, completion=1, cache_creation=-1))  # type: ignore[arg-type]


@pytest.mark.parametrize("way", CALLS)
def test_details_of_all_draws_reach_the_message(way: str) -> None:
    usage = UsageMetadata(
        input_tokens=9,
        output_tokens=4,
        total_tokens=13,
        input_token_details={"cache_read": 2, "ephemeral_5m_input_tokens": 3},  # type: ignore[typeddict-unknown-key]
        output_token_details={"audio": 1, "reasoning": 2},
    )
    said = cycle([AIMessage("Paris", usage_metadata=usage)])
    guard = SNNEGuard(GenericFakeChatModel(messages=said), n=3, **REFUSING)
    message = ask(guard, way)
    assert message.usage_metadata == {
        "input_tokens": 27,
        "output_tokens": 12,
        "total_tokens": 39,
        "input_token_details": {"cache_read": 6, "ephemeral_5m_input_tokens": 9},
        "output_token_details": {"audio": 3, "reasoning": 6},
    }
    assert metadata_of(message)["cost"]["cache_creation_tokens"] == 9
