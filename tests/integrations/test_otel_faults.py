"""Tracing that is off, down, slow or broken never touches the answer."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)

from snne_guard import SNNEGuard
from snne_guard.assess import observe
from snne_guard_integrations.otel import OpenTelemetryObserver
from tests.support.chat_server import ChatServer, always, chat_openai
from tests.support.collector import Collector
from tests.support.guarding import WHOLE, ask, record, split
from tests.support.telemetry import Telemetry, attributes, guarded, total

QUESTION = "What is the capital of Atlantis?"
APART = ["Rome", "Lyon", "Bonn", "Oslo"]


# --- over the wire --------------------------------------------------------------------


def test_a_collector_gets_spans_and_event_by_otlp() -> None:
    with Collector() as collector, ChatServer(split("Atlantis", APART)) as server:
        tracers, loggers = TracerProvider(), LoggerProvider()
        tracers.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(f"{collector.url}/v1/traces"))
        )
        loggers.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(f"{collector.url}/v1/logs"))
        )
        observer = OpenTelemetryObserver(
            tracer_provider=tracers, logger_provider=loggers
        )
        guard = SNNEGuard(chat_openai(server), n=3, threshold=0.4, observers=[observer])
        with tracers.get_tracer("application").start_as_current_span("request"):
            guard.invoke(QUESTION)
        tracers.shutdown()
        loggers.shutdown()
    spans = [
        span
        for body in collector.bodies("/v1/traces")
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]
    (event,) = (
        record
        for body in collector.bodies("/v1/logs")
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    )
    (caller,) = (span for span in spans if span.name == "request")
    chats = [span for span in spans if span.name == "chat test-model"]
    assert len(chats) == 2
    assert {span.parent_span_id for span in chats} == {caller.span_id}
    assert {span.trace_id for span in chats} == {caller.trace_id, event.trace_id}
    assert event.event_name == "gen_ai.evaluation.result"
    values = {each.key: each.value for each in event.attributes}
    assert values["gen_ai.evaluation.score.value"].double_value == 1.0
    assert values["gen_ai.evaluation.score.label"].string_value == "flag"
    assert event.span_id in {span.span_id for span in chats}


# --- many at once ---------------------------------------------------------------------


def parents_by_assessment(telemetry: Telemetry) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for span in telemetry.spans:
        assessment = attributes(span).get("snne_guard.assessment.id")
        if assessment is not None:
            assert span.parent is not None
            found.setdefault(assessment, set()).add(span.parent.span_id)
    return found


def test_fifty_threads_each_get_their_spans_under_their_own() -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)

        def call(_: int) -> tuple[str, int]:
            with telemetry.tracer.start_as_current_span("request") as caller:
                message = guard.invoke(QUESTION)
            return record(message)["id"], caller.get_span_context().span_id

        with ThreadPoolExecutor(50) as pool:
            called = dict(pool.map(call, range(50)))
    assert parents_by_assessment(telemetry) == {a: {s} for a, s in called.items()}
    assert len(telemetry.events) == 50


async def test_two_hundred_tasks_each_get_their_spans_under_their_own() -> None:
    telemetry = Telemetry()
    with ChatServer(split("Atlantis", APART)) as server:
        guard = guarded(server, telemetry)

        async def call() -> tuple[str, int]:
            with telemetry.tracer.start_as_current_span("request") as caller:
                message = await guard.ainvoke(QUESTION)
            return record(message)["id"], caller.get_span_context().span_id

        called = dict(await asyncio.gather(*(call() for _ in range(200))))
    assert parents_by_assessment(telemetry) == {a: {s} for a, s in called.items()}
    answers, samples = telemetry.role("answer"), telemetry.role("sample")
    assert (len(answers), len(samples)) == (200, 200)
    decided = telemetry.metrics()["snne_guard.assessments"]
    assert total(decided, snne_guard__decision="flag") == 200


# --- off ------------------------------------------------------------------------------


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("logs", [True, False])
def test_where_traces_are_not_sampled_metrics_and_event_still_come(
    way: str, *, logs: bool
) -> None:
    telemetry = Telemetry(sampled=False, logs=logs)
    with ChatServer(split("Poseidonia", APART)) as server:
        guard = guarded(server, telemetry, content=True)
        with telemetry.tracer.start_as_current_span("request"):
            message = ask(guard, QUESTION, way)
    assert message.text == "Poseidonia"
    assert telemetry.spans == []
    assert len(telemetry.events) == logs
    decided = telemetry.metrics()["snne_guard.assessments"]
    assert total(decided, snne_guard__decision="flag") == 1
    assert "Poseidonia" not in telemetry.everything()


def test_without_any_sdk_nothing_happens() -> None:
    with ChatServer(always("Atlantis")) as server:
        observer = OpenTelemetryObserver(content=True)
        guard = SNNEGuard(chat_openai(server), n=3, observers=[observer])
        assert guard.invoke(QUESTION).text == "Atlantis"
    assert guard.observer_failures == 0


# --- broken ---------------------------------------------------------------------------


class Broken(SpanExporter):
    """Raises, or hangs until it is let go."""

    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.hangs = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        del spans
        self.begun.set()
        if self.hangs:
            assert self.gate.wait(60)
        message = "the collector is down"
        raise ConnectionError(message)


@pytest.fixture
def broken() -> Iterator[Broken]:
    exporter = Broken()
    yield exporter
    exporter.gate.set()


def on(exporter: SpanExporter, server: ChatServer) -> SNNEGuard:
    tracers = TracerProvider()
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    observer = OpenTelemetryObserver(tracer_provider=tracers)
    return SNNEGuard(chat_openai(server), n=3, threshold=0.4, observers=[observer])


@pytest.mark.parametrize("way", WHOLE)
@pytest.mark.parametrize("hangs", [False, True])
def test_an_exporter_that_fails_or_hangs_leaves_the_answer_alone(
    way: str, broken: Broken, monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    broken.hangs = hangs
    if hangs:
        monkeypatch.setattr(observe, "_FLUSH_SECONDS", 0.1)
    with ChatServer(split("Atlantis", APART)) as server:
        guard = on(broken, server)
        messages = [ask(guard, QUESTION, way) for _ in range(3)]
    assert [message.text for message in messages] == ["Atlantis"] * 3
    assert [record(message)["decision"] for message in messages] == ["flag"] * 3
    assert broken.begun.wait(60)
    # The SDK swallows what an exporter raises; one that hangs is counted once.
    assert guard.observer_failures == hangs


PROGRAM = """
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from snne_guard import SNNEGuard
    from snne_guard_integrations.otel import OpenTelemetryObserver
    from langchain_core.language_models import FakeListChatModel

    exporter = OTLPSpanExporter({url!r}, timeout=0.5)
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    model = FakeListChatModel(responses=["Atlantis"])
    guard = SNNEGuard(model, n=3, observers=[OpenTelemetryObserver()])
    print(guard.invoke("?").text, flush=True)
"""


def test_a_process_ends_though_its_collector_never_answers() -> None:
    with Collector(answers=False) as collector:
        program = PROGRAM.format(url=f"{collector.url}/v1/traces")
        done = subprocess.run(  # noqa: S603 - this interpreter, the program above
            [sys.executable, "-c", textwrap.dedent(program)],
            capture_output=True,
            text=True,
            timeout=900,
            check=True,
        )
        assert done.stdout == "Atlantis\n"
        collector.wait_for("/v1/traces")


# --- not installed --------------------------------------------------------------------
