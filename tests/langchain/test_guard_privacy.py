"""Where an answer may be withheld, nobody sees it before the decision, or ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.globals import set_debug
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tracers.context import collect_runs, register_configure_hook
from langgraph.graph import START, MessagesState, StateGraph

from snne_guard import GuardedChatModel, SNNEGuard, SnneGuardError
from snne_guard.langchain import is_refusal
from tests.support.chat_server import ChatServer, Reply, ToolCall, chat_openai
from tests.support.guarding import WAYS, Witness, ask, record, split
from tests.support.handlers import AsyncEverythingHandler, EverythingHandler, find_text

WITHHELD = "Xanadu-by-the-lake"
SAMPLES = [WITHHELD, "Lyon", "Nice", "Metz"]  # one sample repeats the withheld answer

WITHHOLDING: dict[str, dict[str, Any]] = {
    "refuse": {"on_uncertain": "refuse"},
    "raise": {"on_uncertain": "raise"},
    "fallback": {"on_uncertain": "fallback", "fallback": lambda _messages: "Ask."},
    "callable": {"on_uncertain": lambda _assessment: "refuse"},
    "pair": {"threshold": (0.0, 0.01)},
    "on_error": {"on_error": "raise", "min_samples": 5, "max_attempts": 1},
}


def guarded(model: Runnable[Any, Any], how: str, **more: Any) -> SNNEGuard:
    options: dict[str, Any] = {"threshold": 0.0, **WITHHOLDING[how], **more}
    return SNNEGuard(model, **options)


def ask_quietly(runnable: Runnable[Any, Any], way: str, config: Any) -> object:
    try:
        return ask(runnable, "Where?", way, config)
    except SnneGuardError as error:
        return error


def script(how: str) -> Any:
    if how != "on_error":
        return split(WITHHELD, SAMPLES)
    return split(WITHHELD, lambda _request: Reply(texts=["a"], status=401))


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("how", WITHHOLDING)
@pytest.mark.parametrize("way", WAYS)
def test_a_withheld_answer_reaches_no_handler_stream_or_log(
    way: str, how: str, chat_model: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="snne_guard")
    handlers: list[EverythingHandler | AsyncEverythingHandler] = [
        EverythingHandler() for _ in range(3)
    ]
    if way.startswith("a"):
        handlers.append(AsyncEverythingHandler())
    with ChatServer(script(how)) as server:
        inner = chat_openai(server, callbacks=[handlers[1]])
        model = inner.with_config(callbacks=[handlers[2]])
        witness = Witness()
        guard = guarded(model, how, observers=[witness])
        runnable = GuardedChatModel(guard) if chat_model else guard
        config = {"callbacks": [handlers[0], *handlers[3:]]}
        outcome = ask_quietly(runnable, way, config)
    # The observer has it; so it was drawn, and the search would find it.
    assert witness.last.answer is not None
    assert witness.last.answer.text == WITHHELD
    assert handlers[0].events
    assert {"on_llm_end", "on_chat_model_start"} <= {
        name for handler in handlers for name in handler.names
    }
    for handler in handlers:
        assert handler.leaks(WITHHELD) == []
    assert find_text(WITHHELD, outcome) == []
    assert WITHHELD not in caplog.text
    assert WITHHELD not in repr(witness.last)


@pytest.mark.parametrize("chat_model", [False, True])
def test_a_withheld_answer_reaches_no_event(chat_model: bool) -> None:
    async def events() -> list[Any]:
        with ChatServer(script("refuse")) as server:
            guard = guarded(chat_openai(server), "refuse")
            runnable = GuardedChatModel(guard) if chat_model else guard
            return [event async for event in runnable.astream_events("Where?")]

    found = asyncio.run(events())
    assert len(found) >= 3
    assert find_text(WITHHELD, found) == []


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("how", ["refuse", "flag"])
def test_langgraph_streams_the_delivered_message_once_and_no_sample(
    how: str, chat_model: bool
) -> None:
    with ChatServer(split("Paris", SAMPLES)) as server:
        options: dict[str, Any] = {
            "threshold": 0.0,
            "on_uncertain": how,
            "refusal": "No.",
        }
        guard = SNNEGuard(chat_openai(server), **options)
        runnable: Runnable[Any, Any] = GuardedChatModel(guard) if chat_model else guard

        def node(state: MessagesState) -> dict[str, Any]:
            return {"messages": [runnable.invoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("model", node)
        graph.add_edge(START, "model")
        app = graph.compile()
        given: Any = {"messages": [("user", "Where?")]}
        streamed: list[Any] = list(app.stream(given, stream_mode="messages"))
    texts = [str(part[0].text) for part in streamed]
    assert "".join(texts) == ("No." if how == "refuse" else "Paris")
    assert len({part[0].id for part in streamed}) == 1


class Open(BaseCallbackHandler):
    """A handler that is set by a context variable alone, past every configuration."""


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_tracers_from_context_variables_see_no_withheld_text(way: str) -> None:
    with ChatServer(script("refuse")) as server:
        guard = guarded(chat_openai(server), "refuse")
        with collect_runs() as runs:
            ask(guard, "Where?", way)
    assert runs.traced_runs
    assert find_text(WITHHELD, [run.model_dump() for run in runs.traced_runs]) == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_handlers_see_samples_only_where_the_switch_allows(way: str) -> None:
    for allowed in (True, False):
        handler = EverythingHandler()
        with ChatServer(split("Paris", ["Lyon"])) as server:
            guard = SNNEGuard(chat_openai(server), trace_samples=allowed)
            ask(guard, "Where?", way, {"callbacks": [handler]})
        assert bool(handler.leaks("Lyon")) is allowed
        assert handler.leaks("Paris")


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_an_accepted_answer_is_shown_to_handlers_after_the_decision(way: str) -> None:
    handler = EverythingHandler()
    with ChatServer(split("Paris", ["Paris"])) as server:
        guard = SNNEGuard(chat_openai(server), threshold=0.4, on_uncertain="refuse")
        ask(guard, "Where?", way, {"callbacks": [handler]})
    assert handler.leaks("Paris")
    ends = [event for event in handler.events if event.name == "on_llm_end"]
    assert len(ends) == 2


def tool_answer() -> Iterator[Reply]:
    yield Reply(
        texts=[None], tool_calls=[[ToolCall(name="f", arguments={"a": WITHHELD})]]
    )


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_withheld_tool_calls_do_not_leak_their_arguments(way: str) -> None:
    (calling,) = tool_answer()
    other = Reply(texts=[None], tool_calls=[[ToolCall(name="g", arguments={})]])
    handler = EverythingHandler()
    with ChatServer(split(lambda _r: calling, lambda _r: other)) as server:
        guard = guarded(chat_openai(server), "refuse", tool_calls="score")
        message = ask(guard, "Where?", way, {"callbacks": [handler]})
    assert not message.tool_calls
    assert handler.leaks(WITHHELD) == []


def test_a_chat_model_is_what_agents_ask_for() -> None:
    with ChatServer(script("refuse")) as server:
        assert isinstance(
            GuardedChatModel(guarded(chat_openai(server), "refuse")), BaseChatModel
        )


def frames_hold(error: BaseException, text: str) -> list[str]:
    """Return which local variables of an error's own frames hold a text."""
    found: list[str] = []
    frame = error.__traceback__
    while frame is not None:
        for name, value in frame.tb_frame.f_locals.items():
            if "snne_guard/langchain" in frame.tb_frame.f_code.co_filename:
                found += find_text(
                    text, value, f"{frame.tb_frame.f_code.co_name}.{name}"
                )
        frame = frame.tb_next
    return found


