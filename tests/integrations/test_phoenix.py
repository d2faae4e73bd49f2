"""Annotations on spans, from Phoenix's client to a stub and to its real server."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from phoenix.client import Client

from snne_guard_integrations.phoenix import PhoenixObserver
from tests.integrations.support import (
    ASSESSMENT,
    PLACES,
    SECRETS,
    SUMMARY,
    StubServer,
    ask,
    chained,
    process,
)
from tests.support.asgi import free_port

ANNOTATIONS = "/v1/span_annotations"


class Server(StubServer):
    """Annotations that Phoenix's client has sent, and the spans of the application."""

    def __init__(self) -> None:
        super().__init__({ANNOTATIONS: {"data": []}})
        self._spans = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.tracer = self.provider.get_tracer("application")

    def observer(self, **options: Any) -> PhoenixObserver:
        return PhoenixObserver(client=Client(base_url=self.url), **options)

    @property
    def annotations(self) -> list[dict[str, Any]]:
        """Every annotation, with the name of its span."""
        names = {
            trace.format_span_id(context.span_id): span.name
            for span in self._spans.get_finished_spans()
            if (context := span.get_span_context())
        }
        return [
            {**each, "span": names[each["span_id"]]}
            for body in self.bodies(ANNOTATIONS)
            for each in json.loads(body)["data"]
        ]


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        yield server


def test_the_annotation_is_on_the_current_span(server: Server) -> None:
    with server.tracer.start_as_current_span("request"):
        server.observer().on_assessment(ASSESSMENT)
    (found,) = server.annotations
    assert found["span"] == "request"
    assert found["name"] == "snne_guard.uncertainty"
    assert found["annotator_kind"] == "CODE"
    assert found["identifier"] == ASSESSMENT.id
    result = {"score": 0.75, "label": "flag", "explanation": SUMMARY}
    assert found["result"] == result
    assert found["metadata"]["method"] == "snne"


@pytest.mark.parametrize(("way", "where"), PLACES)
def test_where_langchain_is_instrumented_it_is_on_the_span_of_the_run(
    way: str, where: str, server: Server
) -> None:
    LangChainInstrumentor().instrument(tracer_provider=server.provider)
    try:
        with server.tracer.start_as_current_span("request"):
            ask(chained(server.observer()), way)
    finally:
        LangChainInstrumentor().uninstrument()
    (found,) = server.annotations
    assert found["span"] == where


def test_without_a_sampled_span_nothing_is_sent(server: Server) -> None:
    server.observer().on_assessment(ASSESSMENT)
    tracer = TracerProvider(sampler=ALWAYS_OFF).get_tracer("application")
    with tracer.start_as_current_span("request"):
        server.observer().on_assessment(ASSESSMENT)
    assert server.requests == []


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_sent_only_if_asked_for(content: bool, server: Server) -> None:
    with server.tracer.start_as_current_span("request"):
        server.observer(content=content).on_assessment(ASSESSMENT)
    sent = server.everything()
    assert [secret in sent for secret in SECRETS] == [content] * 3


@pytest.mark.slow
def test_a_real_server_shows_the_annotation_on_its_span(tmp_path: Path) -> None:
    # Its server cannot share an environment with MLflow's, so it may be elsewhere.
    beside = shutil.which("phoenix", path=str(Path(sys.executable).parent))
    command = os.environ.get("SNNE_GUARD_PHOENIX") or beside
    if command is None:
        pytest.skip("needs Phoenix's server; SNNE_GUARD_PHOENIX names its program")
    url = f"http://127.0.0.1:{(port := free_port())}"
    env = {
        "PHOENIX_WORKING_DIR": str(tmp_path),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    with process([command, "serve"], env=env, ready=f"{url}/healthz", folder=tmp_path):
        provider = TracerProvider()
        exporter = OTLPSpanExporter(f"{url}/v1/traces")
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        tracer = provider.get_tracer("application")
        with tracer.start_as_current_span("request") as span:
            client = Client(base_url=url)
            PhoenixObserver(client=client).on_assessment(ASSESSMENT)
        span_id = trace.format_span_id(span.get_span_context().span_id)
        found = read_annotations(client, span_id)
    assert found[0]["result"]["score"] == 0.75
    assert found[0]["result"]["label"] == "flag"


def read_annotations(client: Client, span_id: str) -> list[dict[str, Any]]:
    """Return a span's annotations; Phoenix looks for the span every ten seconds.

    Until it has found one, there is no project, and the client raises.
    """
    for _ in range(60):
        with suppress(httpx.HTTPStatusError):
            found = client.spans.get_span_annotations(
                span_ids=[span_id], project_identifier="default"
            )
            if found:
                return [dict(each) for each in found]
        time.sleep(1)
    pytest.fail("no annotation has arrived")
