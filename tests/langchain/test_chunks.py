"""The assessment in chunks: they can be added, copied, stored and sent as JSON."""

from __future__ import annotations

import copy
import json
import pickle
from functools import reduce
from operator import add
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph

from snne_guard import SNNEGuard
from tests.langchain.support import MODEL, REFUSING, chunks_of, metadata_of

GUARDS = {
    "live": SNNEGuard(MODEL, n=3),
    "withheld": SNNEGuard(MODEL, n=3, **REFUSING),
    "nested": SNNEGuard(SNNEGuard(MODEL, n=3), n=2),
}


@pytest.fixture(params=GUARDS)
def guard(request: pytest.FixtureRequest) -> SNNEGuard:
    return GUARDS[request.param]


def test_chunks_of_two_streams_can_be_added(guard: SNNEGuard) -> None:
    first, second = list(guard.stream("Where?")), list(guard.stream("And where?"))
    whole = reduce(add, [*first, *second])
    assert whole.text == "ParisParis"
    assert metadata_of(whole) == metadata_of(second[-1])
    assert metadata_of(whole) != metadata_of(first[-1])
    further = whole + first[-1] + second[-1]
    assert metadata_of(further) == metadata_of(second[-1])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_chunks_of_a_graph_can_be_added(guard: SNNEGuard, asynchronous: bool) -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [guard.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("one", ask).add_node("two", ask)
    app = graph.add_edge(START, "one").add_edge("one", "two").compile()
    chunks = chunks_of(app, "Where?", asynchronous=asynchronous)
    whole = reduce(add, chunks)
    assert whole.text == "ParisParis"
    assert metadata_of(whole)["n_used"] == guard.n


def test_the_record_is_plain_json_once_serialised(guard: SNNEGuard) -> None:
    chunk = list(guard.stream("Where?"))[-1]
    record = dict(metadata_of(chunk))
    assert json.loads(json.dumps(metadata_of(chunk))) == record
    serde = JsonPlusSerializer()
    read = serde.loads_typed(serde.dumps_typed(chunk))
    dumped = chunk.model_dump()["response_metadata"]["snne_guard"]
    stored = dumpd(chunk)["kwargs"]["response_metadata"]["snne_guard"]
    for plain in (dumped, stored, metadata_of(read)):
        assert type(plain) is dict
        assert plain == record


def test_a_copy_of_the_record_is_whole(guard: SNNEGuard) -> None:
    chunk: AIMessageChunk = list(guard.stream("Where?"))[-1]
    record = metadata_of(chunk)
    copies = [record.copy(), copy.deepcopy(record), pickle.loads(pickle.dumps(record))]  # noqa: S301 - our own
    assert all(each == record for each in copies)
    assert metadata_of(chunk.model_copy(deep=True)) == record
