"""The run of a guard: the model finds its configuration, handlers its labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from langchain_core.language_models import FakeListChatModel, SimpleChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables.config import ensure_config
from langgraph.config import get_config, get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import get_runtime

from snne_guard import SNNEGuard
from tests.langchain.leaks import SECRET, Handler, places
from tests.langchain.support import (
    CALLS,
    MODEL,
    REFUSING,
    WHOLE,
    ask,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher


@dataclass
class Tenant:
    key: str


class ForTenants(SimpleChatModel):
    """A model that finds in the run's configuration whom it answers."""

    @property
    def _llm_type(self) -> str:
        return "for-tenants"

    def _call(self, *_: Any, **__: Any) -> str:
        found = get_config()
        assert found["metadata"]["order"] == ensure_config()["metadata"]["order"] == 7
        assert not found["callbacks"]
        return f"{found['configurable']['tenant']} {get_runtime(Tenant).context.key}"


class Writing(SimpleChatModel):
    """A model that writes to LangGraph's stream, and asks a graph of its own."""

    @property
    def _llm_type(self) -> str:
        return "writing"

    def _call(self, messages: Any, *_: Any, **__: Any) -> str:
        get_stream_writer()({"said": SECRET})
        said = {"messages": [("ai", SECRET)]}
        inner = StateGraph(MessagesState).add_node("say", lambda _: said)
        app = inner.add_edge(START, "say").compile()
        return str(app.invoke({"messages": messages})["messages"][-1].text)


MODES = ["messages", "updates", "values", "debug", "custom", "tasks"]


def streamed(guard: SNNEGuard, way: str, call: Any = None) -> list[Any]:
    """Return all that a graph streams whose node calls the guard with a config."""

    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [ask(guard, way, call, messages=state["messages"])]}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await guard.ainvoke(state["messages"], call)]}

    model: Any = anode if way == "ainvoke" else node
    graph = StateGraph(MessagesState, context_schema=Tenant).add_node("model", model)
    app = graph.add_edge(START, "model").compile()
    given: dict[str, Any] = {
        "input": {"messages": [("user", "Where?")]},
        "config": {"configurable": {"tenant": "Ada"}, "metadata": {"order": 7}},
        "context": Tenant("k-1"),
        "stream_mode": MODES,
        "subgraphs": True,
    }

    async def astreamed() -> list[Any]:
        return [part async for part in app.astream(**given)]

    return in_loop(astreamed()) if way == "ainvoke" else list(app.stream(**given))


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
@pytest.mark.parametrize("options", [{}, REFUSING])
def test_a_model_finds_the_configuration_of_its_run(way: str, options: Any) -> None:
    parts = streamed(SNNEGuard(ForTenants(), n=3, **options), way)
    (message,) = [
        part["model"]["messages"][0] for _, mode, part in parts if mode == "updates"
    ]
    assert message.text == "Ada k-1"
    assert metadata_of(message)["n_used"] == 3


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke"])
def test_what_a_model_writes_in_a_draw_is_in_no_stream(way: str) -> None:
    def different(texts: Any, *, question: str | None = None) -> Any:
        return np.eye(len(texts))

    guard = SNNEGuard(Writing(), n=3, **REFUSING, refusal="No.", similarity=different)
    parts = streamed(guard, way)
    assert places(parts, "No.")
    assert places(parts) == []


@pytest.mark.parametrize("way", CALLS)
def test_labels_of_the_model_are_those_of_the_run(way: str) -> None:
    labelled = FakeListChatModel(
        responses=["Paris"], tags=["capitals"], metadata={"team": "maps"}
    )
    model = labelled.with_config(
        tags=["eu", "capitals"], metadata={"langfuse_user_id": "u-1"}
    )
    handler = Handler()
    guard = SNNEGuard(model.with_retry(), n=3, tags=["mine"], metadata={"mine": 1})
    config = {"callbacks": [handler], "tags": ["call"]}
    ask(guard.model_copy(update={"threshold": 0.4}), way, config)
    (_, (_, started)) = handler.seen[0]
    assert sorted(started["tags"]) == ["call", "capitals", "eu", "mine"]
    expected = {"team": "maps", "langfuse_user_id": "u-1", "mine": 1}
    assert expected.items() <= started["metadata"].items()


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_that_asks_for_no_stream_gets_none(way: str) -> None:
    parts = streamed(SNNEGuard(MODEL.with_config(tags=["nostream"]), n=3), way)
    said = [part[0] for _, mode, part in parts if mode == "messages"]
    # LangGraph tells of what a node returns all the same.
    assert [type(message) for message in said] == [AIMessage]


def events_of(guard: SNNEGuard, config: Any) -> None:
    async def read() -> None:
        async for _ in guard.astream_events("Where?", config):
            pass

    in_loop(read())


@pytest.mark.parametrize("options", [{}, REFUSING])
@pytest.mark.parametrize("way", [*CALLS, "events", "in a graph", "stream in a graph"])
def test_the_question_of_one_call_counts_in_every_way(way: str, options: Any) -> None:
    watcher = Watcher()
    guard = SNNEGuard(MODEL, n=3, observers=[watcher], **options)
    config: Any = {"metadata": {"snne_guard_question": "Capital?"}}
    if way == "events":
        events_of(guard, config)
    elif way.endswith("in a graph"):
        how = way.partition(" ")[0] if way.startswith("stream") else "invoke"
        streamed(guard, how, config)
    else:
        ask(guard, way, config)
    assert watcher.only.question == "Capital?"


@pytest.mark.parametrize("way", CALLS)
def test_a_record_names_the_run_that_handlers_see(way: str) -> None:
    watcher, handler = Watcher(), Handler()
    guard = SNNEGuard(MODEL, n=3, observers=[watcher])
    ask(guard, way, {"callbacks": [handler], "tags": ["call"]})
    (_, (_, started)), *_ = handler.seen
    assert watcher.only.run_id == str(started["run_id"])
    assert started["tags"] == ["call"]
