"""Where an answer may be withheld, nobody sees it before the decision, or ever."""

from __future__ import annotations

import dataclasses
import json
import logging
import pickle
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest
from langchain_core.callbacks import (
    AsyncCallbackHandler,
    BaseCallbackHandler,
    get_usage_metadata_callback,
)
from langchain_core.globals import set_debug
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tracers.context import collect_runs, register_configure_hook
from langchain_core.tracers.langchain import wait_for_all_tracers
from langgraph.graph import START, MessagesState, StateGraph
from langsmith.utils import get_env_var
from pydantic import BaseModel

from snne_guard import SNNEGuard, SnneGuardError
from tests.langchain.support import (
    CALLS,
    ask,
    chat_openai,
    in_loop,
    metadata_of,
)
from tests.support.observers import Watcher
from tests.support.openai_server import Answer, Asked, Scripted, Server, split

SECRET = "Xanadu-by-the-lake"  # noqa: S105 - no password
SAMPLES = (SECRET, "Lyon", "Nice", "Metz")  # one sample repeats the withheld answer

WITHHOLDING: dict[str, dict[str, Any]] = {
    "refuse": {"on_uncertain": "refuse"},
    "raise": {"on_uncertain": "raise"},
    "fallback": {
        "on_uncertain": "fallback",
        "fallback": RunnableLambda(lambda _messages: AIMessage("Ask a librarian.")),
    },
    "a function that refuses": {"on_uncertain": lambda _assessment: "refuse"},
    "a function that raises": {"on_uncertain": lambda _assessment: "raise"},
    "a function that breaks": {"on_uncertain": lambda _assessment: 1 // 0},
    "a function that answers": {"on_uncertain": lambda _assessment: AIMessage("Hm.")},
    "pair": {"threshold": (0.0, 0.01)},
    "on_error": {"on_error": "raise", "min_samples": 5},
}


def script(how: str) -> Scripted:
    if how != "on_error":
        return split(SECRET, *SAMPLES)
    return lambda asked: (
        Answer(status=403) if asked.is_sample else Answer(texts=[SECRET])
    )


def withholding(model: Runnable[Any, Any], how: str, **more: Any) -> SNNEGuard:
    return SNNEGuard(model, **{"threshold": 0.0, **WITHHOLDING[how], **more})


# -- The search ------------------------------------------------------------------------


def places(value: Any, text: str = SECRET) -> list[str]:
    """Return where in a value a text is: in containers, fields, causes and reprs."""
    return list(_search(text, value, "value", set()))


def _search(text: str, value: Any, where: str, seen: set[int]) -> Iterator[str]:
    if isinstance(value, str | bytes):
        held = value if isinstance(value, str) else value.decode(errors="replace")
        if text in held:
            yield where
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    inside = False
    for name, part in _parts(value):
        for place in _search(text, part, f"{where}.{name}", seen):
            inside = True
            yield place
    shown = str(value) if isinstance(value, BaseException) else ""
    if not inside and text in f"{value!r}{shown}":
        yield where


def _parts(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield "keys", list(value)
        yield from value.items()
    elif isinstance(value, BaseException):
        yield "args", value.args
        yield "attributes", vars(value)
        yield "cause", value.__cause__
        yield "context", value.__context__
    elif isinstance(value, BaseModel):
        yield from vars(value).items()
    elif dataclasses.is_dataclass(value):
        yield from ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
    elif isinstance(value, list | tuple | set | frozenset):
        yield from enumerate(value)


def test_the_search_finds_what_is_hidden() -> None:
    error = ValueError("no")
    error.__cause__ = KeyError([AIMessage("x", additional_kwargs={"a": [SECRET]})])
    assert places({"a": [1, error]}) == [
        "value.a.1.cause.args.0.0.additional_kwargs.a.0"
    ]
    assert places([AIMessage("y"), {"b": b"z"}]) == []


class Recorder:
    """Keeps all that a handler is told, as ``(event, arguments)``."""

    run_inline = True

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, Any]] = []

    @property
    def events(self) -> list[str]:
        return [name for name, _ in self.seen]


