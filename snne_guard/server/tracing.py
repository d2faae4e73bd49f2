"""A span for each request, where OpenTelemetry is installed; its context goes up."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from snne_guard._version import __version__
from snne_guard.server.errors import SERVER_ERROR
from snne_guard.server.metrics import model_name, outcome_of
from snne_guard.server.records import RequestRecord

try:
    from opentelemetry import trace
    from opentelemetry.trace.propagation import tracecontext
except ImportError:
    _INSTALLED = False
else:
    _INSTALLED = True

_CONTEXT = ("traceparent", "tracestate")


@contextmanager
def request_span(
    record: RequestRecord, headers: Mapping[str, str]
) -> Generator[None, None, None]:
    """Run the block in a span below the client's, by the GenAI conventions."""
    if not _INSTALLED:
        yield
        return
    parent = tracecontext.TraceContextTextMapPropagator().extract(headers)
    tracer = trace.get_tracer("snne_guard.server", __version__)
    start = tracer.start_as_current_span(
        record.method, parent, kind=trace.SpanKind.SERVER, record_exception=False
    )
    with start as span:
        try:
            yield
        finally:
            if span.is_recording():
                span.update_name(
                    f"chat {record.fields.get('model')}"
                    if record.assessment
                    else f"{record.method} {record.route}"
                )
                span.set_attributes(_attributes(record))
                if record.status >= SERVER_ERROR:
                    span.set_status(trace.StatusCode.ERROR)


def upstream_context(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that make the upstream's spans part of the client's trace."""
    ours: dict[str, str] = {}
    if _INSTALLED:
        tracecontext.TraceContextTextMapPropagator().inject(ours)
    return ours or {name: headers[name] for name in _CONTEXT if name in headers}


def _attributes(record: RequestRecord) -> dict[str, Any]:
    call = record.assessment
    found: dict[str, Any] = {
        "http.request.method": record.method,
        "http.route": record.route,
        "http.response.status_code": record.status,
        "error.type": record.error,
        "snne_guard.request_id": record.id,
        "snne_guard.policy": record.policy or None,
        "snne_guard.key": record.key or None,
    }
    if call is not None:
        answer = call.answer
        found |= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai",
            "gen_ai.request.model": record.fields.get("model"),
            "gen_ai.response.model": answer and model_name(answer.model),
            "gen_ai.usage.input_tokens": call.cost.prompt_tokens,
            "gen_ai.usage.output_tokens": call.cost.completion_tokens,
            "snne_guard.id": call.id,
            "snne_guard.decision": outcome_of(call),
            "snne_guard.uncertainty": call.uncertainty,
            "snne_guard.reasons": list(call.reasons),
        }
    return {name: value for name, value in found.items() if value is not None}
