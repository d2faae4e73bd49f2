"""OpenTelemetry: a span for each guarded call, its evaluation event, and metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from snne_guard import Assessment, MissingExtraError, Sample, __version__
from snne_guard_integrations._report import DECISION, UNCERTAINTY, decision, summary

try:
    from opentelemetry import metrics, trace
    from opentelemetry._logs import LoggerProvider, get_logger
    from opentelemetry.context import Context
except ImportError as error:
    raise MissingExtraError(needed="opentelemetry-api", extra="otel") from error

__all__ = ["OpenTelemetryObserver"]

Attributes = dict[str, str | int | float | Sequence[str]]

# The Python constants of these names are deprecated, since the names have moved to
# https://github.com/open-telemetry/semantic-conventions-genai.
_TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - a name, not a secret
_MODEL = "gen_ai.response.model"


class OpenTelemetryObserver:
    """Reports guarded calls to OpenTelemetry.

    Each assessment gives:

    - a span ``snne_guard`` below the current one, from the first request to the
      decision, with the assessment's numbers, decision and reasons as attributes;
    - the event ``gen_ai.evaluation.result`` of the GenAI conventions, through the Logs
      API: the uncertainty as its score, the decision as its label;
    - the metrics ``snne_guard.assessments``, ``.uncertainty``, ``.duration`` (seconds),
      ``.tokens`` and, where the guard has prices, ``.cost``.

    It needs ``opentelemetry-api``; the SDK, its exporters and its sampling are yours.

    Args:
        tracer_provider: Takes the spans. None: the global one.
        meter_provider: Takes the metrics. None: the global one.
        logger_provider: Takes the events. None: the global one.
        content: Whether to add a span for the answer (a withheld one too) and for each
            sample, with its text. All have the times of the guarded call, since an
            assessment does not say when each reply came.

    Raises:
        MissingExtraError: On import of this module, if ``opentelemetry-api`` is
            missing.

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
        meter = metrics.get_meter("snne_guard", __version__, meter_provider)
        self._metrics = _Metrics(meter)
        self._content = content

    def on_assessment(self, assessment: Assessment) -> None:
        """Report one guarded call."""
        self._metrics.record(assessment)
        end = time.time_ns()
        start = end - round(assessment.cost.seconds * 1e9)
        attributes = _attributes(assessment)
        if self._content and assessment.question is not None:
            asked = _message("user", assessment.question)
            attributes["gen_ai.input.messages"] = asked
        span = self._tracer.start_span(
            "snne_guard", attributes=attributes, start_time=start
        )
        inside = trace.set_span_in_context(span)
        if self._content:
            self._add_replies(assessment, inside, start, end)
        self._logger.emit(
            event_name="gen_ai.evaluation.result",
            context=inside,
            timestamp=end,
            attributes=_evaluation(assessment),
        )
        span.end(end)

    def _add_replies(
        self, assessment: Assessment, inside: Context, start: int, end: int
    ) -> None:
        replies = [("sample", sample) for sample in assessment.samples]
        if assessment.answer is not None:
            replies.insert(0, ("answer", assessment.answer))
        for role, reply in replies:
            self._tracer.start_span(
                f"snne_guard.{role}",
                inside,
                attributes=_reply_attributes(reply),
                start_time=start,
            ).end(end)


class _Metrics:
    def __init__(self, meter: metrics.Meter) -> None:
        self._assessments = meter.create_counter(
            "snne_guard.assessments", "{assessment}", "Guarded calls"
        )
        self._uncertainty = meter.create_histogram(
            UNCERTAINTY,
            "1",
            "How far answers differ, from 0 (all alike) to 1 (all different)",
            explicit_bucket_boundaries_advisory=[i / 20 for i in range(21)],
        )
        self._duration = meter.create_histogram(
            "snne_guard.duration", "s", "Time from the first request to the decision"
        )
        self._tokens = meter.create_counter(
            "snne_guard.tokens", "{token}", "Tokens of the answer and all samples"
        )
        self._cost = meter.create_counter(
            "snne_guard.cost", "{currency}", "Price of the tokens"
        )

    def record(self, assessment: Assessment) -> None:
        cost, answer = assessment.cost, assessment.answer
        labels = _present({_MODEL: answer.model if answer else None})
        decided = {**labels, DECISION: decision(assessment) or "none"}
        self._assessments.add(1, decided)
        if assessment.uncertainty is not None:
            self._uncertainty.record(assessment.uncertainty, decided)
        self._duration.record(cost.seconds, labels)
        self._tokens.add(cost.prompt_tokens, {**labels, _TOKEN_TYPE: "input"})
        self._tokens.add(cost.completion_tokens, {**labels, _TOKEN_TYPE: "output"})
        if cost.money is not None:
            self._cost.add(cost.money, labels)


def _present(values: Mapping[str, Any]) -> Attributes:
    """Drop what is unknown; attributes cannot be None."""
    return {name: value for name, value in values.items() if value not in (None, ())}


def _attributes(assessment: Assessment) -> Attributes:
    fields = assessment.to_metadata()
    cost: dict[str, Any] = fields.pop("cost")
    del fields["version"]  # the tracer's own version says it
    fields["reasons"] = assessment.reasons
    if "spans" in fields:
        fields["spans"] = json.dumps(fields["spans"])  # no attribute holds objects
    fields |= {f"cost.{name}": value for name, value in cost.items()}
    return _present({f"snne_guard.{name}": value for name, value in fields.items()})


def _evaluation(assessment: Assessment) -> Attributes:
    answer = assessment.answer
    return _present(
        {
            "gen_ai.evaluation.name": UNCERTAINTY,
            "gen_ai.evaluation.score.value": assessment.uncertainty,
            "gen_ai.evaluation.score.label": decision(assessment),
            "gen_ai.evaluation.explanation": summary(assessment),
            "gen_ai.response.id": answer.response_id if answer else None,
            "snne_guard.id": assessment.id,
        }
    )


def _reply_attributes(reply: Sample) -> Attributes:
    finish = reply.finish_reason
    message = _message("assistant", reply.text, finish_reason=finish or "stop")
    return _present(
        {
            _MODEL: reply.model,
            "gen_ai.response.id": reply.response_id,
            "gen_ai.response.finish_reasons": (finish,) if finish else (),
            "gen_ai.output.messages": message,
            "snne_guard.tool_calls": reply.tool_calls,
        }
    )


def _message(role: str, text: str, **fields: str) -> str:
    """Return messages, of which there is one, by the conventions' JSON schema."""
    parts = [{"type": "text", "content": text}]
    return json.dumps([{"role": role, "parts": parts, **fields}], ensure_ascii=False)
