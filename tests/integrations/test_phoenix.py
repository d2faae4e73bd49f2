"""Uncertainty on the span in Phoenix, read back from a real server."""

from __future__ import annotations

import pickle
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from snne_guard import Assessment, GuardedChatModel, SNNEGuard
from snne_guard.errors import ConfigurationError
from snne_guard.types import Cost, Sample
from snne_guard_integrations.phoenix import PhoenixObserver
from tests.integrations.conftest import Needs
from tests.support.chat_server import ChatServer, chat_openai
from tests.support.examples import run
from tests.support.guarding import split
from tests.support.tracing_servers import TracingServer

QUESTION = "Who founded the town of Ebnat?"
NAME = "snne_guard.uncertainty"
SECONDS = 120.0
"""How long an annotation may take; Phoenix looks for its span every ten seconds."""


class Project:
    """A project of one test, which OpenTelemetry sends spans to."""

    def __init__(self, url: str, needs: Needs, **options: Any) -> None:
        otlp = needs("opentelemetry.exporter.otlp.proto.http.trace_exporter")
        sdk, export = needs("opentelemetry.sdk.trace"), "opentelemetry.sdk.trace.export"
        resources = needs("opentelemetry.sdk.resources")
        self.name = f"test {uuid4()}"
        self.client = needs("phoenix.client").Client(base_url=url)
        self.provider = sdk.TracerProvider(
            resource=resources.Resource({"openinference.project.name": self.name}),
            **options,
        )
        exporter = otlp.OTLPSpanExporter(f"{url}/v1/traces")
        self.provider.add_span_processor(needs(export).BatchSpanProcessor(exporter))
        self.tracer = self.provider.get_tracer("test")

    def annotations(self, count: int) -> list[dict[str, Any]]:
        """Return the annotations as soon as so many are there, each with its span."""
        self.provider.force_flush()
        deadline = time.monotonic() + SECONDS
        found: list[dict[str, Any]] = []
        while len(found) < count and time.monotonic() < deadline:
            found = self._read()
        return found

    def _read(self) -> list[dict[str, Any]]:
        import httpx

        names = {each["context"]["span_id"]: each["name"] for each in self.spans()}
        try:
            found = self.client.spans.get_span_annotations(
                span_ids=list(names), project_identifier=self.name
            )
        except (httpx.HTTPStatusError, ValueError):  # no span has arrived
            found = []
        if not found:
            time.sleep(0.2)
        return [{**each, "span": names[each["span_id"]]} for each in found]

    def spans(self) -> list[dict[str, Any]]:
        """Return the spans that have arrived."""
        import httpx

        try:
            found = self.client.spans.get_spans(project_identifier=self.name, limit=100)
        except httpx.HTTPStatusError:
            return []
        return list(found)


@pytest.fixture
def project(phoenix_at: TracingServer, needs: Needs) -> Iterator[Project]:
    project = Project(phoenix_at.url, needs)
    yield project
    project.provider.shutdown()


@pytest.fixture
def instrumented(project: Project, needs: Needs) -> Iterator[None]:
    module = needs("openinference.instrumentation.langchain")
    module.LangChainInstrumentor().instrument(tracer_provider=project.provider)
    yield
    module.LangChainInstrumentor().uninstrument()


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer(split("Wendelin", ["Bonifaz", "Gallus"])) as server:
        yield server


def guarded(chat: ChatServer, observer: PhoenixObserver, **options: Any) -> SNNEGuard:
    options = {"n": 3, "method": "snne", "threshold": 0.2, **options}
    return SNNEGuard(chat_openai(chat), observers=[observer], **options)


async def test_the_score_is_on_the_span_that_the_call_was_made_in(
    project: Project, phoenix_at: TracingServer, chat: ChatServer
) -> None:
    guard = guarded(chat, PhoenixObserver(phoenix_at.url))
    with project.tracer.start_as_current_span("outer"):
        guard.invoke(QUESTION)
        guard.invoke(QUESTION)  # which does not replace what the first one said
    with project.tracer.start_as_current_span("async"):
        await guard.ainvoke(QUESTION)
    unscored = Assessment(
        id="1",
        answer=Sample(text="lookup()"),
        decision="accept",
        reasons=("tool_calls",),
        cost=Cost(calls=1, prompt_tokens=9),
    )
    with project.tracer.start_as_current_span("unscored"):
        PhoenixObserver(phoenix_at.url).on_assessment(unscored)
    found = {each["identifier"]: each for each in project.annotations(4)}
    last = found.pop("1")
    assert [each["span"] for each in found.values()].count("outer") == 2
    assert {each["span"] for each in found.values()} == {"outer", "async"}
    for each in found.values():
        assert (each["name"], each["annotator_kind"]) == (NAME, "CODE")
        assert each["result"]["label"] == "flag"
        assert 0.2 < each["result"]["score"] <= 1
        assert each["result"]["explanation"].startswith("reasons: none; 3 of 3 answers")
        assert each["metadata"]["cost"]["calls"] == 2
        assert each["identifier"] == each["metadata"]["id"]
    assert last["result"]["label"] == "unscored"
    assert last["result"].get("score") is None
    assert last["result"]["explanation"].startswith("reasons: tool_calls; ")
    assert guard.observer_failures == 0


