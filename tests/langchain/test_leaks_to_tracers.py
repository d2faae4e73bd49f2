"""What LangSmith and instrumentations get to see of a guarded call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith.utils import get_env_var

from snne_guard import SNNEGuard
from tests.langchain.leaks import SECRET, outcome_of, script, withholding
from tests.langchain.support import CALLS, chat_openai
from tests.support.openai_server import Server, split


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
    recorded = span.to_json()
    assert (SECRET in recorded) is (how == "flag")
    assert "Lyon" not in recorded
