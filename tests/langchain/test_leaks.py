"""Where an answer may be withheld, nobody sees it before the decision, or ever."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import AsyncIterator
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.callbacks import get_usage_metadata_callback
from langchain_core.language_models import GenericFakeChatModel, SimpleChatModel
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs
from langgraph.graph import START, MessagesState, StateGraph

from snne_guard import SNNEGuard, SnneGuardError
from tests.langchain.leaks import (
    SECRET,
    WITHHOLDING,
    Handler,
    listening,
    outcome_of,
    places,
    script,
    withholding,
)
from tests.langchain.support import (
    CALLS,
    REFUSING,
    WHOLE,
    ask,
    chat_openai,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import Answer, Asked, Server, calling, split


def test_the_search_finds_what_is_hidden() -> None:
    error = ValueError("no")
    error.__cause__ = KeyError([AIMessage("x", additional_kwargs={"a": [SECRET]})])
    assert SECRET in places({"a": [1, error]})
    assert places([AIMessage("y"), {"b": b"z"}]) == []


# -- Nobody sees what is withheld ------------------------------------------------------


@pytest.mark.parametrize("how", WITHHOLDING)
@pytest.mark.parametrize("way", CALLS)
def test_a_withheld_answer_is_seen_by_nobody(
    way: str,
    how: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    watcher = Watcher()
    with Server(script(how)) as server, listening(way) as listeners:
        inner = chat_openai(server, callbacks=[listeners.inner[0]])
        model = inner.with_config(callbacks=[listeners.inner[1]])
        guard = withholding(model, how, observers=[watcher])
        outcome = outcome_of(guard, way, listeners.config)
        heard = listeners.heard
    assert watcher.only.answer is not None
    assert watcher.only.answer.text == SECRET  # it was drawn, so it could have leaked
    assert places(heard) == []
    assert places(outcome) == []
    pickled = pickle.dumps(outcome)
    assert SECRET.encode() not in pickled
    assert str(pickle.loads(pickled)) == str(outcome)  # noqa: S301 - our own
    assert SECRET not in repr(watcher.only)
    logged = [r.getMessage() for r in caplog.records if "snne_guard" in r.name]
    assert SECRET not in "".join(logged)
    assert SECRET not in "".join(capsys.readouterr())
    if isinstance(outcome, BaseException):
        trace = traceback.TracebackException.from_exception(
            outcome, capture_locals=True
        )
        assert SECRET not in "".join(trace.format())
    assert listeners.inner[0].seen == listeners.inner[1].seen == []


@pytest.mark.filterwarnings("ignore:astream_log is deprecated")
@pytest.mark.parametrize("how", WITHHOLDING)
def test_a_withheld_answer_is_in_no_event(how: str) -> None:
    async def heard_from(events: AsyncIterator[Any]) -> list[Any]:
        heard: list[Any] = []
        try:
            async for event in events:
                heard.append(event)  # noqa: PERF401 - what precedes an error counts
        except (SnneGuardError, ZeroDivisionError) as error:
            heard.append(error)
        return heard

    with Server(script(how)) as server:
        guard = withholding(chat_openai(server), how)
        for events in (guard.astream_events("Where?"), guard.astream_log("Where?")):
            heard = in_loop(heard_from(events))
            assert len(heard) > 1
            assert places(heard) == []


MODES = ["messages", "updates", "values", "debug", "custom", "tasks"]


def parts_of(app: Any, asynchronous: bool) -> list[tuple[str, Any]]:
    state = {"messages": [("user", "Where?")]}

    async def read() -> list[Any]:
        return [part async for part in app.astream(state, stream_mode=MODES)]

    if asynchronous:
        return in_loop(read())
    return list(app.stream(state, stream_mode=MODES))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("how", ["refuse", "fallback", "pair", "accept", "flag"])
def test_langgraph_streams_what_is_delivered_once(how: str, asynchronous: bool) -> None:
    if how in WITHHOLDING:
        delivered = "Ask a librarian." if how == "fallback" else "No."
        provider, options = script(how), {"threshold": 0.0, **WITHHOLDING[how]}
    else:
        delivered = "Paris"
        provider = split("Paris", "Paris" if how == "accept" else "Lyon")
        policy = "refuse" if how == "accept" else "flag"
        options = {"threshold": 0.4, "on_uncertain": policy}
    with Server(provider) as server:
        guard = SNNEGuard(chat_openai(server), refusal="No.", **options)
        asked = RunnableLambda(itemgetter("messages"))
        node: Any = asked | guard | (lambda message: {"messages": [message]})
        graph = StateGraph(MessagesState).add_node("model", node)
        app = graph.add_edge(START, "model").compile()
        parts = parts_of(app, asynchronous)
    assert places(parts) == []
    assert places(parts, "Lyon") == []
    chunks = [part[0] for mode, part in parts if mode == "messages"]
    assert "".join(str(chunk.text) for chunk in chunks) == delivered
    assert len({chunk.id for chunk in chunks}) == 1


class Delegating(SimpleChatModel):
    """A model that asks another one, with the callbacks that it inherits."""

    inner: Any

    @property
    def _llm_type(self) -> str:
        return "delegating"

    def _call(self, messages: Any, *_: Any, **__: Any) -> str:
        return str(self.inner.invoke(messages).text)


@pytest.mark.parametrize("way", WHOLE)
def test_a_model_that_asks_another_in_a_chain_is_not_heard_either(way: str) -> None:
    inner = GenericFakeChatModel(messages=iter([f"{SECRET}: {n}" for n in range(5)]))
    guard = withholding(Delegating(inner=inner), "refuse")

    def call(messages: Any) -> Any:
        return guard.invoke(messages)

    async def acall(messages: Any) -> Any:
        return await guard.ainvoke(messages)

    handler = Handler()
    with collect_runs() as runs, get_usage_metadata_callback() as usage:
        config = {"callbacks": [handler]}
        message = ask(RunnableLambda(call, acall), way, config)
    assert metadata_of(message)["decision"] == "refuse"
    (run,) = runs.traced_runs
    assert places([message, handler.seen, usage, run.model_dump()]) == []
    assert [child.name for child in run.child_runs] == ["SNNEGuard"]
    assert run.child_runs[0].child_runs == []


def test_a_withheld_tool_call_does_not_leak_its_arguments() -> None:
    def script(asked: Asked) -> Answer:
        return calling({"to": "Lyon" if asked.is_sample else SECRET})

    handler = Handler()
    with Server(script) as server:
        guard = withholding(chat_openai(server), "refuse", tool_calls="score")
        message = guard.invoke("Where?", {"callbacks": [handler]})
    assert metadata_of(message)["decision"] == "refuse"
    assert not message.tool_calls
    assert places([handler.seen, message]) == []


@pytest.mark.parametrize("way", WHOLE)
def test_a_failing_similarity_tells_no_text(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(texts: Any, *, question: str | None = None) -> Any:
        raise ValueError(texts, question)

    caplog.set_level(logging.DEBUG, logger="snne_guard")
    with Server(script("raise")) as server:
        guard = withholding(chat_openai(server), "raise", similarity=broken)
        uncertain = outcome_of(guard, way)
        strict = withholding(
            chat_openai(server), "raise", similarity=broken, on_error="raise"
        )
        unscored = outcome_of(strict, way)
    assert isinstance(uncertain, SnneGuardError)
    assert isinstance(unscored, SnneGuardError)
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text
    for error in (uncertain, unscored):
        assert places(error) == []
        assert SECRET not in "".join(traceback.format_exception(error))


# -- What is delivered is seen once, after the decision --------------------------------


class Ordered(Handler):  # type: ignore[misc]  # a class made at run time
    """A handler and observer in one, so that the order of all events is kept."""

    def on_assessment(self, assessment: Any) -> None:
        self.seen.append(("on_assessment", assessment.decision))


@pytest.mark.parametrize("way", CALLS)
def test_an_accepted_answer_is_seen_once_after_the_decision(way: str) -> None:
    handler = Ordered()
    with (
        Server(split("Paris", "Paris")) as server,
        get_usage_metadata_callback() as counter,
    ):
        guard = SNNEGuard(
            chat_openai(server),
            **REFUSING,
            observers=[handler],
        )
        message = ask(guard, way, {"callbacks": [handler]})
        requests = list(server.requests)
    streamed = way in {"stream", "astream"}
    assert handler.events == [
        "on_chat_model_start",
        "on_assessment",
        *(["on_llm_new_token"] if streamed else []),
        "on_llm_end",
    ]
    assert places(handler.seen[:2], "Paris") == []
    assert places(handler.seen[2:], "Paris")
    # Two requests of five tokens each, which brought five replies of one token.
    assert len(requests) == 2
    assert message.usage_metadata == {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 6},
    }
    (counted,) = counter.usage_metadata.values()
    assert counted == message.usage_metadata
    cost = metadata_of(message)["cost"]
    assert (cost["prompt_tokens"], cost["completion_tokens"]) == (10, 5)
    assert (cost["calls"], cost["attempts"], cost["lower_bound"]) == (2, 2, False)


@pytest.mark.parametrize("policy", ["refuse", None])
@pytest.mark.parametrize("way", CALLS)
def test_samples_are_seen_by_observers_alone(way: str, policy: Any) -> None:
    watcher = Watcher()
    options = {} if policy is None else {"threshold": 0.4, "on_uncertain": policy}
    with (
        Server(split("Paris", "Lyon", "Nice", "Metz")) as server,
        listening(way) as listeners,
    ):
        guard = SNNEGuard(chat_openai(server), observers=[watcher], **options)
        message = ask(guard, way, listeners.config)
        heard = listeners.heard
    assert {"Lyon", "Nice"} < {sample.text for sample in watcher.only.samples}
    for text in ("Lyon", "Nice", "Metz"):
        assert places([heard, message], text) == []
    (run,) = listeners.runs.traced_runs
    assert run.name == "SNNEGuard"
    assert run.child_runs == []
    starts = listeners.outer[0].events.count("on_chat_model_start")
    assert (starts, listeners.outer[0].events.count("on_llm_end")) == (1, 1)
