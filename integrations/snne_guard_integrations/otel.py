"""OpenTelemetry: a span for each request, the score as an event, and metrics."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from snne_guard import Assessment, __version__
from snne_guard.types import Sample, SampleEvent
from snne_guard_integrations._extras import required
from snne_guard_integrations._report import SCORE, explained, label

required(
    "opentelemetry", extra="otel", at_least="1.45", distribution="opentelemetry-api"
)
from opentelemetry import context, metrics, trace  # noqa: E402 - after the check
from opentelemetry._logs import LoggerProvider, get_logger  # noqa: E402
from opentelemetry.context import Context  # noqa: E402
from opentelemetry.trace import Span, SpanKind, Status, StatusCode  # noqa: E402

__all__ = ["OpenTelemetryObserver"]

Attributes = dict[str, str | int | float | Sequence[str]]

# The constants of opentelemetry-semantic-conventions are deprecated since these names
# have moved: https://github.com/open-telemetry/semantic-conventions-genai, in
# docs/gen-ai/client-inference.md and docs/gen-ai/gen-ai-events.md.
_EVENT = "gen_ai.evaluation.result"
_KIND = "gen_ai.token.type"
_PROVIDERS = {
    "amazon_bedrock": "aws.bedrock",
    "anthropic-bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "google_genai": "gcp.gemini",
    "google_vertexai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""LangChain's names of providers that the conventions call something else."""

_CAPACITY = 10_000
"""Guarded calls that may be open before the oldest is forgotten."""


@dataclass(slots=True)
class _Request:
    """One request, from when it went out until it came back."""

    start: SampleEvent
    end: SampleEvent | None = None

    @property
    def error_type(self) -> str | None:
        """The kind of error that it ended with, None where it did not fail."""
        if self.end is None:
            return "cancelled"  # the guarded call ended before it
        error = self.end.error
        return None if error is None else type(error).__qualname__


@dataclass(slots=True)
class _Call:
    """What is known of a guarded call before its assessment."""

    context: Context
    requests: list[_Request] = field(default_factory=list[_Request])

    @property
    def described(self) -> Attributes:
        """Which model at which provider it is about."""
        return _described(self.requests[0].start) if self.requests else {}


