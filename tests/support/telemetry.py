"""OpenTelemetry's real SDK with exporters that keep everything in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    InMemoryLogRecordExporter,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON
from opentelemetry.trace import SpanContext

from snne_guard import SNNEGuard
from snne_guard_integrations.otel import OpenTelemetryObserver
from tests.support.chat_server import ChatServer, chat_openai

__all__ = ["Telemetry", "attributes", "context", "guarded", "total"]


class Telemetry:
    """Providers of all three signals, and what went through them.

    Args:
        sampled: Whether spans are recorded at all.
        logs: Whether the Logs API leads anywhere.
    """

    def __init__(self, *, sampled: bool = True, logs: bool = True) -> None:
        kept: Any = InMemoryLogRecordExporter  # its constructor has no types
        self._spans, self._logs = InMemorySpanExporter(), kept()
        self._reader = InMemoryMetricReader()
        sampler = ALWAYS_ON if sampled else ALWAYS_OFF
        self.tracer_provider = TracerProvider(sampler=sampler)
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.logger_provider = LoggerProvider()
        if logs:
            processor = SimpleLogRecordProcessor(self._logs)
            self.logger_provider.add_log_record_processor(processor)
        self.meter_provider = MeterProvider([self._reader])
        self.tracer = self.tracer_provider.get_tracer("application")

    @property
    def providers(self) -> dict[str, Any]:
        """The providers under the names that the observer gives them."""
        names = ("tracer_provider", "meter_provider", "logger_provider")
        return {name: getattr(self, name) for name in names}

    @property
    def spans(self) -> list[ReadableSpan]:
        """Every span that ended, in that order."""
        return list(self._spans.get_finished_spans())

    def role(self, name: str) -> list[ReadableSpan]:
        """Return the spans of the answer or of the samples."""
        return [
            span for span in self.spans if attributes(span)["snne_guard.role"] == name
        ]

    @property
    def events(self) -> list[ReadableLogRecord]:
        """Every event that went through the Logs API."""
        return list(self._logs.get_finished_logs())

    def metrics(self) -> dict[str, list[Any]]:
        """Return the data points of every metric."""
        found: dict[str, list[Any]] = {}
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    found[metric.name] = list(metric.data.data_points)
        return found

    def everything(self) -> str:
        """Return all that was exported, as one text to search in."""
        texts = [span.to_json() for span in self.spans]
        texts += [record.to_json() for record in self.events]
        return "\n".join([*texts, str(self.metrics())])


def attributes(span: Any) -> Mapping[str, Any]:
    """Return a span's or an event's attributes; those without a role get one."""
    return {"snne_guard.role": None, **(span.attributes or {})}


def context(span: ReadableSpan) -> SpanContext:
    """Return what identifies a span."""
    found = span.get_span_context()
    assert found is not None
    return found


def guarded(server: ChatServer, telemetry: Telemetry, **options: Any) -> SNNEGuard:
    """Return a guard on a server's model that reports to these providers."""
    observer = OpenTelemetryObserver(
        **telemetry.providers, content=options.pop("content", False)
    )
    settings = {"n": 3, "method": "snne", "threshold": 0.4, **options}
    return SNNEGuard(chat_openai(server), observers=[observer], **settings)


def total(points: list[Any], **wanted: str) -> float:
    """Return the sum of the points that have these attributes; ``__`` is a dot."""
    names = {name.replace("__", "."): value for name, value in wanted.items()}
    return sum(
        getattr(point, "value", getattr(point, "sum", 0))
        for point in points
        if names.items() <= dict(point.attributes).items()
    )
