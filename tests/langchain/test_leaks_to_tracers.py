"""What LangSmith and instrumentations get to see of a guarded call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers
from langsmith.utils import get_env_var

from snne_guard import SNNEGuard
from tests.integrations.support import StubServer
from tests.langchain.leaks import SECRET, outcome_of, script, withholding
from tests.langchain.support import CALLS, REFUSING, chat_openai
from tests.support.openai_server import Server, split


@pytest.fixture(scope="module")
def langsmith() -> Iterator[StubServer]:
    """A stub of its server; one for all tests, for its first client is remembered."""
    with StubServer() as server:
        yield server


def _forget_environment() -> None:
    get_env_var.cache_clear()  # type: ignore[attr-defined]  # overloads hide the cache


@pytest.mark.parametrize("how", ["refuse", "raise", "fallback", "accept"])
@pytest.mark.parametrize("way", CALLS)
def test_langsmith_by_environment_sees_one_run_and_nothing_withheld(
    way: str,
    how: str,
    langsmith: StubServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    langsmith.requests.clear()
    settings = {"TRACING": "true", "API_KEY": "test", "ENDPOINT": langsmith.url}
    for name, value in settings.items():
        monkeypatch.setenv(f"LANGSMITH_{name}", value)
    _forget_environment()
    accepting = how == "accept"
    with Server(split("Paris", "Paris") if accepting else script(how)) as server:
        model = chat_openai(server)
        guard = SNNEGuard(model, **REFUSING) if accepting else withholding(model, how)
        outcome_of(guard, way)
        wait_for_all_tracers()
    monkeypatch.undo()
    _forget_environment()
    sent = langsmith.everything()
    assert "Where?" in sent
    assert "SNNEGuard" in sent
    assert "Lyon" not in sent
    assert ("Paris" in sent) is accepting
    assert SECRET not in sent
    assert '"name":"ChatOpenAI"' not in sent


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
