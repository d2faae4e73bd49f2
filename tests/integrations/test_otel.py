"""Spans, events and metrics, read from OpenTelemetry's in-memory exporters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import (
    InMemoryLogRecordExporter,
    SimpleLogRecordProcessor,
)
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from snne_guard import Span
from snne_guard_integrations.otel import OpenTelemetryObserver
from tests.integrations.support import ASSESSMENT, SECRETS, SUMMARY, UNSCORED


class Telemetry:
    """All three signals, kept in memory."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        exporter: Any = InMemoryLogRecordExporter  # its constructor has no types
        self._logs = exporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self.logger_provider = LoggerProvider()
        processor = SimpleLogRecordProcessor(self._logs)
        self.logger_provider.add_log_record_processor(processor)
        self.tracer = self.tracer_provider.get_tracer("application")

    def observer(self, **options: Any) -> OpenTelemetryObserver:
        return OpenTelemetryObserver(
            tracer_provider=self.tracer_provider,
            meter_provider=MeterProvider([self._reader]),
            logger_provider=self.logger_provider,
            **options,
        )

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._spans.get_finished_spans()}

    @property
    def events(self) -> list[Any]:
        return [record.log_record for record in self._logs.get_finished_logs()]

    def points(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """Return attributes and value or sum of each data point, by metric."""
        data = self._reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: [
                (dict(point.attributes or {}), value_of(point))
                for point in metric.data.data_points
            ]
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def everything(self) -> str:
        texts = [span.to_json() for span in self._spans.get_finished_spans()]
        texts += [record.to_json() for record in self._logs.get_finished_logs()]
        return "\n".join([*texts, str(self.points())])


def value_of(point: Any) -> float:
    return float(point.sum if hasattr(point, "sum") else point.value)


def attributes(found: Any) -> dict[str, Any]:
    return dict(found.attributes or {})


def test_a_guarded_call_is_a_span_below_the_current_one() -> None:
    telemetry = Telemetry()
    with telemetry.tracer.start_as_current_span("request") as caller:
        telemetry.observer().on_assessment(ASSESSMENT)
    span = telemetry.spans["snne_guard"]
    assert span.parent == caller.get_span_context()
    assert span.start_time is not None
    assert span.end_time is not None
    assert span.end_time - span.start_time == 500_000_000
    assert attributes(span) == {
        "snne_guard.id": ASSESSMENT.id,
        "snne_guard.method": "snne",
        "snne_guard.score": -0.5,
        "snne_guard.uncertainty": 0.75,
        "snne_guard.threshold": 0.4,
        "snne_guard.certified": False,
        "snne_guard.decision": "flag",
        "snne_guard.n_requested": 2,
        "snne_guard.n_used": 2,
        "snne_guard.cost.calls": 2,
        "snne_guard.cost.attempts": 2,
        "snne_guard.cost.prompt_tokens": 20,
        "snne_guard.cost.cached_tokens": 0,
        "snne_guard.cost.completion_tokens": 8,
        "snne_guard.cost.reasoning_tokens": 0,
        "snne_guard.cost.seconds": 0.5,
        "snne_guard.cost.lower_bound": False,
    }
    assert set(telemetry.spans) == {"request", "snne_guard"}


def test_the_evaluation_event_goes_through_the_logs_api() -> None:
    telemetry = Telemetry()
    telemetry.observer().on_assessment(ASSESSMENT)
    (event,) = telemetry.events
    assert event.event_name == "gen_ai.evaluation.result"
    assert dict(event.attributes) == {
        "gen_ai.evaluation.name": "snne_guard.uncertainty",
        "gen_ai.evaluation.score.value": 0.75,
        "gen_ai.evaluation.score.label": "flag",
        "gen_ai.evaluation.explanation": SUMMARY,
        "gen_ai.response.id": "r-1",
        "snne_guard.id": ASSESSMENT.id,
    }
    context = telemetry.spans["snne_guard"].get_span_context()
    assert context is not None
    assert event.span_id == context.span_id


def test_an_unscored_answer_has_a_label_and_no_number() -> None:
    telemetry = Telemetry()
    telemetry.observer().on_assessment(UNSCORED)
    found = attributes(telemetry.events[0])
    assert "gen_ai.evaluation.score.value" not in found
    assert found["gen_ai.evaluation.score.label"] == "unscored"
    assert attributes(telemetry.spans["snne_guard"])["snne_guard.reasons"] == (
        "tool_calls",
    )
    assert "snne_guard.uncertainty" not in telemetry.points()


def test_metrics_count_calls_tokens_time_and_money() -> None:
    telemetry = Telemetry()
    observer = telemetry.observer()
    model = {"gen_ai.response.model": "test-model"}
    observer.on_assessment(ASSESSMENT)
    priced = replace(ASSESSMENT.cost, money=0.25)
    observer.on_assessment(replace(ASSESSMENT, decision=None, cost=priced))
    points = telemetry.points()
    assert points["snne_guard.assessments"] == [
        ({**model, "snne_guard.decision": "flag"}, 1),
        ({**model, "snne_guard.decision": "none"}, 1),
    ]
    assert [value for _, value in points["snne_guard.uncertainty"]] == [0.75, 0.75]
    assert points["snne_guard.duration"] == [(model, 1.0)]
    assert points["snne_guard.tokens"] == [
        ({**model, "gen_ai.token.type": "input"}, 40),
        ({**model, "gen_ai.token.type": "output"}, 16),
    ]
    assert points["snne_guard.cost"] == [(model, 0.25)]


def test_texts_are_exported_only_if_asked_for() -> None:
    for content in (False, True):
        telemetry = Telemetry()
        telemetry.observer(content=content).on_assessment(ASSESSMENT)
        exported = telemetry.everything()
        assert [secret in exported for secret in SECRETS] == [content] * 3


def test_with_texts_each_reply_is_a_span_of_the_call() -> None:
    telemetry = Telemetry()
    call = '[{"name": "find"}]'
    sample = replace(ASSESSMENT.samples[0], tool_calls=call)
    assessment = replace(ASSESSMENT, samples=(sample,))
    telemetry.observer(content=True).on_assessment(assessment)
    guard = telemetry.spans["snne_guard"]
    asked = json.loads(attributes(guard)["gen_ai.input.messages"])
    assert asked[0]["parts"] == [{"type": "text", "content": "quetzal"}]
    answer = telemetry.spans["snne_guard.answer"]
    assert answer.parent == guard.get_span_context()
    assert (answer.start_time, answer.end_time) == (guard.start_time, guard.end_time)
    found = attributes(answer)
    assert json.loads(found.pop("gen_ai.output.messages")) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "zanzibar"}],
            "finish_reason": "stop",
        }
    ]
    assert found == {
        "gen_ai.response.model": "test-model",
        "gen_ai.response.id": "r-1",
        "gen_ai.response.finish_reasons": ("stop",),
    }
    drawn = attributes(telemetry.spans["snne_guard.sample"])
    assert drawn["snne_guard.tool_calls"] == call


def test_without_an_sdk_it_does_nothing() -> None:
    OpenTelemetryObserver(content=True).on_assessment(replace(ASSESSMENT, answer=None))


def test_uncertain_sentences_are_an_attribute_without_text() -> None:
    telemetry = Telemetry()
    part = Span(start=0, end=4, uncertainty=0.9, supported=1)
    assessment = replace(ASSESSMENT, spans=(part,), span_threshold=0.5)
    telemetry.observer().on_assessment(assessment)
    found = attributes(telemetry.spans["snne_guard"])
    assert json.loads(found["snne_guard.spans"]) == [part.to_dict()]
    assert found["snne_guard.span_threshold"] == 0.5