@pytest.mark.usefixtures("instrumented")
async def test_where_langchain_is_instrumented_it_is_on_the_guards_own_span(
    project: Project, phoenix_at: TracingServer, chat: ChatServer
) -> None:
    guard = guarded(chat, PhoenixObserver(phoenix_at.url))
    with project.tracer.start_as_current_span("outer"):
        guard.invoke(QUESTION)
        await guard.ainvoke(QUESTION)
        GuardedChatModel(guard).invoke(QUESTION)
        await GuardedChatModel(guard).ainvoke(QUESTION)
    found = project.annotations(4)
    assert sorted(each["span"] for each in found) == [
        *["GuardedChatModel"] * 2,
        *["SNNEGuard"] * 2,
    ]


def test_without_a_span_it_gets_one_of_its_own(
    project: Project, phoenix_at: TracingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import trace

    monkeypatch.setattr(trace, "get_tracer", project.provider.get_tracer)
    observer = PhoenixObserver(phoenix_at.url)
    observer.on_assessment(Assessment(id="1", answer=None, uncertainty=0.5))
    (found,) = project.annotations(1)
    assert found["span"] == "snne_guard"
    assert found["result"]["score"] == 0.5
    assert found["result"].get("label") is None  # nothing was decided


def test_without_a_tracer_it_says_what_is_missing(
    needs: Needs, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("phoenix.client")
    trace = needs("opentelemetry.trace")
    monkeypatch.setattr(trace, "get_tracer", trace.NoOpTracerProvider().get_tracer)
    observer = PhoenixObserver("http://127.0.0.1:9")
    with pytest.raises(ConfigurationError, match="set up OpenTelemetry"):
        observer.on_assessment(Assessment(id="1", answer=None, uncertainty=0.5))


def test_a_span_that_the_sampler_leaves_out_is_not_annotated(needs: Needs) -> None:
    off = needs("opentelemetry.sdk.trace.sampling").ALWAYS_OFF
    provider = needs("opentelemetry.sdk.trace").TracerProvider(sampler=off)
    # Sending anything there would raise.
    observer = PhoenixObserver("http://127.0.0.1:9")
    with provider.get_tracer("test").start_as_current_span("left out"):
        observer.on_assessment(Assessment(id="1", answer=None, uncertainty=0.5))


def test_texts_are_stored_only_where_they_are_asked_for(
    project: Project, phoenix_at: TracingServer
) -> None:
    words = {
        content: [f"{word}{content}".lower() for word in ("zanzibar", "quetzal", "yt")]
        for content in (False, True)
    }
    for content, (question, answer, sample) in words.items():
        observer = PhoenixObserver(phoenix_at.url, content=content)
        with (
            ChatServer(split(answer, [sample])) as chat,
            project.tracer.start_as_current_span(f"content {content}"),
        ):
            guarded(chat, observer, n=2).invoke(question)
    found = {each["span"]: each["metadata"] for each in project.annotations(2)}
    stored = everything(phoenix_at)
    assert [word in stored for word in words[True]] == [True] * 3
    assert [word in stored for word in words[False]] == [False] * 3
    assert found["content True"]["question"] == words[True][0]
    assert found["content True"]["samples"] == words[True][2:]
    assert not {"question", "answer", "samples"} & set(found["content False"])


def everything(server: TracingServer) -> str:
    """Return all that the server has stored: its files, and its rows as JSON."""
    with closing(sqlite3.connect(server.folder / "phoenix.db")) as database:
        rows = "\n".join(database.iterdump())
    return server.stored().decode(errors="replace") + rows


def test_an_observer_travels_to_another_process(needs: Needs) -> None:
    needs("phoenix.client")
    again = pickle.loads(pickle.dumps(PhoenixObserver(content=True)))  # noqa: S301 - ours
    assert isinstance(again, PhoenixObserver)


@pytest.mark.usefixtures("embedded")
def test_the_example_reads_back_what_it_sent(
    phoenix_at: TracingServer, needs: Needs
) -> None:
    needs("openinference.instrumentation.langchain")
    done = run("integrations/with_phoenix", phoenix_at.url)
    assert done.returncode == 0, done.stderr
    print(done.stdout)  # noqa: T201 - what was read back, with pytest -s
    assert "Au" in done.stdout
    assert ": SNNEGuard\n" in done.stdout
    assert "snne_guard.uncertainty = 0." in done.stdout
    assert "source CODE" in done.stdout
