"""OpenTelemetry: a span for each guarded call, its evaluation event, and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from snne_guard import Assessment, MissingExtraError, __version__
from snne_guard_integrations._report import DECISION, UNCERTAINTY, metadata, summary

try:
    from opentelemetry import metrics, trace
    from opentelemetry._logs import LoggerProvider, get_logger
except ImportError as error:
    raise MissingExtraError(needed="opentelemetry-api", extra="otel") from error

Attributes = dict[str, str | int | float | Sequence[str]]


class OpenTelemetryObserver:
    """Reports guarded calls to OpenTelemetry.

    Each assessment gives a span ``snne_guard`` below the current one, with the metadata
    of the delivered message; the event ``gen_ai.evaluation.result`` of the GenAI
    conventions, the uncertainty as its score and the decision as its label; and the
    metrics ``snne_guard.assessments`` and ``snne_guard.uncertainty``.

    Args:
        tracer_provider: Takes the spans. None: the global one, as for all three.
        meter_provider: Takes the metrics.
        logger_provider: Takes the events.
        content: Whether to add the texts of the question, the answer (a withheld one
            too) and the samples to the span.

    Example:
        >>> observer = OpenTelemetryObserver()
        >>> observer.on_assessment(Assessment(id="1", answer=None, uncertainty=0.4))
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        content: bool = False,
    ) -> None:
        self._tracer = trace.get_tracer("snne_guard", __version__, tracer_provider)
        self._logger = get_logger("snne_guard", __version__, logger_provider)
        self._content = content
        meter = metrics.get_meter("snne_guard", __version__, meter_provider)
        self._assessments = meter.create_counter(
            "snne_guard.assessments", "{assessment}", "Guarded calls"
        )
        self._uncertainty = meter.create_histogram(
            UNCERTAINTY,
            "1",
            "How far answers differ, from 0 (all alike) to 1 (all different)",
            explicit_bucket_boundaries_advisory=[i / 20 for i in range(21)],
        )

    def on_assessment(self, assessment: Assessment) -> None:
        """Report one guarded call."""
        answer = assessment.answer
        labels = _present(
            {
                # The constant is deprecated: the conventions have moved to
                # https://github.com/open-telemetry/semantic-conventions-genai.
                "gen_ai.response.model": answer.model if answer else None,
                DECISION: assessment.decision or "none",
            }
        )
        self._assessments.add(1, labels)
        if assessment.uncertainty is not None:
            self._uncertainty.record(assessment.uncertainty, labels)
        end = time.time_ns()
        span = self._tracer.start_span(
            "snne_guard",
            attributes=_attributes(assessment, content=self._content),
            start_time=end - round(assessment.cost.seconds * 1e9),
        )
        self._logger.emit(
            event_name="gen_ai.evaluation.result",
            context=trace.set_span_in_context(span),
            timestamp=end,
            attributes=_evaluation(assessment),
        )
        span.end(end)


def _present(values: Mapping[str, Any]) -> Attributes:
    """Drop what is unknown; attributes cannot be None."""
    return {name: value for name, value in values.items() if value not in (None, [])}


def _attributes(assessment: Assessment, *, content: bool) -> Attributes:
    fields = metadata(assessment, content=content)
    cost: dict[str, Any] = fields.pop("cost")
    del fields["version"]  # the tracer's own version says it
    for name in {"fields", "other_models", "spans"} & fields.keys():
        fields[name] = json.dumps(fields[name])  # no attribute holds objects
    fields |= {f"cost.{name}": value for name, value in cost.items()}
    return _present({f"snne_guard.{name}": value for name, value in fields.items()})


def _evaluation(assessment: Assessment) -> Attributes:
    answer = assessment.answer
    return _present(
        {
            "gen_ai.evaluation.name": UNCERTAINTY,
            "gen_ai.evaluation.score.value": assessment.uncertainty,
            "gen_ai.evaluation.score.label": assessment.decision,
            "gen_ai.evaluation.explanation": summary(assessment),
            "gen_ai.response.id": answer.response_id if answer else None,
            "snne_guard.id": assessment.id,
        }
    )