def _record(name: str) -> Callable[..., None]:
    return lambda self, *args, **kwargs: self.seen.append((name, (args, kwargs)))


def _arecord(name: str) -> Callable[..., Any]:
    async def record(self: Recorder, *args: Any, **kwargs: Any) -> None:
        self.seen.append((name, (args, kwargs)))

    return record


# From the base class, so that an event of a newer version is not missed.
EVENTS = [name for name in dir(BaseCallbackHandler) if name.startswith("on_")]
Handler: Any = type(
    "Handler",
    (Recorder, BaseCallbackHandler),
    {name: _record(name) for name in EVENTS},
)
AsyncHandler: Any = type(
    "AsyncHandler",
    (Recorder, AsyncCallbackHandler),
    {name: _arecord(name) for name in EVENTS},
)


class ByEnvironment(Handler):  # type: ignore[misc]  # a class made at run time
    """A tracer that an environment variable switches on."""

    born: ClassVar[list[ByEnvironment]] = []

    def __init__(self) -> None:
        super().__init__()
        self.born.append(self)


_tracer: ContextVar[ByEnvironment | None] = ContextVar("tracer", default=None)
register_configure_hook(
    _tracer, inheritable=True, handle_class=ByEnvironment, env_var="TEST_TRACING"
)


class Listeners:
    """Everything that LangChain lets one listen with, switched on.

    Attributes:
        config: What the caller passes.
        inner: Handlers of the guarded model itself.
        outer: Handlers that the guard is told of.
    """

    def __init__(self, way: str, stack: ExitStack) -> None:
        kinds = [Handler, AsyncHandler] if way.startswith("a") else [Handler]
        self.outer = [kind() for kind in kinds]
        self.inner = [Handler(), Handler()]
        self.config = {"callbacks": list(self.outer)}
        self.usage = stack.enter_context(get_usage_metadata_callback())
        self.runs = stack.enter_context(collect_runs())
        ByEnvironment.born.clear()

    @property
    def heard(self) -> dict[str, Any]:
        hooked = [handler.seen for handler in ByEnvironment.born]
        assert hooked, "the hook was not called"
        return {
            "outer": [handler.seen for handler in self.outer],
            "inner": [handler.seen for handler in self.inner],
            "hooked": hooked,
            "runs": [run.model_dump() for run in self.runs.traced_runs],
            "usage": self.usage.usage_metadata,
        }


@contextmanager
def listening(way: str) -> Iterator[Listeners]:
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_TRACING", "true")
        set_debug(True)
        try:
            yield Listeners(way, stack)
        finally:
            set_debug(False)


def outcome_of(guard: Runnable[Any, Any], way: str, config: Any = None) -> Any:
    try:
        return ask(guard, way, config)
    except (SnneGuardError, ZeroDivisionError) as error:
        return error


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
    (assessment,) = watcher.assessments
    assert assessment.answer is not None
    assert assessment.answer.text == SECRET  # it was drawn, so it could have leaked
    assert places(heard) == []
    assert places(outcome) == []
    kept = pickle.dumps(outcome)
    assert SECRET.encode() not in kept
    assert str(pickle.loads(kept)) == str(outcome)  # noqa: S301 - our own
    assert SECRET not in repr(assessment)
    ours = [r.getMessage() for r in caplog.records if r.name.startswith("snne_guard")]
    assert SECRET not in "".join(ours)
    assert SECRET not in "".join(capsys.readouterr())
    if isinstance(outcome, BaseException):
        shown = traceback.TracebackException.from_exception(
            outcome, capture_locals=True
        )
        assert SECRET not in "".join(shown.format())
    assert listeners.inner[0].seen == listeners.inner[1].seen == []