class OpenTelemetryObserver:
    """Reports what a guard does to OpenTelemetry, by its conventions for GenAI.

    For each guarded call, when it is assessed:

    - a span ``chat {model}`` for the answer and for each request for samples, with the
      times at which they went out and came back, under the span that was current when
      the guard was called. Without one, a span ``snne_guard`` holds them together;
    - the event ``gen_ai.evaluation.result``: the uncertainty in [0, 1] (0 all answers
      alike, 1 all different), the decision as its label, and the reasons. It goes to
      the Logs API under the answer's span; where that is not set up, it becomes an
      event of the caller's span;
    - metrics ``snne_guard.*``: assessments by decision, uncertainty, samples drawn and
      saved, tokens, cost, seconds, and failed requests by the type of the error.

    The label is ``accept``, ``flag``, ``refuse`` or ``fallback``; ``unscored`` where
    there is no uncertainty. A guard without a threshold gives no label.

    It needs ``opentelemetry-api`` only; the SDK, its exporters and its sampling are
    yours. A failing exporter costs a guarded call at most one second, once.

    Args:
        tracer_provider: Where spans go; None: the global one.
        meter_provider: Where metrics go; None: the global one.
        logger_provider: Where the event goes; None: the global one.
        content: Whether spans hold the texts of question, answer and samples, also of
            an answer that was withheld.

    Raises:
        MissingExtraError: If ``opentelemetry-api`` is missing or too old; this module
            raises it when it is imported.

    Example:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from snne_guard import SNNEGuard
        >>> model = FakeListChatModel(responses=["Paris"])
        >>> guard = SNNEGuard(model, observers=[OpenTelemetryObserver()])
        >>> guard.invoke("The capital of France?").content
        'Paris'
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        logger_provider: LoggerProvider | None = None,
        content: bool = False,
    ) -> None:
        self._options: dict[str, Any] = {
            "tracer_provider": tracer_provider,
            "meter_provider": meter_provider,
            "logger_provider": logger_provider,
            "content": content,
        }
        self._tracer = trace.get_tracer("snne_guard", __version__, tracer_provider)
        self._logger = get_logger("snne_guard", __version__, logger_provider)
        meter = metrics.get_meter("snne_guard", __version__, meter_provider)
        self._instruments = _Instruments(meter)
        self._content = content
        self._lock = threading.Lock()
        self._calls: OrderedDict[str, _Call] = OrderedDict()

    def __reduce__(self) -> tuple[Any, ...]:
        """Start anew in another process, which has providers of its own."""
        return partial(OpenTelemetryObserver, **self._options), ()

    def on_sample_start(self, event: SampleEvent) -> None:
        """Remember when a request went out, and under which span."""
        with self._lock:
            call = self._calls.get(event.assessment_id)
            if call is None:
                call = _Call(context.get_current())
                self._calls[event.assessment_id] = call
                if len(self._calls) > _CAPACITY:
                    self._calls.popitem(last=False)
            call.requests.append(_Request(event))

    def on_sample_end(self, event: SampleEvent) -> None:
        """Remember what came back."""
        with self._lock:
            call = self._calls.get(event.assessment_id)
            for request in call.requests if call is not None else ():
                start = request.start
                same = (start.role, start.index) == (event.role, event.index)
                if same and request.end is None:
                    request.end = event

    def on_assessment(self, assessment: Assessment) -> None:
        """Report the call."""
        with self._lock:
            call = self._calls.pop(assessment.id, None)
        call = call or _Call(context.get_current())
        self._instruments.record(call, assessment)
        self._report(call, assessment, now=time.time_ns())

    def _report(self, call: _Call, assessment: Assessment, *, now: int) -> None:
        caller = trace.get_current_span(call.context)
        under, spans = call.context, list[tuple[Span, int]]()
        if not caller.get_span_context().is_valid:
            begin = min((each.start.time_ns for each in call.requests), default=now)
            caller = self._tracer.start_span("snne_guard", under, start_time=begin)
            caller.set_attributes(_assessed(assessment))
            under = trace.set_span_in_context(caller, under)
            spans.append((caller, now))
        evaluated = under
        for request in call.requests:
            span = self._span(request, assessment, under)
            if request.start.role == "answer":
                span.set_attributes(_assessed(assessment))
                evaluated = trace.set_span_in_context(span, under)
            came = request.end.time_ns if request.end else now
            spans.append((span, max(came, request.start.time_ns)))
        self._announce(assessment, evaluated, caller)
        # Last, and those within others first: some exporters take their time here.
        for span, end in reversed(spans):
            span.end(end)

    def _span(self, request: _Request, assessment: Assessment, under: Context) -> Span:
        start = request.start
        attributes: Attributes = {
            "gen_ai.operation.name": "chat",
            **_described(start),
            "snne_guard.assessment.id": start.assessment_id,
            "snne_guard.role": start.role,
        }
        if start.role == "sample":
            attributes["snne_guard.sample.index"] = start.index
        if start.n > 1:
            attributes["gen_ai.request.choice.count"] = start.n
        span = self._tracer.start_span(
            f"chat {start.model}" if start.model else "chat",
            under,
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=start.time_ns,
        )
        if span.is_recording():
            self._complete(span, request, assessment)
        return span

    def _complete(self, span: Span, request: _Request, assessment: Assessment) -> None:
        if request.error_type is not None:
            # The type alone: what an error says may quote what was asked.
            span.set_attribute("error.type", request.error_type)
            span.set_status(Status(StatusCode.ERROR))
        if request.end is not None:
            span.set_attributes(_came(request.end))
        if self._content:
            span.set_attributes(_content(request, assessment.question))

    def _announce(
        self, assessment: Assessment, evaluated: Context, caller: Span
    ) -> None:
        attributes = _evaluation(assessment)
        if self._logger.enabled(context=evaluated, event_name=_EVENT):
            self._logger.emit(
                event_name=_EVENT,
                context=evaluated,
                timestamp=time.time_ns(),
                attributes=attributes,
            )
            return
        # The caller's has ended where an answer is assessed later than it was given.
        for span in (caller, trace.get_current_span(evaluated)):
            if span.is_recording():
                span.add_event(_EVENT, attributes)
                return
        own = self._tracer.start_span("snne_guard", evaluated)
        own.set_attributes(_assessed(assessment))
        own.add_event(_EVENT, attributes)
        own.end()


_COUNTERS = {
    "assessments": ("{assessment}", "Guarded calls, by decision"),
    "samples.drawn": ("{sample}", "Samples that came"),
    "samples.saved": ("{sample}", "Samples that an early stop spared"),
    "tokens": ("{token}", "Tokens read and written"),
    "cost": ("{currency}", "Their worth, at the prices that were given"),
    "failures": ("{request}", "Requests that failed for good"),
}


class _Instruments:
    """The metrics of all guarded calls."""

    def __init__(self, meter: metrics.Meter) -> None:
        self._counters = {
            name: meter.create_counter(f"snne_guard.{name}", unit, description)
            for name, (unit, description) in _COUNTERS.items()
        }
        self._uncertainty = meter.create_histogram(
            SCORE,
            "1",
            "How far answers differ: 0 all alike, 1 all different",
            explicit_bucket_boundaries_advisory=[i / 20 for i in range(21)],
        )
        self._seconds = meter.create_histogram(
            "snne_guard.duration", "s", "Time from the first request to the decision"
        )

    def record(self, call: _Call, assessment: Assessment) -> None:
        """Count one guarded call."""
        about, cost = call.described, assessment.cost
        decision: Attributes = {"snne_guard.decision": assessment.decision or "none"}
        self._seconds.record(cost.seconds, about)
        if assessment.uncertainty is not None:
            self._uncertainty.record(assessment.uncertainty, {**about, **decision})
        self._add("assessments", 1, about, decision)
        self._add("samples.drawn", len(assessment.samples), about)
        self._add("samples.saved", cost.samples_saved, about)
        self._add("tokens", cost.prompt_tokens, about, {_KIND: "input"})
        self._add("tokens", cost.completion_tokens, about, {_KIND: "output"})
        if cost.money is not None:
            self._add("cost", cost.money, about)
        for request in call.requests:
            if request.error_type is not None:
                error: Attributes = {"error.type": request.error_type}
                role: Attributes = {"snne_guard.role": request.start.role}
                self._add("failures", 1, about, error, role)

    def _add(self, name: str, amount: float, *attributes: Attributes) -> None:
        merged = {key: value for each in attributes for key, value in each.items()}
        self._counters[name].add(amount, merged)


def _given(values: Mapping[str, Any]) -> Attributes:
    """Return the attributes that have a value."""
    return {name: value for name, value in values.items() if value not in (None, ())}


def _described(event: SampleEvent) -> Attributes:
    provider = _PROVIDERS.get(event.provider or "", event.provider)
    names = {"gen_ai.provider.name": provider, "gen_ai.request.model": event.model}
    return _given(names)


def _came(event: SampleEvent) -> Attributes:
    samples, cost = event.samples, event.cost
    first = samples[0] if samples else Sample(text="")
    return _given(
        {
            "gen_ai.response.model": first.model,
            "gen_ai.response.id": first.response_id,
            "gen_ai.response.finish_reasons": tuple(
                each.finish_reason for each in samples if each.finish_reason
            ),
            "gen_ai.usage.input_tokens": cost.prompt_tokens or None,
            "gen_ai.usage.output_tokens": cost.completion_tokens or None,
            "gen_ai.usage.cache_read.input_tokens": cost.cached_tokens or None,
        }
    )


def _assessed(assessment: Assessment) -> Attributes:
    return _given(
        {
            "snne_guard.assessment.id": assessment.id,
            "snne_guard.method": assessment.method,
            "snne_guard.score": assessment.score,
            SCORE: assessment.uncertainty,
            "snne_guard.threshold": assessment.threshold,
            "snne_guard.certified": assessment.certified,
            "snne_guard.p_wrong": assessment.p_wrong,
            "snne_guard.audit": assessment.audit,
            "snne_guard.decision": assessment.decision,
            "snne_guard.n_used": assessment.n_used,
            "snne_guard.reasons": assessment.reasons,
        }
    )


def _evaluation(assessment: Assessment) -> Attributes:
    answer = assessment.answer
    event = {
        "gen_ai.evaluation.name": SCORE,
        "gen_ai.evaluation.score.value": assessment.uncertainty,
        "gen_ai.evaluation.score.label": label(assessment),
        "gen_ai.evaluation.explanation": explained(assessment),
        "gen_ai.response.id": None if answer is None else answer.response_id,
    }
    return {**_assessed(assessment), **_given(event)}


def _content(request: _Request, question: str | None) -> Attributes:
    """Return the texts, in the form of the conventions' JSON schemas."""
    samples = request.end.samples if request.end is not None else ()
    asked = [] if question is None else [{"role": "user", "parts": _text(question)}]
    replied = [
        {
            "role": "assistant",
            "parts": [*_text(each.text), *_calls(each)],
            "finish_reason": each.finish_reason or "stop",
        }
        for each in samples
    ]
    return {
        "gen_ai.input.messages": json.dumps(asked, ensure_ascii=False),
        "gen_ai.output.messages": json.dumps(replied, ensure_ascii=False),
    }


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _calls(sample: Sample) -> list[dict[str, Any]]:
    calls: list[dict[str, Any]] = json.loads(sample.tool_calls or "[]")
    return [
        {"type": "tool_call", "name": call["name"], "arguments": call["args"]}
        for call in calls
    ]
