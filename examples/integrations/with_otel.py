"""OpenTelemetry: the spans and the score of a guarded call, printed line by line.

python examples/integrations/with_otel.py
"""

from __future__ import annotations

from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import (
    ConsoleLogRecordExporter,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

from snne_guard import SNNEGuard
from snne_guard.langchain import embedded_model
from snne_guard_integrations.otel import OpenTelemetryObserver


def span_line(span: ReadableSpan) -> str:
    attributes = span.attributes or {}
    u = attributes.get("snne_guard.uncertainty")
    name = span.name if u is None else f"{span.name} u={u:.2f}"
    parent = f"{span.parent.span_id:016x}" if span.parent else "none"
    duration = ((span.end_time or 0) - (span.start_time or 0)) / 1e6
    return f"span   {name}, {duration:.0f} ms, parent {parent}\n"


def event_line(record: ReadableLogRecord) -> str:
    event = record.log_record
    attributes = event.attributes or {}
    value = attributes.get("gen_ai.evaluation.score.value")
    label = attributes.get("gen_ai.evaluation.score.label")
    return f"event  {event.event_name}: {value:.2f}, {label}\n"


# Yours come from your own set-up, with an OTLP exporter instead of the console.
tracers = TracerProvider()
tracers.add_span_processor(
    SimpleSpanProcessor(ConsoleSpanExporter(formatter=span_line))
)
loggers = LoggerProvider()
loggers.add_log_record_processor(
    SimpleLogRecordProcessor(ConsoleLogRecordExporter(formatter=event_line))
)

# With OpenTelemetry's global providers, OpenTelemetryObserver() is enough.
observer = OpenTelemetryObserver(tracer_provider=tracers, logger_provider=loggers)
model = embedded_model(temperature=0, seed=1, max_tokens=64, stop=["\n", "."])
guard = SNNEGuard(model, threshold=0.5, observers=[observer])

with tracers.get_tracer("my-app").start_as_current_span("my request"):
    message = guard.invoke(
        [
            ("system", "Answer in one short sentence."),
            ("user", "What is the chemical symbol for gold?"),
        ]
    )
print(f"answer {message.text}")