@pytest.mark.filterwarnings("ignore:astream_log is deprecated")
@pytest.mark.parametrize("how", WITHHOLDING)
def test_a_withheld_answer_is_in_no_event(how: str) -> None:
    found: list[Any] = []

    async def events(guard: SNNEGuard) -> None:
        found.extend([event async for event in guard.astream_events("Where?")])

    async def log(guard: SNNEGuard) -> None:
        found.extend([patch async for patch in guard.astream_log("Where?")])

    with Server(script(how)) as server:
        guard = withholding(chat_openai(server), how)
        for listen in (events, log):
            before = len(found)
            try:
                in_loop(listen(guard))
            except (SnneGuardError, ZeroDivisionError) as error:
                found.append(error)
            assert len(found) > before
    assert places(found) == []


def graph_around(guard: SNNEGuard, *, asynchronous: bool) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [guard.invoke(state["messages"])]}

    async def anode(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await guard.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", RunnableLambda(anode if asynchronous else node))
    graph.add_edge(START, "model")
    return graph.compile()


MODES = ["messages", "updates", "values", "debug", "custom", "tasks"]


def parts_of(app: Any, asynchronous: bool) -> list[tuple[str, Any]]:
    given = {"messages": [("user", "Where?")]}

    async def read() -> list[Any]:
        return [part async for part in app.astream(given, stream_mode=MODES)]

    return (
        in_loop(read())
        if asynchronous
        else list(app.stream(given, None, stream_mode=MODES))
    )


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("how", ["refuse", "fallback", "pair", "accept", "flag"])
def test_langgraph_streams_what_is_delivered_once(how: str, asynchronous: bool) -> None:
    if how in WITHHOLDING:
        said = "Ask a librarian." if how == "fallback" else "No."
        serve, options = script(how), {"threshold": 0.0, **WITHHOLDING[how]}
    else:
        said, serve = "Paris", split("Paris", "Paris" if how == "accept" else "Lyon")
        policy = "refuse" if how == "accept" else "flag"
        options = {"threshold": 0.4, "on_uncertain": policy}
    with Server(serve) as server:
        guard = SNNEGuard(chat_openai(server), refusal="No.", **options)
        app = graph_around(guard, asynchronous=asynchronous)
        parts = parts_of(app, asynchronous)
    assert places(parts) == []
    assert places(parts, "Lyon") == []
    chunks = [part[0] for mode, part in parts if mode == "messages"]
    assert "".join(str(chunk.text) for chunk in chunks) == said
    assert len({chunk.id for chunk in chunks}) == 1


# -- LangSmith and instrumentations ----------------------------------------------------


@pytest.fixture(scope="module")
def langsmith() -> Iterator[tuple[str, list[bytes]]]:
    """A stub of its server: its address, and what it receives.

    One for all tests: LangSmith remembers its first client.
    """
    received: list[bytes] = []

    class Stub(BaseHTTPRequestHandler):
        def _take(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            received.append(self.rfile.read(length))
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        do_GET = do_POST = do_PATCH = _take  # noqa: N815 - http.server's names

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Stub) as stub:
        work = threading.Thread(target=stub.serve_forever, args=(0.01,), daemon=True)
        work.start()
        yield f"http://127.0.0.1:{stub.server_port}", received
        stub.shutdown()


def _forget_environment() -> None:
    get_env_var.cache_clear()  # type: ignore[attr-defined]  # overloads hide the cache


@pytest.mark.parametrize("how", ["refuse", "raise", "fallback", "accept"])
@pytest.mark.parametrize("way", CALLS)
def test_langsmith_by_environment_sees_one_run_and_nothing_withheld(
    way: str,
    how: str,
    langsmith: tuple[str, list[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, received = langsmith
    received.clear()
    settings = {"TRACING": "true", "API_KEY": "test", "ENDPOINT": address}
    for name, value in settings.items():
        monkeypatch.setenv(f"LANGSMITH_{name}", value)
    _forget_environment()
    accepting = how == "accept"
    with Server(split("Paris", "Paris") if accepting else script(how)) as server:
        model = chat_openai(server)
        if accepting:
            guard = SNNEGuard(model, threshold=0.4, on_uncertain="refuse")
        else:
            guard = withholding(model, how)
        outcome_of(guard, way)
        wait_for_all_tracers()
    monkeypatch.undo()
    _forget_environment()
    sent = b"".join(received)
    assert b"Where?" in sent
    assert b"SNNEGuard" in sent
    assert b"Lyon" not in sent
    assert (b"Paris" in sent) is accepting
    assert SECRET.encode() not in sent
    assert b'"name":"ChatOpenAI"' not in sent


@pytest.fixture
def spans() -> Iterator[Callable[[], list[Any]]]:
    """OpenInference, which patches ``BaseCallbackManager.__init__``."""
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import (
        InMemorySpanExporter,
    )

    memory, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield lambda: list(memory.get_finished_spans())
    instrumentor.uninstrument()


@pytest.mark.parametrize("how", ["refuse", "raise", "flag"])
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_an_instrumentation_sees_the_run_of_the_guard_alone(
    way: str, how: str, spans: Callable[[], list[Any]]
) -> None:
    with Server(script(how)) as server:
        options: Any = {"threshold": 0.0, "on_uncertain": how}
        outcome_of(SNNEGuard(chat_openai(server), **options), way)
    (span,) = spans()
    assert span.name == "SNNEGuard"
    told = span.to_json()
    assert (SECRET in told) is (how == "flag")
    assert "Lyon" not in told


# -- What is accepted is seen once, after the decision ---------------------------------


class Ordered(Handler):  # type: ignore[misc]  # a class made at run time
    """A handler and observer in one, so that the order of all events is kept."""

    def on_assessment(self, assessment: Any) -> None:
        self.seen.append(("on_assessment", assessment.decision))


@pytest.mark.parametrize("way", CALLS)
def test_an_accepted_answer_is_seen_once_after_the_decision(way: str) -> None:
    handler = Ordered()
    with Server(split("Paris", "Paris")) as server, get_usage_metadata_callback() as by:
        guard = SNNEGuard(
            chat_openai(server),
            threshold=0.4,
            on_uncertain="refuse",
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
    usage = message.usage_metadata
    assert usage == {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_token_details": {"cache_read": 6},
    }
    (counted,) = by.usage_metadata.values()
    assert counted == usage
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
    (assessment,) = watcher.assessments
    assert {"Lyon", "Nice"} < {sample.text for sample in assessment.samples}
    for text in ("Lyon", "Nice", "Metz"):
        assert places([heard, message], text) == []
    (run,) = listeners.runs.traced_runs
    assert run.name == "SNNEGuard"
    assert run.child_runs == []
    starts = listeners.outer[0].events.count("on_chat_model_start")
    assert (starts, listeners.outer[0].events.count("on_llm_end")) == (1, 1)


def test_a_withheld_tool_call_does_not_leak_its_arguments() -> None:
    def calling(asked: Asked) -> Answer:
        where = "Lyon" if asked.is_sample else SECRET
        function = {"name": "go", "arguments": json.dumps({"to": where})}
        call = {"id": "c", "type": "function", "function": function}
        message = {"content": None, "tool_calls": [call]}
        return Answer(message=message, finish="tool_calls")

    handler = Handler()
    with Server(calling) as server:
        guard = withholding(chat_openai(server), "refuse", tool_calls="score")
        message = guard.invoke("Where?", {"callbacks": [handler]})
    assert metadata_of(message)["decision"] == "refuse"
    assert not message.tool_calls
    assert places([handler.seen, message]) == []


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_failing_similarity_tells_no_text(
    way: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(texts: Any, *, question: str | None = None) -> Any:
        raise ValueError(texts, question)

    caplog.set_level(logging.DEBUG, logger="snne_guard")
    with Server(script("raise")) as server:
        guard = withholding(chat_openai(server), "raise", similarity=broken)
        error = outcome_of(guard, way)
        strict = withholding(
            chat_openai(server), "raise", similarity=broken, on_error="raise"
        )
        raised = outcome_of(strict, way)
    assert isinstance(error, SnneGuardError)
    assert "ValueError" in caplog.text
    assert SECRET not in caplog.text
    for each in (error, raised):
        assert places(each) == []
        assert SECRET not in "".join(traceback.format_exception(each))
