"""Spans, events and metrics, read from OpenTelemetry's in-memory exporters."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
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
from snne_guard.cost import RequestCost
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
    found = attributes(span)
    assert found["snne_guard.uncertainty"] == 0.75
    assert found["snne_guard.decision"] == "flag"
    assert found["snne_guard.cost.prompt_tokens"] == 20
    assert "snne_guard.reasons" not in found  # there are none
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


def test_metrics_count_calls_by_decision() -> None:
    telemetry = Telemetry()
    observer = telemetry.observer()
    model = {"gen_ai.response.model": "test-model"}
    observer.on_assessment(ASSESSMENT)
    observer.on_assessment(replace(ASSESSMENT, decision=None))
    points = telemetry.points()
    assert points["snne_guard.assessments"] == [
        ({**model, "snne_guard.decision": "flag"}, 1),
        ({**model, "snne_guard.decision": "none"}, 1),
    ]
    assert [value for _, value in points["snne_guard.uncertainty"]] == [0.75, 0.75]


@pytest.mark.parametrize("content", [False, True])
def test_texts_are_exported_only_if_asked_for(content: bool) -> None:
    telemetry = Telemetry()
    part = Span(start=0, end=4, uncertainty=0.9, supported=1)
    assessment = replace(ASSESSMENT, spans=(part,))
    telemetry.observer(content=content).on_assessment(assessment)
    found = attributes(telemetry.spans["snne_guard"])
    names = ("snne_guard.question", "snne_guard.answer", "snne_guard.samples")
    texts = ("quetzal", "zanzibar", ("ytterbium",)) if content else (None,) * 3
    assert tuple(map(found.get, names)) == texts
    assert json.loads(found["snne_guard.spans"]) == [part.to_dict()]
    exported = telemetry.everything()
    assert [secret in exported for secret in SECRETS] == [content] * 3


def test_other_models_are_a_text_since_no_attribute_holds_objects() -> None:
    telemetry = Telemetry()
    asked = RequestCost(role="sample", other_model="b", prompt_tokens=5)
    telemetry.observer().on_assessment(replace(ASSESSMENT, requests=(asked,)))
    found = attributes(telemetry.spans["snne_guard"])["snne_guard.other_models"]
    assert json.loads(found)["b"]["prompt_tokens"] == 5