@pytest.mark.parametrize("chat_model", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_no_frame_of_the_raised_error_holds_the_withheld_text(
    way: str, chat_model: bool
) -> None:
    with ChatServer(script("raise")) as server:
        guard = guarded(chat_openai(server), "raise")
        runnable = GuardedChatModel(guard) if chat_model else guard
        error = ask_quietly(runnable, way, None)
    assert isinstance(error, SnneGuardError)
    assert frames_hold(error, WITHHELD) == []


class Uninvited(EverythingHandler):
    """A tracer that an environment variable switches on, past every configuration."""

    born: ClassVar[list[Uninvited]] = []

    def __init__(self) -> None:
        super().__init__()
        self.born.append(self)


_uninvited: ContextVar[Uninvited | None] = ContextVar("uninvited", default=None)
register_configure_hook(
    _uninvited, inheritable=True, handle_class=Uninvited, env_var="UNINVITED_TRACING"
)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_tracers_from_environment_variables_see_no_withheld_text(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNINVITED_TRACING", "true")
    Uninvited.born.clear()
    with ChatServer(script("refuse")) as server:
        ask(guarded(chat_openai(server), "refuse"), "Where?", way)
    assert Uninvited.born
    assert [
        leak for handler in Uninvited.born for leak in handler.leaks(WITHHELD)
    ] == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_debugging_prints_no_withheld_text(
    way: str, capsys: pytest.CaptureFixture[str]
) -> None:
    set_debug(True)
    try:
        with ChatServer(script("refuse")) as server:
            ask(guarded(chat_openai(server), "refuse"), "Where?", way)
    finally:
        set_debug(False)
    printed = capsys.readouterr().out
    assert "Where?" in printed
    assert WITHHELD not in printed


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_a_guarded_fallback_that_refuses_is_marked_as_a_refusal(way: str) -> None:
    with ChatServer(script("refuse")) as server:
        model = chat_openai(server)
        inner = guarded(model, "refuse", refusal="No.")
        guard = guarded(model, "fallback", fallback=inner)
        message = ask(guard, "Where?", way)
    assert message.text == "No."
    assert is_refusal(message)
    assert record(message)["fallback"]["decision"] == "refuse"
